"""Metrics: pure functions of labels or of a score matrix, and their names."""

from ianvs.exam.metrics.confusion import picture_confusion
from ianvs.exam.metrics.definition import matrix_metric, mean, score_metric
from ianvs.exam.metrics.matrix import compute_file, matrix_report
from ianvs.exam.metrics.metric import EvaluationRecord, Metric
from ianvs.exam.metrics.registry import find

__all__ = [
    "EvaluationRecord",
    "Metric",
    "compute_file",
    "find",
    "matrix_metric",
    "matrix_report",
    "mean",
    "picture_confusion",
    "score_metric",
]
