"""Checks an algorithm's plugins against the contract and its grid against their constructors, without training them."""

import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from ianvs.base.error_codes import ErrorCode
from ianvs.base.errors import IanvsError, Location, PluginError, ValidationError, closest, shown_path
from ianvs.config.contracts import interpreter_of
from ianvs.config.spec import AlgorithmSpec, ModuleSpec
from ianvs.plugins.contract import CONTEXT, EXAM_FACTS
from ianvs.plugins.loader import Loaded, cause, load_once, reference_of
from ianvs.plugins.missing_folders import folder_never_made, missing_folder_text
from ianvs.plugins.mode_switch import lacks_train
from ianvs.plugins.signature import BY_NAME, constructor_parameters, misnamed, named_arguments
from ianvs.plugins.value_types import type_problems, value_place
from ianvs.processes.interpreters.author_object import load_in
from ianvs.processes.isolated import IsolatedCallError

NO_CUDA = "device is cuda, but torch finds no CUDA device on this machine. Use `device: auto` or `cpu`."

_PROBLEMS = TypeAdapter(tuple[ValidationError, ...])


class Needed(NamedTuple):
    """A method that the base model needs for an evaluation task of the testenv, by the task's name."""

    evaluation_task: str
    method: str
    wanted: str
    shows_labels: bool


@dataclass(frozen=True)
class Subject:
    """A module of an algorithm to be checked.

    Attributes:
        methods: Required methods of its class.
        choices: Hyperparameters to build it with, which its constructor may reject.
        exam: The facts of an exam (EXAM_FACTS) that the plugin is asked about; None: not known yet.
    """

    algorithm: AlgorithmSpec
    module: ModuleSpec
    methods: tuple[str, ...]
    choices: tuple[Mapping[str, object], ...]
    device: str = "auto"
    device_place: Location | None = None
    exam: Mapping[str, object] | None = None
    needed: tuple[Needed, ...] = ()

    @property
    def place(self) -> Location:
        return self.module.places.get("name") or self.module.place or Location(self.algorithm.file)


@dataclass(frozen=True)
class CheckResult:
    """The result of a check. asks: whether the plugin wants the facts of an exam."""

    problems: tuple[ValidationError, ...]
    asks: bool


def check_result(subject: Subject, facts: Mapping[str, Any], answers: Iterator[Any]) -> CheckResult:
    """Return the result of a check from the first answer of `check_plugin` and the further `answers`.

    Equal messages of the constructor, or of check_exam() if there is an exam, for many choices are reported once.
    """
    module = subject.module
    by_message: dict[tuple[str, bool], list[Mapping[str, object]]] = {}
    try:
        # There are no further messages after problems.
        for (message, warning), choice in zip(answers, subject.choices, strict=False):
            if message:
                by_message.setdefault((message, warning), []).append(choice)
    except IsolatedCallError as error:
        return interrupted_check(subject, str(error), f"building {module.name}")
    problems = [*_PROBLEMS.validate_python(facts["problems"])]
    for (message, warning), choices in by_message.items():
        refusal = "" if warning else " can't be built" if subject.exam is None else " can't take this exam"
        place = _message_place(subject, message, choices[0])
        code: ErrorCode = "doubtful-arguments" if warning else "refused-arguments"
        problems.append(ValidationError(f"{module.name}{refusal}: {message}", place, warning=warning, code=code))
    return CheckResult(tuple(problems), facts["asks"])


def interrupted_check(subject: Subject, why: str, doing: str = "") -> CheckResult:
    """Return the result for a plugin whose process ended while it was `doing` something; at first it is imported."""
    module = subject.module
    doing = doing or "importing " + (f"'{module.name}'" if module.url is None else shown_path(module.url))
    place = module.places.get("name") or subject.algorithm.place or Location(subject.algorithm.file)
    return CheckResult(
        (ValidationError(f"{doing} of {subject.algorithm.name} {why}.", place, code="unloadable-plugin"),), asks=False
    )


def check_plugin(subject: Subject) -> Iterator[object]:
    """Yield the problems of the class, and whether it has check_exam.

    Then, without problems, the result of each choice.

    A result is [error or warning, "" for none; whether it is a warning].
    """
    module, problems, asks = subject.module, [], False
    if subject.exam is None:
        problems = _check_module(subject)
    loaded = None if problems else _loaded(subject)
    if loaded is not None:
        torch = sys.modules.get("torch")  # everything is imported now
        if subject.device == "cuda" and torch is not None and not torch.cuda.is_available():
            problems.append(ValidationError(NO_CUDA, subject.device_place, code="missing-device"))
        asks = callable(getattr(loaded.target, "check_exam", None))
        save = getattr(loaded.target, "save", None)
        if (
            subject.exam is None
            and "save" in subject.methods
            and callable(save)
            and (folder := folder_never_made(save))
        ):
            message = missing_folder_text(module.name, folder)
            problems.append(ValidationError(message, subject.place, warning=True, code="missing-file"))
    yield {"problems": _PROBLEMS.dump_python(tuple(problems), mode="json"), "asks": asks}
    if loaded is not None:
        for choice in subject.choices:
            yield _message_and_severity(module, loaded, choice, subject.exam)


