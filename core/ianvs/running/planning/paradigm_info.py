"""What a plan has to know of a paradigm. One of an author's file is described by another process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from pydantic import TypeAdapter

from ianvs.base.errors import Place, PluginError, Problem, closest, one_line
from ianvs.config.contracts import contract_named
from ianvs.config.models import AlgorithmSpec
from ianvs.config.models.algorithm import MODULE_TYPES
from ianvs.config.spec import JobSpec, ParadigmSpec
from ianvs.exam.data.options import check_options
from ianvs.exam.paradigms import GROUP, Paradigm, find_paradigm
from ianvs.plugins.source import source_of
from ianvs.running.planning.closed import denied_paths
from ianvs.running.planning.memo import Answer, cached_answers
from ianvs.store.keys import digest

__all__ = ["ParadigmInfo", "paradigm_info", "paradigm_problems", "without_unused"]


@dataclass(frozen=True)
class ParadigmInfo:
    """methods: by type of module those that a class of it has to have. needed: types that an algorithm has to list.

    as_one, reference: see ianvs.exam.paradigms.Paradigm. by_itself: its answers are not simply those of its base model.
    problems: (option, what is wrong with it); "" is the paradigm.
    """

    methods: Mapping[str, tuple[str, ...]]
    needed: tuple[str, ...]
    as_one: bool
    reference: bool
    problems: tuple[tuple[str, str], ...] = ()
    by_itself: bool = False


_PARADIGM_INFO = TypeAdapter(ParadigmInfo)


def paradigm_info(job: JobSpec) -> list[ParadigmInfo]:
    """Of the paradigm of each algorithm of `job`, in their order."""
    found: dict[str, ParadigmInfo] = {}
    keys = [digest([a.contract, a.paradigm.name, a.paradigm.url, a.paradigm.options]) for a in job.algorithms]
    for key, algorithm in zip(keys, job.algorithms, strict=True):
        if key not in found:
            spec = algorithm.paradigm
            types = contract_named(algorithm.contract).module_types(spec)
            theirs = types and ParadigmInfo(dict.fromkeys(types.known, ()), types.needed, False, False)
            found[key] = theirs or _info(spec, job)
    return [found[key] for key in keys]


def paradigm_problems(job: JobSpec) -> Iterator[Problem]:
    """What is wrong with the paradigms of the algorithms, their options, and the types of modules that they list."""
    for algorithm, info in zip(job.algorithms, paradigm_info(job), strict=True):
        spec = algorithm.paradigm
        for option, message in info.problems:
            yield Problem(message, spec.places.get(option, spec.place))
        if not info.methods:
            continue  # nothing is known of it
        known = dict.fromkeys([*info.methods, *MODULE_TYPES])
        listed = {module.type: module for module in algorithm.modules}
        misspelt = [module for kind, module in listed.items() if kind not in known]
        for module in misspelt:
            message = f"type should be one of {', '.join(known)}, found the text '{module.type}'."
            yield Problem(message + closest(module.type, known), module.places.get("type", module.place))
        for kind in info.needed:
            if kind not in listed and not closest(kind, [module.type for module in misspelt]):
                yield Problem(f"{spec.name} needs a module of type {kind}. Add one.", algorithm.places.get("modules"))


def without_unused(job: JobSpec) -> JobSpec:
    """`job` without what its paradigms do not use of the algorithms' files; its `warnings` tell what that is."""
    algorithms, warnings = [], list(job.warnings)
    for algorithm, info in zip(job.algorithms, paradigm_info(job), strict=True):
        name = algorithm.paradigm.name
        idle = set(MODULE_TYPES) - info.methods.keys() if info.methods else set()
        unused = [module for module in algorithm.modules if module.type in idle]
        for module in unused:
            message = f"a module of type {module.type} has no effect yet in {name}; its hyperparameters are not tried."
            warnings.append(Problem(message, module.places.get("type", module.place)))
        split = algorithm.split
        if split is not None and info.as_one:
            key, split = "incremental_learning_data_setting", None
            warnings.append(Problem(f"'{key}' has no effect in {name}.", algorithm.places.get(key, algorithm.place)))
        modules = tuple(module for module in algorithm.modules if module.type not in idle)
        algorithms.append(replace(algorithm, modules=modules, split=split))
    return replace(job, algorithms=tuple(algorithms), warnings=tuple(warnings))


def _info(spec: ParadigmSpec, job: JobSpec) -> ParadigmInfo:
    if spec.url is None:
        return _looked_at(spec)
    question = {"name": spec.name, "url": spec.url, "options": dict(spec.options)}
    identity = digest([question, source_of(spec.url, spec.name, GROUP, job.file.parent)])
    file = job.workspace / "cache" / "paradigms" / f"{identity}.json"
    function = "ianvs.running.planning.paradigm_info:look_at_paradigm"
    [told] = cached_answers(function, [question], [file], job.limits.check_seconds, closed=denied_paths(job))
    if isinstance(told, str):
        return _unknown(f"importing the file of paradigm '{spec.name}' {told}.")
    return _PARADIGM_INFO.validate_python(told)


def _unknown(why: str) -> ParadigmInfo:
    return ParadigmInfo({}, (), False, False, (("", why),))


def look_at_paradigm(name: str, url: str, options: Mapping[str, object]) -> Answer:
    """What `paradigm_info` wants to know of one of an author's file, by running its code."""
    return vars(_looked_at(ParadigmSpec(name, url, options)))


def _looked_at(spec: ParadigmSpec) -> ParadigmInfo:
    try:
        paradigm = find_paradigm(spec)
    except PluginError as error:
        return _unknown(str(error))
    known = paradigm.options.model_fields
    unknown = [option for option in spec.options if option not in known]
    given = {name: value for name, value in spec.options.items() if name in known}
    _, wrong = check_options(paradigm.options, given, spec.name, None, {name: Place(Path(name)) for name in given})
    keys = [*AlgorithmSpec.known_keys(), *known]
    hints = {option: closest(option, keys) or f" Known keys: {one_line(keys)}." for option in unknown}
    problems = [(option, f"unknown key '{option}' in algorithm.{hint}") for option, hint in hints.items()]
    problems += [(str(problem.place.file) if problem.place else "", problem.message) for problem in wrong]
    return ParadigmInfo(
        {kind: _methods(protocol) for kind, protocol in paradigm.modules.items()},
        tuple(kind for kind, protocol in paradigm.modules.items() if type(None) not in get_args(protocol)),
        paradigm.as_one,
        paradigm.reference,
        tuple(problems),
        paradigm.predict is not Paradigm.predict,
    )


def _methods(protocol: object) -> tuple[str, ...]:
    """Names of the methods that a protocol, or `Protocol | None`, asks for."""
    asked = next((part for part in get_args(protocol) if part is not type(None)), protocol)
    layers = [layer for layer in getattr(asked, "__mro__", ()) if getattr(layer, "_is_protocol", False)]
    named = (name for layer in layers for name, value in vars(layer).items() if callable(value))
    return tuple(name for name in dict.fromkeys(named) if not name.startswith("_"))
