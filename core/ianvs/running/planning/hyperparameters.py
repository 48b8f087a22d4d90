"""Applies `--set` values to hyperparameters, and removes modules that a paradigm does not use."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ianvs.base.errors import ConfigError, ValidationError, closest, one_line
from ianvs.config.models.algorithm import MODULE_TYPES, equal_values
from ianvs.config.overrides import Override
from ianvs.config.spec import AlgorithmSpec, JobSpec, ModuleSpec
from ianvs.running.inspector import Inspector
from ianvs.running.planning.cases import with_prefixes


def without_unused(job: JobSpec, inspector: Inspector) -> JobSpec:
    """Return the job without the modules and settings that its paradigms ignore; its `warnings` list them."""
    algorithms, warnings = [], list(job.warnings)
    for algorithm in job.algorithms:
        facts = inspector.paradigm(algorithm)
        name = algorithm.paradigm.name
        unused_types = set(MODULE_TYPES) - facts.methods.keys() if facts.methods else set()
        unused = [module for module in algorithm.modules if module.type in unused_types]
        for module in unused:
            message = f"a module of type {module.type} is ignored by {name}, and so are its hyperparameters."
            warnings.append(ValidationError(message, module.places.get("type", module.place), code="no-effect"))
        split = algorithm.split
        if split is not None and facts.as_one:
            key, split = "incremental_learning_data_setting", None
            warnings.append(
                ValidationError(
                    f"'{key}' has no effect in {name}.", algorithm.places.get(key, algorithm.place), code="no-effect"
                )
            )
        modules = tuple(module for module in algorithm.modules if module.type not in unused_types)
        algorithms.append(replace(algorithm, modules=modules, split=split))
    return replace(job, algorithms=tuple(algorithms), warnings=tuple(warnings))


def with_hyperparameters(job: JobSpec, inspector: Inspector) -> JobSpec:
    """Return the job with the hyperparameters from its overrides; several of one name are a grid.

    An override without an algorithm applies to all that have the hyperparameter in their file or constructor. Raises
    ConfigError for an unknown name; a name that the given algorithm rejects is reported by its plugin check.
    """
    groups: dict[tuple[str, str], list[Override]] = {}
    for override in job.overrides:
        if override.kind == "algorithm":
            groups.setdefault((override.algorithm, override.key), []).append(override)
    problems: list[ValidationError] = []
    for (_, key), overrides in groups.items():
        grid = {"values": [override.value for override in overrides]}
        for problem in equal_values({"grid": grid}, ("grid",), grid):
            problems.append(
                ValidationError(problem.message, overrides[int(problem.path[-1])].place, code="duplicate-entry")
            )
        changed = [_changed(algorithm, overrides, inspector) for algorithm in job.algorithms]
        if any(changed):
            pairs = zip(changed, job.algorithms, strict=True)
            job = replace(job, algorithms=tuple(new or old for new, old in pairs))
        else:
            names = (
                name
                for a in job.algorithms
                for names_of_algorithm in _hyperparameter_names(a, inspector)
                for name in names_of_algorithm
            )
            names_known = list(dict.fromkeys(names))
            hint = closest(key, names_known) or f" They have: {one_line(names_known, 20)}."
            message = f"no algorithm of the job has a hyperparameter '{key}', and it is not a key of a job or testenv"
            problems.append(ValidationError(f"{message}.{hint}", overrides[0].place, code="unknown-hyperparameter"))
    if problems:
        raise ConfigError(problems)
    return job


def _changed(algorithm: AlgorithmSpec, overrides: Sequence[Override], inspector: Inspector) -> AlgorithmSpec | None:
    """Return `algorithm` with these values in all modules that have the hyperparameter; None if none has."""
    owner, key = overrides[0].algorithm, overrides[0].key
    if owner not in ("", algorithm.name):
        return None
    modules = list(algorithm.modules)
    matching_modules = [n for n, names in enumerate(_hyperparameter_names(algorithm, inspector)) if key in names]
    for n in matching_modules or ([0] if owner else []):
        modules[n] = _with_values(modules[n], key if n == 0 else key.removeprefix(f"{modules[n].type}-"), overrides)
    return replace(algorithm, modules=tuple(modules)) if matching_modules or owner else None


def _hyperparameter_names(algorithm: AlgorithmSpec, inspector: Inspector) -> Iterator[list[str]]:
    """Yield the names of each module's hyperparameters, as in a case."""
    for prefix, module in with_prefixes(algorithm.modules):
        names = [*dict(module.grid), *module.constants]
        [facts] = inspector.plugins([(algorithm, module)])
        names += facts.arguments if facts is not None else ()
        yield [prefix + name for name in names]


def _with_values(module: ModuleSpec, name: str, overrides: Sequence[Override]) -> ModuleSpec:
    values = tuple(override.value for override in overrides)
    places = tuple(override.place for override in overrides)
    return replace(
        module,
        grid=tuple(({**dict(module.grid), name: values}).items()),
        places={**module.places, name: places[0]},
        value_places={**module.value_places, name: places},
    )
