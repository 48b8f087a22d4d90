"""Checks an algorithm's plugins against the contract and its grid against their constructors, without running them."""

from __future__ import annotations

import inspect

from ianvs.config.spec import AlgorithmSpec, ModuleSpec
from ianvs.errors import Place, PluginError, Problem, closest
from ianvs.plugins.contract import CONTEXT
from ianvs.plugins.loader import load
from ianvs.plugins.reference import reference_of
from ianvs.plugins.signature import constructor_parameters

__all__ = ["check_algorithm", "check_task"]

_METHODS = ("train", "predict", "save", "load")


def check_algorithm(algorithm: AlgorithmSpec) -> list[Problem]:
    """Everything that is wrong with the algorithm's modules. Imports the authors' code."""
    return [problem for module in algorithm.modules for problem in _check_module(module, algorithm)]


def _check_module(module: ModuleSpec, algorithm: AlgorithmSpec) -> list[Problem]:
    place = module.places.get("name") or module.place or Place(algorithm.file)
    try:
        target = load(module.url, module.name).target
    except PluginError as error:
        return [Problem(str(error), place)]
    if not callable(target):
        return [Problem(f"'{module.name}' is not a class.", place)]
    problems = []
    missing = [method for method in _METHODS if not callable(getattr(target, method, None))]
    if isinstance(target, type) and missing:
        plural = "s" if len(missing) > 1 else ""
        problems.append(Problem(f"{module.name} lacks the method{plural} {', '.join(missing)}.", place))
    problems += _check_hidden(target, module, place)
    problems += _check_reference(target, module, place)
    takes = constructor_parameters(target)
    given = [*dict(module.grid), *module.constants]
    for name in given:
        if takes.open or name in takes.names:
            continue
        listed = f"It takes: {', '.join(takes.names)}." if takes.names else "It takes none."
        problems.append(
            Problem(
                f"{module.name} has no hyperparameter '{name}'.{closest(name, takes.names)} {listed}",
                module.places.get(name, place),
            )
        )
    problems += [
        Problem(f"{module.name} needs the hyperparameter '{name}', which the file does not give.", place)
        for name in takes.required
        if name not in given
    ]
    return problems


def _check_hidden(target: object, module: ModuleSpec, place: Place) -> list[Problem]:
    """A required argument that no exam offers would fail only after the data were loaded."""
    problems = []
    for method, given in (("train", 1), ("predict", 1)):
        function = getattr(target, method, None)
        if not callable(function) or not isinstance(target, type):
            continue
        parameters = list(inspect.signature(function).parameters.values())[1 + given :]
        for parameter in parameters:
            needed = parameter.default is parameter.empty and parameter.kind in (
                parameter.POSITIONAL_OR_KEYWORD,
                parameter.KEYWORD_ONLY,
            )
            if needed and parameter.name not in CONTEXT and parameter.name != "valid_data":
                known = ", ".join(CONTEXT)
                problems.append(
                    Problem(
                        f"{module.name}.{method}() needs an argument '{parameter.name}' that nobody gives."
                        f"{closest(parameter.name, CONTEXT)} It may name: {known}.",
                        place,
                    )
                )
    return problems


def _check_reference(target: object, module: ModuleSpec, place: Place) -> list[Problem]:
    try:
        url, name = reference_of(module.url, module.name, target)
        if (url, name) != (module.url, module.name):
            load(url, name)
    except PluginError as error:
        return [Problem(f"the `reference` of {module.name} can't be used: {error}", place)]
    return []


def check_task(algorithm: AlgorithmSpec, report: object) -> list[Problem]:
    """`check_algorithm` as a task of an engine."""
    return check_algorithm(algorithm)
