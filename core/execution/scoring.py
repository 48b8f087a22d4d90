"""Metrics of a case from what is stored of its evaluations; nothing is trained or predicted again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from core.config.spec import MetricSpec
from core.errors import IanvsError, PluginError
from core.execution.evidence import evidence
from core.execution.request import CaseRequest
from core.metrics.base import Evidence, Metric
from core.metrics.registry import resolve
from core.store import CaseStore, ExamRecord, ExamStore

__all__ = ["score_case", "score_of"]

Score = tuple[float | None, dict[str, float | None] | None]  # the number, and the parts where there are some


def score_case(request: CaseRequest) -> None:
    """Compute the scores of `request` that are not there yet: on every test set after every round."""
    cases, exams = CaseStore(request.exam.workspace), ExamStore(request.exam.workspace)
    missing = [(spec, key) for spec, key in request.scores if not cases.has_score(request.case.id, key)]
    if not missing:
        return
    record = exams.record(request.exam.exam_id)
    if record is None:
        raise FileNotFoundError(f"{exams.folder(request.exam.exam_id)} is gone: run the job again to make it anew")
    truth = exams.truth(request.exam.exam_id)
    rounds = cases.complete_rounds(request.case.id)
    seen: list[list[Evidence | None]] = []
    between: dict[int, list[Evidence | None]] = {}
    for round_ in rounds:
        stored = cases.predictions(request.case.id, round_.index)
        seen.append(_row(record, truth, stored))
        between |= {n: _row(record, truth, stored, f"@{n}") for n, _, _ in round_.examined[:-1]}
    for spec, key in missing:
        metric = resolve(spec)
        rows, about = _scores(spec, metric, [*seen, *between.values()])
        found, found_between = rows[: len(seen)], rows[len(seen) :]
        cases.write_score(
            request.case.id,
            key,
            [[number for number, _ in row] for row in found],
            [[parts for _, parts in row] for row in found],
            {n: [number for number, _ in row] for n, row in zip(between, found_between, strict=True)},
            about,
        )


def _row(
    record: ExamRecord, truth: Sequence[NDArray[Any]], stored: Mapping[str, NDArray[Any]], when: str = ""
) -> list[Evidence | None]:
    """[j] what is known of test set j; None where it was not asked. when: "@<samples>" within a stream."""
    return [
        evidence(record, j, labels, stored[f"{j}{when}"], stored.get(f"probe_{j}{when}"))
        if f"{j}{when}" in stored
        else None
        for j, labels in enumerate(truth)
    ]


def _scores(
    spec: MetricSpec, metric: Metric, rows: Sequence[Sequence[Evidence | None]]
) -> tuple[list[list[Score]], Mapping[str, str]]:
    """(the score of each cell, what it was computed with): all at once where that is cheaper."""
    if metric.batch is None:
        return [[score_of(spec, metric, cell) for cell in row] for row in rows], {}
    values, about = _guarded(spec, metric.batch, [cell for row in rows for cell in row if cell is not None])
    left = iter(values)
    return [[_score(spec, metric, None if cell is None else next(left)) for cell in row] for row in rows], about


def score_of(spec: MetricSpec, metric: Metric, seen: Evidence | None) -> Score:
    """(number, parts): a metric that yields a mapping gives parts, and its number is the part of its own name."""
    if seen is None or metric.function is None:
        return None, None
    return _score(spec, metric, _guarded(spec, metric.function, seen))


def _guarded(spec: MetricSpec, function: Callable[[Any], Any], seen: Any) -> Any:
    """What the metric's function says; its own errors under the metric's name."""
    try:
        return function(seen)
    except IanvsError:
        raise
    except Exception as error:
        raise PluginError(f"metric '{spec.name}' failed: {type(error).__name__}: {error}") from error


def _score(spec: MetricSpec, metric: Metric, value: Any) -> Score:
    if isinstance(value, Mapping):
        parts = {str(name): _finite(part) for name, part in value.items()}
        return parts.get(spec.name, parts.get(metric.name)), parts
    return (None if value is None else _finite(value)), None


def _finite(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
