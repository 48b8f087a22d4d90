"""Metrics by `url`: makes a `Metric` of an author's function or class.

The object is a function `(y_true, y_pred) -> number | mapping`, a class, or the result of `score_metric` or
`matrix_metric`. docs/metrics.md and docs/extending.md say how it is called. A class is built for each evaluation; one
with state over rounds, whose update() takes `round` first, is built once for each test set.
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ianvs.base.errors import ConfigError, PluginError, ValidationError, closest, code_of, one_line, shown_path
from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics.metric import REFERENCES, EvaluationRecord, Fed, Labels, Metric
from ianvs.exam.metrics.packed_replies import Replies
from ianvs.plugins.signature import BY_NAME

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def from_object(spec: MetricSpec, obj: object) -> Metric:
    """Return the metric that `obj`, found under `spec.name` in the file at `spec.url`, defines.

    Its flag `mapping` stays False: whether it returns a mapping shows when it is called. Raises PluginError if `obj`
    is no metric, ConfigError (with the place in the testenv) if the options of `spec` don't fit it.
    """
    if isinstance(obj, Metric):
        return _configure_decorated(spec, obj)
    where = _named(spec)
    options = dict(spec.options)
    accumulates = inspect.isclass(obj)
    named = _parameters(getattr(obj, "update", obj) if accumulates else obj)
    by_round = accumulates and named[:1] == ["round"]
    arguments = named[:1] if by_round else []
    counted = named[len(arguments) :][:1] == ["confusion"]
    arguments += ["confusion"] if counted else ["y_true", "y_pred"]
    if not callable(obj):
        raise PluginError(
            f"{where} is a {type(obj).__name__}. A metric is a function (y_true, y_pred) -> number, a class with "
            "update(y_true, y_pred) and compute(), or a function under @score_metric or @matrix_metric.",
            code="broken-contract",
        )
    needs = getattr(obj, "needs", ())
    if isinstance(needs, str) or not all(isinstance(name, str) for name in needs):
        raise PluginError(
            f"{where}: `needs` is {needs!r}; it must be a list of names of columns that the dataset has.",
            code="broken-contract",
        )
    build: Callable[..., Any] = obj
    if accumulates:
        _check_method(where, build, "update", arguments, needs)
        _check_method(where, build, "compute", [])
    _check(spec, build, 0 if accumulates else len(arguments), () if accumulates else needs)

    def seen(record: EvaluationRecord) -> list[Labels]:
        labels = [part for part in (record.y_true, record.y_pred) if part is not None]
        if not counted and len(labels) < 2:
            raise PluginError(
                f"{where} needs the label of every sample, and of this evaluation only a confusion matrix is stored. "
                "Run the case again (`--rerun`), or let the metric take an argument `confusion`, that matrix.",
                code="missing-predictions",
            )
        return [record.confusion.copy()] if counted else [_private_copy(part) for part in labels]

    def score(state: Any, round_: int, record: EvaluationRecord) -> object:
        columns = {name: _private_copy(record.column(name)) for name in needs}
        if not accumulates:
            return build(*seen(record), **columns, **options)
        state.update(*([round_] if by_round else []), *seen(record), **columns)
        return state.compute()

    def function(record: EvaluationRecord) -> float | dict[str, float]:
        return _call_metric(where, lambda: score(build(**options) if accumulates else None, 1, record))

    def accumulate() -> Fed:
        state = build(**options)
        return lambda round_, record: _call_metric(where, lambda: score(state, round_, record))

    direction = getattr(obj, "higher_is_better", None)
    if not isinstance(direction, bool | None):
        raise PluginError(
            f"{where}: `higher_is_better` is {direction!r}; it must be True or False.", code="broken-contract"
        )
    file = shown_path(spec.url) if spec.url else ""
    summary = (inspect.getdoc(obj) or "").partition("\n")[0] if obj.__doc__ else ""
    return Metric(
        spec.name,
        level="score",
        summary=summary or f"Defined in {file}." if file else summary,
        higher_is_better=direction is not False,
        direction_known=direction is not None,
        source=file,
        needs=tuple(needs),
        function=function,
        pictures=not counted,
        accumulate=accumulate if by_round else None,
    )


def _configure_decorated(spec: MetricSpec, metric: Metric) -> Metric:
    """Return a decorated metric with the options of `spec`. Raises ConfigError and PluginError."""
    where = _named(spec)
    function = metric.function
    if function is None:
        raise PluginError(
            f"{where} has no function. Write one under @score_metric or @matrix_metric.", code="broken-contract"
        )
    if spec.options:
        raise ConfigError(
            ValidationError(
                f"metric '{spec.name}' is under a decorator and has no option '{name}'.",
                spec.place,
                code="unknown-option",
            )
            for name in spec.options
        )
    if compared := [role for role in metric.needs if role in REFERENCES and role != "untrained"]:
        message = (
            f"metric '{spec.name}' compares with reference runs ({', '.join(compared)}), and what a `url` brings is "
            "computed with each case, before these are there. Bring it with a package: docs/extending.md#a-metric."
        )
        raise ConfigError([ValidationError(message, spec.place, code="unfit-metric")])

    def guarded(seen: Any) -> object:
        try:
            return function(seen)
        except PluginError as error:  # the wrong shape of a matrix metric, which does not know its file
            raise PluginError(
                f"{shown_path(spec.url)}: {error}" if spec.url else str(error), code=code_of(error, "broken-contract")
            ) from None

    def evaluate(seen: Any) -> float | dict[str, float]:
        if isinstance(seen, EvaluationRecord):  # a matrix is already private to each metric
            seen = replace(seen, y_true=_private_copy(seen.y_true), y_pred=_private_copy(seen.y_pred))
        return _call_metric(where, lambda: guarded(seen))

    source = metric.source or (shown_path(spec.url) if spec.url else "")
    return replace(metric, name=spec.name, aliases=(), source=source, function=evaluate)


def _private_copy(labels: Any) -> Any:
    """Return a copy, since a metric that sorts in place must not change the input of the next.

    Masks are copied on access.
    """
    return np.array(labels) if isinstance(labels, np.ndarray | Replies) else labels


def _call_metric(where: str, compute: Callable[[], object]) -> float | dict[str, float]:
    """Return the number, or numbers by part, that `compute` returns. Raises PluginError for anything else."""
    try:
        value = compute()
    except Exception as error:
        error.add_note(f"while {where} was computed")
        raise
    if not isinstance(value, Mapping):
        return _number(value, where)
    if not value:
        wanted = "a number or a mapping of names to numbers"
        raise PluginError(f"{where} returned an empty mapping; it must return {wanted}.", code="invalid-result")
    return {str(part): _number(number, f"{where}, part '{part}',") for part, number in value.items()}


def _parameters(called: object) -> list[str]:
    """Return the parameters' names, without self; [] if the function has no signature."""
    if not callable(called):
        return []
    try:
        return [name for name in inspect.signature(called).parameters if name != "self"]
    except (TypeError, ValueError):
        return []


