"""Pure functions: labels -> score, score matrix -> what it says of learning; and the table of their names."""

from ianvs.metrics.confusion import confusion_matrix, picture_confusion
from ianvs.metrics.definition import MatrixMetric, matrix_metric, mean, score_metric
from ianvs.metrics.matrix import compute_file, matrix_report
from ianvs.metrics.metric import EvaluationRecord, Metric
from ianvs.metrics.registry import find, names, resolve, suggest
from ianvs.metrics.table import describe, legend

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
