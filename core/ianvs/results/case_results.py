"""Case directories -> CaseResult: scores, matrices, and every column of the leaderboard."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import SupportsFloat

import numpy as np
from numpy.typing import NDArray

from ianvs.config.spec import BudgetSpec, MetricSpec
from ianvs.metrics.metric import Metric
from ianvs.metrics.system import measured
from ianvs.results.reference_scores import ReferenceScores
from ianvs.session.budget import over_budget
from ianvs.store import CaseStore, ExamRecord
from ianvs.types import CaseResult, Curve, Measure, RoundResult, ScoreMatrix, TestCase

__all__ = ["read_case"]


def read_case(
    store: CaseStore,
    case: TestCase,
    exam: ExamRecord | None,
    metrics: Sequence[tuple[MetricSpec, Metric, str]],
    references: ReferenceScores | None,
    budget: BudgetSpec | None,
) -> CaseResult:
    """What the case's directory says, with `metrics` (spec, metric, key) computed from it.

    budget: of the exam as it is now; what was measured is held against it. References and bounds have none.
    """
    status = store.status(case.id) or "unfinished"
    stored = store.result(case.id) or {}
    bound = bool(stored.get("bound", False))
    rounds = store.complete_rounds(case.id)
    judged = () if bound or case.role else rounds[1:]
    names = tuple(round_.name for round_ in rounds[1:])
    matrices: dict[str, ScoreMatrix] = {}
    details: dict[str, object] = {}
    if exam is not None:
        for spec, metric, key in metrics:
            if metric.level == "score" and (found := store.score(case.id, key)) is not None:
                values, parts, between = found
                if values.size:
                    matrices[spec.name] = ScoreMatrix(
                        values,
                        spec.name,
                        names,
                        exam.tests,
                        curve=_curve(values, between, rounds),
                        joint=references.vector(case.id, "joint", spec.name) if references else None,
                        single_task=references.vector(case.id, "single_task", spec.name) if references else None,
                    )
                if any(part for row in parts for part in row):
                    details[spec.name] = parts
    numbers: dict[str, float | None] = {}
    if status == "finished":
        primary = next((spec.name for spec, metric, _ in metrics if metric.level == "score"), None)
        for spec, metric, _ in metrics:
            if metric.mapping:
                continue  # several numbers: in `details`
            if metric.level == "system":
                numbers[spec.name] = measured(metric.name, rounds)
            elif metric.level == "score":
                some = metric.partial or (exam is not None and exam.rules.get("asked") == "future")
                numbers[spec.name] = _final_score(matrices.get(spec.name), some)
            else:
                score = spec.of or primary or ""
                numbers[spec.name] = _over_matrix(metric, matrices.get(score))
    return CaseResult(
        case=case,
        status=status,
        dataset=exam.dataset if exam else "",
        round_names=names or (exam.rounds if exam else ()),
        directory=store.folder(case.id),
        failure=store.failure(case.id),
        bound=bound,
        basemodel=str(stored.get("basemodel", "")),
        rounds=rounds,
        notes=exam.notes if exam else (),
        remark=rounds[-1].remark if rounds else "",
        matrices=matrices,
        over_budget=tuple(over for round_ in judged for over in over_budget(budget, round_)),
        details=details,
        metrics=numbers,
        measures={name: Measure(**told) for name, told in stored.get("measures", {}).items()},
        finished_at=stored.get("finished_at"),
        provenance=stored.get("provenance", {}),
    )


def _curve(
    values: NDArray[np.float64], between: Mapping[int, NDArray[np.float64]], rounds: Sequence[RoundResult]
) -> Curve:
    """Examinations within rounds and at their ends, in the order of time; without the untrained model."""
    points: list[tuple[int, int, int, NDArray[np.float64]]] = []
    arrived = 0
    for round_ in rounds[1 : len(values)]:
        points += [(n, begun, ended, between[n]) for n, begun, ended in round_.examined[:-1] if n in between]
        arrived += round_.train_samples
        n = round_.examined[-1][0] if round_.examined else arrived
        points.append((n, round_.index, round_.index, values[round_.index]))
    return Curve(
        np.array([point[0] for point in points], dtype=np.int64),
        np.array([point[1] for point in points], dtype=np.int64),
        np.array([point[2] for point in points], dtype=np.int64),
        np.array([point[3] for point in points]).reshape(len(points), values.shape[1]),
    )


def _final_score(matrix: ScoreMatrix | None, some: bool) -> float | None:
    """After the last round, over the test sets: each counts the same, whatever its size.

    some: whether test sets that were not asked, or that the score is not defined for, are left out.
    """
    if matrix is None:
        return None
    last = matrix.values[-1]
    if some:
        last = last[~np.isnan(last)]
    return _finite(np.mean(last)) if last.size else None


def _over_matrix(metric: Metric, matrix: ScoreMatrix | None) -> float | None:
    if matrix is None or metric.function is None:
        return None
    value = metric.function(matrix)
    return None if isinstance(value, Mapping) else _finite(value)


def _finite(value: SupportsFloat) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
