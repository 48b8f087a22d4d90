"""What is stored of an evaluation, as metrics see it."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from core.metrics.base import Evidence
from core.store import ExamRecord

__all__ = ["evidence"]


def evidence(record: ExamRecord, test: int, truth: NDArray[Any], stored: NDArray[Any]) -> Evidence:
    """Of test set number `test`: predicted labels with the true ones, or the counts of label pictures."""
    labels = record.test_classes[test] if record.test_classes else None
    earlier = record.test_earlier[test] if record.test_earlier else None
    if record.kind == "segmentation":
        return Evidence(record.classes, counts=stored, labels=labels, earlier=earlier)
    return Evidence(record.classes, y_true=truth, y_pred=stored, labels=labels, earlier=earlier)
