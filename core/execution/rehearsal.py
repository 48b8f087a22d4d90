"""Tries an exam's scores on perfect answers to a few samples, so that one that can't work is found before training."""

from __future__ import annotations

import numpy as np

from core.config.spec import ExamSpec
from core.errors import IanvsError, Problem
from core.execution.scoring import score_of
from core.metrics.base import Evidence
from core.metrics.overlap import picture_confusion
from core.metrics.registry import resolve
from core.scenarios.exam import Exam

__all__ = ["rehearse"]

FEW = 16  # samples


def rehearse(exam: Exam, spec: ExamSpec) -> list[Problem]:
    """What is wrong with the scores of `spec` for this kind of data; those that are costly to compute are not tried."""
    problems = []
    seen = _perfect(exam)
    for metric_spec in [*spec.metrics, *([spec.gate.metric] if spec.gate else [])]:
        metric = resolve(metric_spec)
        if metric.level != "score" or metric.batch is not None:
            continue
        try:
            score_of(metric_spec, metric, seen)
        except IanvsError as error:
            message = f"{error} This was found with perfect answers to {exam.dataset.kind} data, before anything ran."
            problems.append(Problem(message, metric_spec.place))
    return problems


def _perfect(exam: Exam) -> Evidence:
    dataset, test = exam.dataset, exam.tests[0]
    truth = np.asarray(dataset.test.y[test.test[:FEW]])
    if dataset.kind == "segmentation":
        counts = sum(picture_confusion(picture[None], picture[None], len(dataset.classes)) for picture in truth)
        return Evidence(dataset.classes, counts=np.asarray(counts), labels=test.classes, earlier=())
    probe = truth if dataset.kind == "classification" else None
    return Evidence(dataset.classes, y_true=truth, y_pred=truth, labels=test.classes, earlier=(), probe=probe)
