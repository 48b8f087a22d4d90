"""Pure functions: labels -> score, score matrix -> what it says of learning; and the table of their names."""

from ianvs.exam.metrics.confusion import confusion_matrix, picture_confusion
from ianvs.exam.metrics.definition import MatrixMetric, matrix_metric, mean, score_metric
from ianvs.exam.metrics.matrix import compute_file, matrix_report
from ianvs.exam.metrics.metric import EvaluationRecord, Metric
from ianvs.exam.metrics.registry import find, names, resolve, suggest
from ianvs.exam.metrics.table import describe, legend

__all__ = [
    "EvaluationRecord",
    "MatrixMetric",
    "Metric",
    "compute_file",
    "confusion_matrix",
    "describe",
    "find",
    "legend",
    "matrix_metric",
    "matrix_report",
    "mean",
    "names",
    "picture_confusion",
    "resolve",
    "score_metric",
    "suggest",
]
