"""Decorators that turn a formula into a `Metric`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import InvalidValue, PluginError, closest
from ianvs.base.types import Curve, ScoreMatrix
from ianvs.exam.metrics.metric import Array, EvaluationRecord, Metric, Unit
from ianvs.exam.metrics.stream_record import StreamRecord

_BESIDE_R = ("untrained", "joint", "single_task", "curve")

Score = Callable[[EvaluationRecord], float | Mapping[str, float]]


class _ScoreFields(TypedDict, total=False):
    """Fields of `Metric` that `score_metric` accepts."""

    aliases: tuple[str, ...]
    asks: tuple[str, ...]
    higher_is_better: bool
    mapping: bool
    mean_of: Callable[[EvaluationRecord], NDArray[Any]]
    needs: tuple[str, ...]
    partial: bool
    pictures: bool
    pooled: bool
    over_rounds: Literal["last", "mean"]


def mean(values: Iterable[float] | Array) -> float:
    """Return the arithmetic mean; nan if a value is nan or there are no values."""
    values = np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64)
    return float(values.mean()) if values.size else float("nan")


def score_metric(name: str, *, formula: str, source: str, **more: Unpack[_ScoreFields]) -> Callable[[Score], Metric]:
    """Decorate a function of an `EvaluationRecord` as a score.

    The first line of the function's docstring is the metric's summary.

    Args:
        name: The name in a testenv.
        formula: The formula, as text.
        source: The citation.
        **more: Further fields of `Metric`.
    """

    def define(function: Score) -> Metric:
        summary = _first_line(function)
        return Metric(name, "score", summary, source=source, formula=formula, function=function, **more)

    return define


def stream_metric(
    name: str, *, formula: str, source: str, higher_is_better: bool = True, needs: tuple[str, ...] = ()
) -> Callable[[Callable[[StreamRecord], float]], Metric]:
    """Decorate a function of a `StreamRecord` as a metric of prequential exams.

    Args:
        name: The name in a testenv.
        formula: The formula, as text.
        source: The citation.
        higher_is_better: The direction.
        needs: Reference runs that it needs.
    """

    def define(function: Callable[[StreamRecord], float]) -> Metric:
        summary = _first_line(function)
        return Metric(name, "stream", summary, higher_is_better, source, formula, needs=needs, function=function)

    return define


def matrix_metric(
    name: str,
    *,
    formula: str,
    source: str,
    higher_is_better: bool = True,
    aliases: tuple[str, ...] = (),
    square: bool = True,
    by_round: bool = False,
    first_row: bool = False,
    unit: Unit = "change",
) -> Callable[[Callable[..., float | Array]], Metric]:
    """Decorate a function of the score matrix R as a metric.

    The function takes `R`, (T, T), and those of `untrained`, `joint`, `single_task` and `curve` that it names as
    parameters (see `ScoreMatrix`). The metric is nan where a reference run that it names is missing. Without a curve
    the rows of R are the curve. Scores of which less is better are negated before the call: the function always sees
    scores of which more is better.

    Args:
        name: The name in a testenv.
        formula: The formula, as text.
        source: The citation.
        higher_is_better: The direction.
        aliases: Further names.
        square: Whether the formula needs one test set per round. It is nan for other shapes of R.
        by_round: Whether the function returns the (T,) values after each round. The last one is the metric.
        first_row: As in `Metric`.
        unit: What the value is; see `Metric`.
    """

    def define(function: Callable[..., float | Array]) -> Metric:
        takes = tuple(inspect.signature(function).parameters)[1:]
        for taken in takes:
            if taken not in _BESIDE_R:
                hint = f"{closest(taken, _BESIDE_R)} There are: {', '.join(_BESIDE_R)}."
                raise PluginError(
                    f"matrix metric '{name}' names '{taken}', which does not come with R.{hint}",
                    code="broken-contract",
                )
        needs = tuple(name for name in takes if name != "curve")

        def series(inputs: ScoreMatrix) -> Array:
            error = not inputs.higher_is_better
            arguments = _arguments(_negate(inputs) if error else inputs, takes, square)
            values = np.full(len(inputs.R) if by_round else 1, np.nan)
            if arguments is not None:
                values = _require_shape(name, function(*arguments), (len(inputs.R),) if by_round else ())
            return 0.0 - values if error and unit in ("score", "relative change") else values  # never -0.0

        def evaluate(inputs: ScoreMatrix) -> float:
            values = series(inputs)
            return float(values[-1]) if values.size else float("nan")

        evaluate.__doc__ = series.__doc__ = function.__doc__
        return Metric(
            name, "matrix", _first_line(function), higher_is_better, source, formula, aliases, needs, evaluate,
            series=series if by_round else None, unit=unit, first_row=first_row,
        )  # fmt: skip

    return define


def _require_shape(name: str, value: float | Array | None, shape: tuple[int, ...]) -> Array:
    """Return (T,) or (1,). Raises PluginError if a value does not have the metric's declared shape."""
    if value is None:
        raise PluginError(f"metric '{name}' returned None. Does the function lack a `return`?", code="invalid-result")
    values = np.asarray(value, dtype=np.float64)
    if values.shape != shape:
        wanted = (
            "one number a round, as `by_round=True` says" if shape else "one number (with `by_round=True` one a round)"
        )
        raise PluginError(
            f"metric '{name}' returned an array of shape {values.shape}; it must return {wanted}.",
            code="invalid-result",
        )
    return np.atleast_1d(values)