def _named(spec: MetricSpec) -> str:
    return f"metric '{spec.name}' ({shown_path(spec.url)})" if spec.url else f"metric '{spec.name}'"


def _check_method(where: str, build: object, name: str, arguments: Sequence[str], columns: Sequence[str] = ()) -> None:
    method = getattr(build, name, None)
    if not callable(method):
        raise PluginError(
            f"{where} is a class without {name}(). A metric has update(y_true, y_pred) and compute().",
            code="broken-contract",
        )
    try:
        inspect.signature(method).bind(None, *arguments, **dict.fromkeys(columns))  # with self
    except TypeError:
        called = f"{name}({', '.join((*arguments, *(f'{column}=...' for column in columns)))})"
        message = f"{where}: {name}{inspect.signature(method)} can't be called as {called}."
        raise PluginError(message, code="broken-contract") from None


def _check(spec: MetricSpec, called: Callable[..., object], leading: int, columns: Sequence[str]) -> None:
    """Raise unless `called` accepts `leading` positional arguments, columns of the dataset and options of `spec`."""
    try:
        signature = inspect.signature(called)
    except ValueError:  # a function of a C extension without a signature
        return
    parameters = list(signature.parameters.values())
    positional = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
    takes_more = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
    if len(positional) < leading and not takes_more:
        raise PluginError(
            f"{_named(spec)} takes {signature}. It is called with two arguments: the true labels and the predictions; "
            "or with one that is called `confusion`.",
            code="broken-contract",
        )
    taken = {parameter.name for parameter in positional[:leading]}
    by_name = {p.name: p for p in parameters if p.kind in BY_NAME and p.name not in taken}
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    if not takes_any and (lacking := [column for column in columns if column not in by_name]):
        raise PluginError(
            f"{_named(spec)} needs the column '{lacking[0]}', and takes no argument of that name: {signature}.",
            code="broken-contract",
        )
    by_name = {name: parameter for name, parameter in by_name.items() if name not in columns}
    unknown = [
        f"metric '{spec.name}' has no option '{name}'.{closest(name, by_name)} "
        + (f"It takes: {one_line(list(by_name))}." if by_name else "It takes none.")
        for name in spec.options
        if name not in by_name and (name in taken or not takes_any)
    ]
    missing = [
        f"metric '{spec.name}' needs the option '{name}': write it as a key beside the metric's name."
        for name, parameter in by_name.items()
        if parameter.default is inspect.Parameter.empty and name not in spec.options
    ]
    problems = [ValidationError(message, spec.place, code="unknown-option") for message in unknown]
    problems += [ValidationError(message, spec.place, code="missing-option") for message in missing]
    if problems:
        raise ConfigError(problems)


def _number(value: Any, where: str) -> float:
    """Convert any value that behaves as one number, such as a torch scalar, to a float; nan means "undefined"."""
    number = math.inf  # values that are no number are refused like infinity
    if not isinstance(value, bool | np.bool_ | str | bytes) and np.ndim(value) == 0:
        with suppress(TypeError, ValueError, OverflowError):
            number = float(value)
    if math.isinf(number):
        hint = " Does the function lack a `return`?" if value is None else " Return nan where it is undefined."
        shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}..."
        raise PluginError(
            f"{where} returned {shown}, not a finite number or a mapping of names to numbers.{hint}",
            code="invalid-result",
        )
    return number
