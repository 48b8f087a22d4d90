"""`--set learning_rate=0.1`: who has such a hyperparameter, and the job with that value in its grids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from ianvs.base.errors import ConfigError, Problem, closest, one_line
from ianvs.config.contracts import contract_named
from ianvs.config.models.algorithm import equal_values
from ianvs.config.overrides import Override
from ianvs.config.spec import AlgorithmSpec, JobSpec, ModuleSpec
from ianvs.plugins.loader import load
from ianvs.plugins.signature import constructor_parameters
from ianvs.plugins.source import source_of
from ianvs.running.planning.cases import prefixed
from ianvs.running.planning.closed import denied_paths
from ianvs.running.planning.memo import Answer, cached_answers
from ianvs.store.keys import digest

__all__ = ["with_hyperparameters"]


def with_hyperparameters(job: JobSpec) -> JobSpec:
    """The job with the values that its overrides give to hyperparameters; several of one name are a grid.

    One that names no algorithm is for all that have it: in their file, or among the arguments of their constructor.
    Raises ConfigError for one that nobody has. What an algorithm that is named does not take, its check tells.
    """
    groups: dict[tuple[str, str], list[Override]] = {}
    for override in job.overrides:
        if override.kind == "algorithm":
            groups.setdefault((override.algorithm, override.key), []).append(override)
    problems: list[Problem] = []
    taken = _Taken(job)
    for (_, key), overrides in groups.items():
        grid = {"values": [override.value for override in overrides]}
        for slip in equal_values({"grid": grid}, ("grid",), grid):
            problems.append(Problem(slip.message, overrides[int(slip.path[-1])].place))
        changed = [_changed(algorithm, overrides, taken) for algorithm in job.algorithms]
        if any(changed):
            both = zip(changed, job.algorithms, strict=True)
            job = replace(job, algorithms=tuple(new or old for new, old in both))
        else:
            known = list(dict.fromkeys(name for a in job.algorithms for names in _names(a, taken) for name in names))
            hint = closest(key, known) or f" They have: {one_line(known, 20)}."
            message = f"no algorithm of the job has a hyperparameter '{key}', and '{key}' is no key of a job or testenv"
            problems.append(Problem(f"{message}.{hint}", overrides[0].place))
    if problems:
        raise ConfigError(problems)
    return job


def _changed(algorithm: AlgorithmSpec, overrides: Sequence[Override], taken: _Taken) -> AlgorithmSpec | None:
    """`algorithm` with these values in each of its modules that has them; None if none has."""
    owner, key = overrides[0].algorithm, overrides[0].key
    if owner not in ("", algorithm.name):
        return None
    modules = list(algorithm.modules)
    having = [n for n, names in enumerate(_names(algorithm, taken)) if key in names]
    for n in having or ([0] if owner else []):
        modules[n] = _with(modules[n], key if n == 0 else key.removeprefix(f"{modules[n].type}-"), overrides)
    return replace(algorithm, modules=tuple(modules)) if having or owner else None


def _names(algorithm: AlgorithmSpec, taken: _Taken) -> Iterator[list[str]]:
    """Of each module the hyperparameters that it has, named as in a case."""
    for prefix, module in prefixed(algorithm.modules):
        listed = [*dict(module.grid), *module.constants]
        listed += [] if contract_named(algorithm.contract).runs_cases else taken.by(module)
        yield [prefix + name for name in listed]


def _with(module: ModuleSpec, name: str, overrides: Sequence[Override]) -> ModuleSpec:
    values = tuple(override.value for override in overrides)
    places = tuple(override.place for override in overrides)
    return replace(
        module,
        grid=tuple(({**dict(module.grid), name: values}).items()),
        places={**module.places, name: places[0]},
        value_places={**module.value_places, name: places},
    )


class _Taken:
    """What constructors take, asked of another process once, for all modules of the job together."""

    def __init__(self, job: JobSpec) -> None:
        self._job = job

    def by(self, module: ModuleSpec) -> list[str]:
        """[] of a plugin that can't be imported, which its check will tell."""
        return self._found[module.url, module.name]

    @cached_property
    def _found(self) -> dict[tuple[str | None, str], list[str]]:
        job = self._job
        plugins = list(dict.fromkeys((module.url, module.name) for a in job.algorithms for module in a.modules))
        sources = [digest([url, name, source_of(url, name, job=job.file.parent)]) for url, name in plugins]
        files = [job.workspace / "cache" / "constructors" / f"{source}.json" for source in sources]
        questions = [{"url": url, "name": name} for url, name in plugins]
        function = "ianvs.running.planning.hyperparameters:look_at_constructor"
        told = cached_answers(function, questions, files, job.limits.check_seconds, closed=denied_paths(job))
        return {
            plugin: [] if isinstance(answer, str) else list(answer.get("takes", ()))
            for plugin, answer in zip(plugins, told, strict=True)
        }


def look_at_constructor(url: str | None, name: str) -> Answer:
    """What it takes by name, by importing its author's code."""
    try:
        return {"takes": list(constructor_parameters(load(url, name).target).names)}
    except Exception as error:
        return {"problems": [str(error)]}  # not kept
