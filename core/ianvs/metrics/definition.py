"""Turns a formula into a `Metric`: the decorated function becomes the entry of the table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ianvs.metrics.curves import checked, rows_as_curve
from ianvs.metrics.metric import EvaluationRecord, Metric
from ianvs.types import Curve, ScoreMatrix

__all__ = ["MatrixMetric", "defined_in", "matrix_metric", "mean", "score_metric"]

Array = NDArray[np.float64]
M = TypeVar("M", bound=Metric)


@dataclass(frozen=True)
class MatrixMetric(Metric):
    """A metric over a score matrix.

    series: its (T,) values after each round, the last of which is the metric; None where its source defines only the
    value after the last round.
    """

    series: Callable[[ScoreMatrix], Array] | None = field(default=None, compare=False, repr=False)


def mean(values: Iterable[float] | Array) -> float:
    """Arithmetic mean. nan if any value is nan, and nan of nothing: what can't be computed is never 0."""
    values = np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64)
    return float(values.mean()) if values.size else float("nan")


def score_metric(
    name: str,
    *,
    formula: str,
    source: str,
    aliases: tuple[str, ...] = (),
    mapping: bool = False,
    partial: bool = False,
) -> Callable[[Callable[[EvaluationRecord], float | Mapping[str, float]]], Metric]:
    """Decorate a function of `EvaluationRecord`. Higher is better."""

    def define(function: Callable[[EvaluationRecord], float | Mapping[str, float]]) -> Metric:
        return Metric(
            name,
            level="score",
            summary=_first_line(function),
            source=source,
            formula=formula,
            aliases=aliases,
            function=function,
            mapping=mapping,
            partial=partial,
        )

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
) -> Callable[[Callable[..., float | Array]], MatrixMetric]:
    """Decorate a function of `R` and whichever of `untrained`, `joint`, `single_task`, `curve` it names as parameters.

    The metric is nan without a reference that the function names. Without a curve it is handed the rows of R as one.
    square: the formula needs one test set per round, and is nan when R has another number of columns than rows.
    by_round: the function returns the (T,) values after each round, the last of which is the metric.
    """

    def define(function: Callable[..., float | Array]) -> MatrixMetric:
        takes = tuple(inspect.signature(function).parameters)[1:]
        needs = tuple(name for name in takes if name != "curve")

        def series(inputs: ScoreMatrix) -> Array:
            arguments = _arguments(inputs, takes, square)
            values = np.full(len(inputs.R), np.nan) if arguments is None else function(*arguments)
            return np.atleast_1d(np.asarray(values, dtype=np.float64))

        def evaluate(inputs: ScoreMatrix) -> float:
            values = series(inputs)
            return float(values[-1]) if values.size else float("nan")

        evaluate.__doc__ = series.__doc__ = function.__doc__
        return MatrixMetric(
            name, "matrix", _first_line(function), higher_is_better, source, formula, aliases, needs, evaluate,
            series=series if by_round else None,
        )  # fmt: skip

    return define


def defined_in(module: Mapping[str, object], kind: type[M]) -> tuple[M, ...]:
    """The metrics that stand in a module's namespace, in the order of their definition."""
    return tuple(value for value in module.values() if isinstance(value, kind))


def _arguments(inputs: ScoreMatrix, takes: tuple[str, ...], square: bool) -> list[Array | Curve] | None:
    """What a formula is called with; None where it is undefined."""
    R = np.asarray(inputs.R, dtype=np.float64)
    if square and R.shape[0] != R.shape[1]:
        return None
    arguments: list[Array | Curve] = [R]
    for name in takes:
        if name == "curve":
            arguments.append(rows_as_curve(R) if inputs.curve is None else checked(inputs.curve, R.shape[1]))
            continue
        reference = getattr(inputs, name)
        if reference is None:
            return None
        reference = np.asarray(reference, dtype=np.float64)
        if reference.shape != (R.shape[1],):
            raise ValueError(
                f"`{name}` has shape {reference.shape}; one score for each of {R.shape[1]} test sets fits R"
            )
        arguments.append(reference)
    return arguments


def _first_line(function: Callable[..., object]) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0]