def _message_and_severity(
    module: ModuleSpec, loaded: Loaded, choice: Mapping[str, object], exam: Mapping[str, object] | None
) -> tuple[str, bool]:
    """Return (error or warning, "" for none; whether it is a warning)."""
    try:
        with loaded.active() as build:
            plugin = build(**choice)
            warning = None if exam is None else plugin.check_exam(**named_arguments(plugin.check_exam, exam))
    except IanvsError as error:
        return str(error), False
    except Exception as error:
        file = module.url if module.url is not None and module.url.endswith(".py") else None
        return cause(error, None if file is None else Path(file).resolve()), False
    return (warning if isinstance(warning, str) else ""), True


def _message_place(subject: Subject, message: str, choice: Mapping[str, object]) -> Location:
    """Return the place of the first hyperparameter that a message names, else of the plugin's name."""
    module = subject.module
    named = {match.start(): name for name in choice if (match := re.search(rf"\b{re.escape(name)}\b", message))}
    if named:
        name = named[min(named)]
        values = dict(module.grid).get(name, ())
        same = [index for index, value in enumerate(values) if value is choice[name] or value == choice[name]]
        place = value_place(module, name, same[0] if same else 0)
        if place is not None:
            return place
    return subject.place


def _loaded(subject: Subject) -> Loaded:
    return load_in(interpreter_of(subject.algorithm), subject.module.url, subject.module.name, once=True)


def _check_module(subject: Subject) -> list[ValidationError]:
    module, place = subject.module, subject.place
    try:
        target = _loaded(subject).target
    except PluginError as error:
        return [ValidationError.from_exception(error, place, "unloadable-plugin")]
    if not callable(target):
        return [ValidationError(f"'{module.name}' is not a class.", place, code="unloadable-plugin")]
    broken = (
        list(_method_errors(target, module.name, subject.methods, subject.needed)) if isinstance(target, type) else []
    )
    problems = [
        ValidationError(message, place, code="broken-contract")
        for message in (*broken, *_check_reference(target, module))
    ]
    takes = constructor_parameters(target)
    built_with = sorted({name for choice in subject.choices for name in choice})
    given = list(dict.fromkeys([*dict(module.grid), *module.constants, *built_with]))
    problems += [
        ValidationError(
            message,
            module.places.get(name, place),
            code="unknown-hyperparameter" if name in given else "missing-hyperparameter",
        )
        for name, message in misnamed(module.name, "hyperparameter", takes, given)
    ]
    return [*problems, *type_problems(module, takes, place)]


def _method_errors(target: type, name: str, methods: Sequence[str], requirements: Sequence[Needed]) -> Iterator[str]:
    """Yield the missing `methods` of class `name`, and required arguments of its methods that are never passed."""
    missing = [method for method in methods if not callable(getattr(target, method, None))]
    if "train" in methods and lacks_train(target):
        yield (
            f"{name} lacks the method train(train_data, **context): the train() that it has is that of "
            "torch.nn.Module, which only switches between training and evaluation. Add it; "
            "train(True), train(False) and eval() stay PyTorch's."
        )
    for requirement in requirements:
        out = f"or take `{requirement.evaluation_task}: true` and the metrics that read it out of the testenv."
        if not callable(getattr(target, requirement.method, None)):
            lack = f"{name} lacks the method {requirement.method}(data, **context), which the testenv needs. It returns"
            yield f"{lack} {requirement.wanted}. Add it, {out}"
        if requirement.shows_labels and getattr(target, "adapts_in_testing", False):
            yield f"{name} learns while it is tested, so it can't be given the true replies. Remove it, {out}"
    if missing:
        yield f"{name} lacks the method{'s' if len(missing) > 1 else ''} {', '.join(missing)}."
    # A required argument that no exam provides would fail only after loading the data.
    for method, given, offered in (("train", 1, CONTEXT), ("predict", 1, CONTEXT), ("check_exam", 0, EXAM_FACTS)):
        function = getattr(target, method, None)
        parameters = list(inspect.signature(function).parameters.values()) if callable(function) else []
        for parameter in parameters[1 + given :]:
            needed = parameter.default is parameter.empty and parameter.kind in BY_NAME
            if needed and parameter.name not in (*offered, "valid_data"):
                hint = f"{closest(parameter.name, offered)} It may name: {', '.join(offered)}."
                yield f"{name}.{method}() requires an unknown argument '{parameter.name}'.{hint}"


def _check_reference(target: object, module: ModuleSpec) -> Iterator[str]:
    try:
        url, name = reference_of(module.url, module.name, target)
        if (url, name) != (module.url, module.name):
            load_once(url, name)
    except PluginError as error:
        yield f"the `reference` of {module.name} can't be used: {error}"
