"""Case directories -> CaseResult: scores, matrices, and every column of the leaderboard."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from core.config.spec import MetricSpec
from core.execution.references import ROLES, References
from core.metrics.base import MatrixInputs, Metric
from core.store import CaseStore, ExamRecord
from core.types import CaseResult, RoundResult, ScoreMatrix, TestCase

__all__ = ["read_case"]


def read_case(
    store: CaseStore,
    case: TestCase,
    exam: ExamRecord | None,
    metrics: Sequence[tuple[MetricSpec, Metric, str]],
    references: References | None = None,
) -> CaseResult:
    """What the case's directory says, with `metrics` (spec, metric, key) computed from it."""
    status = store.status(case.id) or "unfinished"
    stored = store.result(case.id) or {}
    rounds = store.complete_rounds(case.id)
    matrices: dict[str, ScoreMatrix] = {}
    details: dict[str, Any] = {}
    if exam is not None:
        for spec, metric, key in metrics:
            if metric.level == "score" and (found := store.score(case.id, key)) is not None:
                values, parts = found
                if values.size:
                    matrices[spec.name] = ScoreMatrix(spec.name, exam.rounds, exam.tests, values)
                if any(part for row in parts for part in row):
                    details[spec.name] = parts
    numbers: dict[str, float | None] = {}
    if status == "finished":
        primary = next((spec.name for spec, metric, _ in metrics if metric.level == "score"), None)
        for spec, metric, _ in metrics:
            if metric.mapping:
                continue  # several numbers: in `details`
            if metric.level == "system":
                numbers[spec.name] = _system(metric.name, rounds)
            elif metric.level == "score":
                numbers[spec.name] = _final_score(matrices.get(spec.name), metric)
            else:
                score = spec.of or primary or ""
                numbers[spec.name] = _over_matrix(metric, matrices.get(score), case.seed, references)
    return CaseResult(
        case=case,
        status=status,
        dataset=exam.dataset if exam else "",
        round_names=exam.rounds if exam else (),
        directory=store.folder(case.id),
        failure=store.failure(case.id),
        bound=bool(stored.get("bound", False)),
        rounds=rounds,
        matrices=matrices,
        details=details,
        metrics=numbers,
        finished_at=stored.get("finished_at"),
        provenance=stored.get("provenance", {}),
    )


def _final_score(matrix: ScoreMatrix | None, metric: Metric) -> float | None:
    """After the last round, over the test sets: each counts the same, whatever its size."""
    if matrix is None:
        return None
    last = matrix.values[-1]
    if metric.partial:
        last = last[~np.isnan(last)]
    return _finite(np.mean(last)) if last.size else None


def _over_matrix(metric: Metric, matrix: ScoreMatrix | None, seed: int, references: References | None) -> float | None:
    if matrix is None or metric.function is None:
        return None
    found = {role: references.vector(role, seed, matrix.metric) for role in ROLES} if references else {}
    value = metric.function(MatrixInputs(R=matrix.values[1:], untrained=matrix.values[0], **found))
    return None if isinstance(value, dict) else _finite(value)


def _system(name: str, rounds: Sequence[RoundResult]) -> float | None:
    """A measured quantity of a whole case. Times are sums, memory and sizes are maxima over the rounds."""

    def largest(values: list[int | None], unit: float) -> float | None:
        known = [value for value in values if value is not None]
        return max(known) / unit if known else None

    trained = [round_ for round_ in rounds if round_.index]
    train_seconds = sum(round_.train_seconds for round_ in trained)
    samples = sum(round_.train_samples for round_ in trained)
    mega = 1e6
    measured: dict[str, float | None] = {
        "train_seconds": train_seconds,
        "eval_seconds": sum(round_.eval_seconds for round_ in rounds),
        "samples_per_second": samples / train_seconds if train_seconds else None,
        "peak_memory_mb": largest([round_.peak_memory_bytes for round_ in rounds], mega),
        "peak_gpu_memory_mb": largest([round_.peak_gpu_bytes for round_ in rounds], mega),
        "model_size_mb": largest([round_.model_bytes for round_ in rounds], mega),
        "memory_samples": largest([round_.memory_samples for round_ in rounds], 1.0),
        "memory_mb": largest([round_.memory_bytes for round_ in rounds], mega),
        # Every sample of a round is looked at and brought over for training: Ianvs's quotient has 1 added below.
        "samples_transfer_ratio": samples / (samples + 1),
    }
    return measured[name]


def _finite(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
