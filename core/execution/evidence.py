"""What is kept of an evaluation: enough for any metric that is asked for later."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.metrics.base import Evidence
from core.metrics.classification import confusion_matrix
from core.store import ExamRecord

__all__ = ["evidence", "kept"]


def kept(kind: str, y_true: NDArray[Any], y_pred: NDArray[Any], classes: int, ignore: int | None) -> NDArray[Any]:
    """The array to store: predicted labels, or for label pictures, which are large, the confusion matrix alone."""
    if kind != "segmentation":
        return y_pred
    valid = y_true != ignore if ignore is not None else np.ones(y_true.shape, dtype=bool)
    return confusion_matrix(y_true[valid], y_pred[valid], classes)


def evidence(record: ExamRecord, truth: NDArray[Any], stored: NDArray[Any]) -> Evidence:
    """`stored` of a test set, together with its true labels where single samples are kept."""
    if record.kind == "segmentation":
        return Evidence(record.classes, counts=stored)
    return Evidence(record.classes, y_true=truth, y_pred=stored)