def _arguments(inputs: ScoreMatrix, takes: tuple[str, ...], square: bool) -> list[Array | Curve] | None:
    """Return the arguments of a formula; None if it is undefined."""
    R = np.asarray(inputs.R, dtype=np.float64)
    if square and R.shape[0] != R.shape[1]:
        return None
    arguments: list[Array | Curve] = [R]
    for name in takes:
        if name == "curve":
            # Without a curve the rows of R are the curve, one point per round.
            steps = np.arange(1, len(R) + 1, dtype=np.int64)
            rows = Curve(samples=steps, begun=steps, ended=steps, scores=R)
            arguments.append(rows if inputs.curve is None else _check_curve(inputs.curve, R.shape[1]))
            continue
        reference = getattr(inputs, name)
        if reference is None:
            return None
        reference = np.asarray(reference, dtype=np.float64)
        if reference.shape != (R.shape[1],):
            raise InvalidValue(
                f"`{name}` has shape {reference.shape}; one score for each of {R.shape[1]} test sets fits R"
            )
        arguments.append(reference)
    return arguments


def _check_curve(curve: Curve, tests: int) -> Curve:
    """Return the curve with arrays of the declared types. Raises ValueError if they don't fit each other."""
    samples, begun, ended = (np.asarray(part, np.int64) for part in (curve.samples, curve.begun, curve.ended))
    scores = np.asarray(curve.scores, dtype=np.float64)
    shapes = {samples.shape, begun.shape, ended.shape, scores.shape[:1]}
    if len(shapes) > 1 or scores.ndim != 2 or scores.shape[1] != tests:
        raise InvalidValue(
            f"a curve of E examinations on {tests} test sets has samples, begun, ended (E,) and scores (E, {tests}); "
            f"these are {samples.shape}, {begun.shape}, {ended.shape} and {scores.shape}"
        )
    if any((np.diff(part) < 0).any() for part in (samples, begun, ended)) or (begun < ended).any():
        raise InvalidValue(
            "a curve is in the order of time: samples, begun and ended never fall, begun is never < ended"
        )
    return Curve(samples, begun, ended, scores)


def _negate(inputs: ScoreMatrix) -> ScoreMatrix:
    """Return the same with negated errors, of which more is better."""

    def turned(scores: Array | None) -> Array | None:
        return None if scores is None else 0.0 - np.asarray(scores, dtype=np.float64)

    curve = inputs.curve and replace(inputs.curve, scores=0.0 - np.asarray(inputs.curve.scores, dtype=np.float64))
    joint, single_task = turned(inputs.joint), turned(inputs.single_task)
    return replace(inputs, values=0.0 - inputs.values, joint=joint, single_task=single_task, curve=curve)


def _first_line(function: Callable[..., object]) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0]
