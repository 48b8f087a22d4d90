"""Scores that can't work on an exam's data, found before anything is trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ianvs.base.errors import IanvsError, Problem
from ianvs.base.types import ScoreMatrix
from ianvs.config.spec import MetricSpec, TestEnvSpec
from ianvs.exam.data.fingerprint import digest_of, read_memo, write_memo
from ianvs.exam.kinds import KINDS, perfect_answers
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.metrics.registry import resolve
from ianvs.exam.scenarios.exam import Exam
from ianvs.running.planning.identity import metric_key
from ianvs.running.scoring.scoring import as_read, score_of

__all__ = ["FITS", "note_fit", "preflight_scores", "scores_fit"]

FITS = "fits"  # folder of the cache


def preflight_scores(exam: Exam, spec: TestEnvSpec) -> list[Problem]:
    """What is wrong with the scores of `spec` for this kind of data; those that are costly to compute are not tried."""
    problems = []
    kind = KINDS[exam.dataset.kind]
    seen = perfect_answers(kind, exam)
    for metric_spec in _tried(spec):
        metric = resolve(metric_spec)
        if metric.level == "matrix" and metric_spec.url is not None:
            tried: EvaluationRecord | ScoreMatrix | None = _perfect_scores(exam)
        elif metric.level == "score" and metric.batch is None:
            tried = as_read(metric, seen)
        else:
            continue
        try:
            score_of(metric_spec, metric, tried)
        except IanvsError as error:
            problems.append(Problem(kind.misfit(metric_spec.name, error), metric_spec.place))
    return problems


def _perfect_scores(exam: Exam) -> ScoreMatrix:
    """Of a learner that makes no mistakes on what it was taught, and knows nothing before."""
    rounds, tests = len(exam.rounds), len(exam.tests)
    return ScoreMatrix.of(np.tri(rounds, tests), untrained=np.zeros(tests))


def scores_fit(cache: Path, exam_id: str, spec: TestEnvSpec) -> bool:
    """Whether `preflight_scores` of these metrics is known to find nothing in the exam."""
    return read_memo(_fit(cache, exam_id, spec)) is not None


def note_fit(cache: Path, exam_id: str, spec: TestEnvSpec) -> None:
    """`preflight_scores` has found nothing."""
    write_memo(_fit(cache, exam_id, spec), exam_id)


def _fit(cache: Path, exam_id: str, spec: TestEnvSpec) -> Path:
    metrics = [metric_key(metric) for metric in _tried(spec)]
    return cache / FITS / f"{digest_of([exam_id, metrics])[:32]}.json"


def _tried(spec: TestEnvSpec) -> list[MetricSpec]:
    return [*spec.metrics, *([spec.gate.metric] if spec.gate else [])]
