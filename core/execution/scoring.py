"""Metrics of a case from what is stored of its evaluations; nothing is trained or predicted again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from core.config.spec import MetricSpec
from core.errors import PluginError
from core.execution.evidence import evidence
from core.execution.request import CaseRequest
from core.metrics.base import Evidence, Metric
from core.metrics.registry import resolve
from core.store import CaseStore, ExamStore

__all__ = ["score_case", "score_of"]


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
    rounds = len(cases.complete_rounds(request.case.id))
    seen: list[list[Evidence | None]] = []
    for index in range(rounds):
        stored = cases.predictions(request.case.id, index)
        seen.append(
            [
                evidence(record, j, labels, stored[str(j)]) if str(j) in stored else None
                for j, labels in enumerate(truth)
            ]
        )
    for spec, key in missing:
        metric = resolve(spec)
        found = [[score_of(spec, metric, cell) for cell in row] for row in seen]
        cases.write_score(
            request.case.id,
            key,
            [[number for number, _ in row] for row in found],
            [[parts for _, parts in row] for row in found],
        )


def score_of(
    spec: MetricSpec, metric: Metric, seen: Evidence | None
) -> tuple[float | None, dict[str, float | None] | None]:
    """(number, parts): a metric that yields a mapping gives parts, and its number is the part of its own name."""
    if seen is None or metric.function is None:
        return None, None
    try:
        value = metric.function(seen)
    except PluginError:
        raise
    except Exception as error:
        raise PluginError(f"metric '{spec.name}' failed: {type(error).__name__}: {error}") from error
    if isinstance(value, Mapping):
        parts = {str(name): _finite(part) for name, part in value.items()}
        return parts.get(spec.name), parts
    return _finite(value), None


def _finite(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
