"""What a testenv asks for and its exam can't give, found before anything is trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ianvs.base.errors import IanvsError, Problem
from ianvs.base.types import ScoreMatrix
from ianvs.config.spec import MetricSpec, TestEnvSpec
from ianvs.exam.data.fingerprint import digest_of, read_memo, write_memo
from ianvs.exam.kinds import KINDS, perfect_answers
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.metrics.registry import metric_header, resolve
from ianvs.exam.scenarios.exam import Exam
from ianvs.running.planning.identity import metric_key
from ianvs.running.scoring.scoring import as_read, score_of
from ianvs.store import ExamRecord

__all__ = ["FITS", "incompatibilities", "note_fit", "preflight_scores", "scores_fit"]

FITS = "fits"  # folder of the cache
REFERENCES = frozenset({"joint", "single_task"})


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


def incompatibilities(exam: ExamRecord, spec: TestEnvSpec) -> Iterator[Problem]:
    """What in `spec` asks for something that the scenario does not have."""
    scenario = exam.rules["scenario"]
    if scenario == "single-task":
        return  # the scenario's own business: a testenv may serve several paradigms
    if spec.gate is not None and not exam.rules.get("boundaries", True):
        message = f"model_eval holds back a part of each round, and {scenario} brings a stream. Take it out."
        yield Problem(message, spec.gate.place)
    elif spec.gate is not None and not exam.rules.get("training_labels", True):
        message = f"model_eval scores answers to a part of each round, and {scenario} hides its labels. Take it out."
        yield Problem(message, spec.gate.place)
    of_classes = KINDS[exam.kind].probes
    asked = (
        ("task_scores", spec.task_scores and not of_classes, "are scores of classes"),
        ("teacher_forced", spec.teacher_forced and exam.kind != "conversation", "asks about replies to conversations"),
        ("linear_probe", spec.linear_probe and not of_classes, "fits a classifier to classes"),
    )
    for name, misfit, what in asked:
        if misfit:
            message = f"{name} {what}, and these are {exam.kind} data. Take it out."
            yield Problem(message, spec.places.get(name, spec.place))
    if spec.linear_probe and not of_classes:
        return
    if len(exam.tests) == len(exam.rounds):
        return
    lacks = f"this exam has {_counted(exam.rounds, 'round')} and {_counted(exam.tests, 'test set')}"
    if spec.linear_probe:
        message = f"linear_probe needs a test set for each round, and {lacks}. Take it out."
        yield Problem(message, spec.places.get("linear_probe", spec.place))
    for metric in spec.metrics:
        if references := REFERENCES.intersection(metric_header(metric).needs):
            message = f"{metric.name} compares with {' and '.join(sorted(references))} runs round by round, and {lacks}"
            yield Problem(f"{message}. Take it out.", metric.place)


def _counted(things: Sequence[str], noun: str) -> str:
    return f"{len(things)} {noun}" if len(things) == 1 else f"{len(things)} {noun}s"
