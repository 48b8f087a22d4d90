"""What an algorithm's file says that its paradigm can't use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ianvs.base.errors import Problem, closest
from ianvs.config.models.algorithm import MODULE_TYPES
from ianvs.config.spec import JobSpec
from ianvs.running.inspector import Inspector

__all__ = ["paradigm_problems", "without_unused"]


def paradigm_problems(job: JobSpec, inspector: Inspector) -> Iterator[Problem]:
    """What is wrong with the paradigms of the algorithms, their options, and the types of modules that they list."""
    for algorithm, facts in zip(job.algorithms, inspector.paradigms(job.algorithms), strict=True):
        spec = algorithm.paradigm
        for option, message in facts.problems:
            yield Problem(message, spec.places.get(option, spec.place))
        if not facts.methods:
            continue  # nothing is known of it
        known = dict.fromkeys([*facts.methods, *MODULE_TYPES])
        listed = {module.type: module for module in algorithm.modules}
        misspelt = [module for kind, module in listed.items() if kind not in known]
        for module in misspelt:
            message = f"type should be one of {', '.join(known)}, found the text '{module.type}'."
            yield Problem(message + closest(module.type, known), module.places.get("type", module.place))
        for kind in facts.needed:
            if kind not in listed and not closest(kind, [module.type for module in misspelt]):
                yield Problem(f"{spec.name} needs a module of type {kind}. Add one.", algorithm.places.get("modules"))


def without_unused(job: JobSpec, inspector: Inspector) -> JobSpec:
    """`job` without what its paradigms do not use of the algorithms' files; its `warnings` tell what that is."""
    algorithms, warnings = [], list(job.warnings)
    for algorithm, facts in zip(job.algorithms, inspector.paradigms(job.algorithms), strict=True):
        name = algorithm.paradigm.name
        idle = set(MODULE_TYPES) - facts.methods.keys() if facts.methods else set()
        unused = [module for module in algorithm.modules if module.type in idle]
        for module in unused:
            message = f"a module of type {module.type} has no effect yet in {name}; its hyperparameters are not tried."
            warnings.append(Problem(message, module.places.get("type", module.place)))
        split = algorithm.split
        if split is not None and facts.as_one:
            key, split = "incremental_learning_data_setting", None
            warnings.append(Problem(f"'{key}' has no effect in {name}.", algorithm.places.get(key, algorithm.place)))
        modules = tuple(module for module in algorithm.modules if module.type not in idle)
        algorithms.append(replace(algorithm, modules=modules, split=split))
    return replace(job, algorithms=tuple(algorithms), warnings=tuple(warnings))
