"""`--set learning_rate=0.1`: who has such a hyperparameter, and the job with that value in its grids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ianvs.config.models.algorithm import equal_values
from ianvs.config.overrides import Override
from ianvs.config.spec import AlgorithmSpec, JobSpec, ModuleSpec
from ianvs.errors import ConfigError, Problem, closest, one_line
from ianvs.planning.closed import closed_paths
from ianvs.planning.memo import Answer, answers
from ianvs.plugins.loader import load
from ianvs.plugins.signature import constructor_parameters
from ianvs.plugins.source import source_of
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
        problems += _equal(overrides)
        found = [_changed(algorithm, overrides, taken) for algorithm in job.algorithms]
        if any(new is not old for new, old in zip(found, job.algorithms, strict=True)):
            job = replace(job, algorithms=tuple(found))
        else:
            known = list(dict.fromkeys(name for a in job.algorithms for name in _names(a, taken)))
            hint = closest(key, known) or f" They have: {one_line(known, 20)}."
            message = (
                f"no algorithm of the job has a hyperparameter '{key}', and '{key}' is no key of a job or testenv."
            )
            problems.append(Problem(message + hint, overrides[0].place))
    if problems:
        raise ConfigError(problems)
    return job


def _equal(overrides: Sequence[Override]) -> Iterator[Problem]:
    grid = {"values": [override.value for override in overrides]}
    for slip in equal_values({"grid": grid}, ("grid",), grid):
        yield Problem(slip.message, overrides[int(slip.path[-1])].place)


def _changed(algorithm: AlgorithmSpec, overrides: Sequence[Override], taken: _Taken) -> AlgorithmSpec:
    """`algorithm` with these values in each of its modules that has them; itself if none has."""
    owner, key = overrides[0].algorithm, overrides[0].key
    if owner not in ("", algorithm.name):
        return algorithm
    modules = [
        _with(module, name, overrides) if name in _of(module, taken, algorithm) else module
        for module, name in _named(algorithm, key)
    ]
    if owner and all(new is old for new, old in zip(modules, algorithm.modules, strict=True)):
        modules[0] = _with(modules[0], key, overrides)
    if all(new is old for new, old in zip(modules, algorithm.modules, strict=True)):
        return algorithm
    return replace(algorithm, modules=tuple(modules))


def _named(algorithm: AlgorithmSpec, key: str) -> Iterator[tuple[ModuleSpec, str]]:
    """(module, what `key` would be called among its own hyperparameters)."""
    for module in algorithm.modules:
        prefix = "" if module is algorithm.modules[0] else f"{module.type}-"
        yield module, key.removeprefix(prefix) if key.startswith(prefix) else ""


def _names(algorithm: AlgorithmSpec, taken: _Taken) -> Iterator[str]:
    for module in algorithm.modules:
        prefix = "" if module is algorithm.modules[0] else f"{module.type}-"
        yield from (prefix + name for name in _of(module, taken, algorithm))


def _of(module: ModuleSpec, taken: _Taken, algorithm: AlgorithmSpec) -> list[str]:
    listed = [*dict(module.grid), *module.constants]
    return listed if algorithm.contract == "ianvs" else [*listed, *taken.by(module)]


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
        self._found: dict[tuple[str | None, str], list[str]] | None = None

    def by(self, module: ModuleSpec) -> list[str]:
        """[] of a plugin that can't be imported, which its check will tell."""
        if self._found is None:
            self._found = self._asked()
        return self._found[module.url, module.name]

    def _asked(self) -> dict[tuple[str | None, str], list[str]]:
        job = self._job
        native = (algorithm for algorithm in job.algorithms if algorithm.contract == "native")
        plugins = list(dict.fromkeys((module.url, module.name) for a in native for module in a.modules))
        home = job.file.parent
        sources = [digest([url, name, source_of(url, name, job=home)]) for url, name in plugins]
        files = [job.workspace / "cache" / "constructors" / f"{source}.json" for source in sources]
        closed = closed_paths(job.workspace, (testenv.dataset for testenv in job.testenvs))
        told = answers(
            "ianvs.planning.hyperparameters:look_at_constructors",
            [{"url": url, "name": name} for url, name in plugins],
            files,
            job.limits.check_seconds,
            closed=closed,
        )
        return {
            plugin: [] if isinstance(answer, str) else list(answer.get("takes", ()))
            for plugin, answer in zip(plugins, told, strict=True)
        }


def look_at_constructors(questions: list[Answer]) -> list[Answer]:
    """What each takes by name, by importing its author's code."""
    return [_look_at(question["url"], question["name"]) for question in questions]


def _look_at(url: str | None, name: str) -> Answer:
    try:
        return {"takes": list(constructor_parameters(load(url, name).target).names)}
    except Exception as error:
        return {"problems": [str(error)]}  # not kept
