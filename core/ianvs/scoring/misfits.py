"""What a testenv asks for and its exam can't give, found before anything is trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ianvs.config.spec import TestEnvSpec
from ianvs.errors import IanvsError, Problem
from ianvs.metrics.label_pictures import PictureRows
from ianvs.metrics.metric import EvaluationRecord
from ianvs.metrics.overlap import picture_confusion
from ianvs.metrics.registry import outline, resolve
from ianvs.scenarios.exam import Exam
from ianvs.scoring.scoring import as_read, score_of
from ianvs.store import ExamRecord

__all__ = ["misfits", "preflight_scores"]

FEW = 16  # samples
REFERENCES = frozenset({"joint", "single_task"})


def preflight_scores(exam: Exam, spec: TestEnvSpec) -> list[Problem]:
    """What is wrong with the scores of `spec` for this kind of data; those that are costly to compute are not tried."""
    problems = []
    seen = _perfect(exam)
    for metric_spec in [*spec.metrics, *([spec.gate.metric] if spec.gate else [])]:
        metric = resolve(metric_spec)
        if metric.level != "score" or metric.batch is not None:
            continue
        try:
            score_of(metric_spec, metric, as_read(metric, seen))
        except IanvsError as error:
            if exam.dataset.kind == "conversation":
                message = (
                    f"metric '{metric_spec.name}' does not score replies to conversations. Those that do: "
                    "semantic_similarity, lexical_similarity, reply_exact_match, ROUGE_L, reply_coverage; or one of "
                    f"your own, in a file. ({error})"
                )
                problems.append(Problem(message, metric_spec.place))
                continue
            message = f"{error} This was found with perfect answers to {exam.dataset.kind} data, before anything ran."
            problems.append(Problem(message, metric_spec.place))
    return problems


def misfits(exam: ExamRecord, spec: TestEnvSpec) -> Iterator[Problem]:
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
    if spec.linear_probe and exam.kind != "classification":
        message = f"linear_probe fits a classifier to classes, and these are {exam.kind} data. Take it out."
        yield Problem(message, spec.places.get("linear_probe", spec.place))
        return
    if len(exam.tests) == len(exam.rounds):
        return
    lacks = f"this exam has {_counted(exam.rounds, 'round')} and {_counted(exam.tests, 'test set')}"
    if spec.linear_probe:
        message = f"linear_probe needs a test set for each round, and {lacks}. Take it out."
        yield Problem(message, spec.places.get("linear_probe", spec.place))
    for metric in spec.metrics:
        if references := REFERENCES.intersection(outline(metric).needs):
            message = f"{metric.name} compares with {' and '.join(sorted(references))} runs round by round, and {lacks}"
            yield Problem(f"{message}. Take it out.", metric.place)


def _counted(things: Sequence[str], noun: str) -> str:
    return f"{len(things)} {noun}" if len(things) == 1 else f"{len(things)} {noun}s"


def _perfect(exam: Exam) -> EvaluationRecord:
    dataset, test = exam.dataset, exam.tests[0]
    truth = np.asarray(dataset.test.y[test.test[:FEW]])
    if dataset.kind == "segmentation":
        counts = sum(picture_confusion(picture[None], picture[None], len(dataset.classes)) for picture in truth)
        true, said = PictureRows(truth), PictureRows(truth)
        return EvaluationRecord(dataset.classes, true, said, counts=np.asarray(counts), labels=test.classes, earlier=())
    probe = truth if dataset.kind == "classification" else None
    return EvaluationRecord(dataset.classes, y_true=truth, y_pred=truth, labels=test.classes, earlier=(), probe=probe)
