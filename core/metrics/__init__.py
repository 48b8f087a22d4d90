"""Pure functions: labels -> score, score matrix -> what it says of learning; and the table of their names."""

from core.metrics.base import Evidence, MatrixInputs, Metric
from core.metrics.classification import confusion_matrix
from core.metrics.matrix import compute_file, matrix_report
from core.metrics.registry import find, names, resolve, suggest
from core.metrics.table import describe, legend

__all__ = [
    "Evidence",
    "MatrixInputs",
    "Metric",
    "compute_file",
    "confusion_matrix",
    "describe",
    "find",
    "legend",
    "matrix_report",
    "names",
    "resolve",
    "suggest",
]
