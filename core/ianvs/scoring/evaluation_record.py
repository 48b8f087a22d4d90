"""What is stored of an evaluation, as metrics see it."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ianvs.metrics.label_pictures import LabelPictures
from ianvs.metrics.metric import EvaluationRecord
from ianvs.scoring.replies import unpacked
from ianvs.store import ExamRecord

__all__ = ["evaluation_record"]


def evaluation_record(
    record: ExamRecord,
    test: int,
    truth: NDArray[Any],
    stored: NDArray[Any],
    probe: NDArray[Any] | None = None,
    pictures: tuple[LabelPictures, LabelPictures] | None = None,
) -> EvaluationRecord:
    """Of test set number `test`: predicted labels with the true ones, replies, or the counts of label pictures.

    probe: the labels that a linear probe predicted, where features were examined. pictures: the true and the predicted
    label pictures, where a metric reads them.
    """
    labels = record.test_classes[test] if record.test_classes else None
    earlier = record.test_earlier[test] if record.test_earlier else None
    if record.kind == "segmentation":
        true, answers = pictures or (None, None)
        return EvaluationRecord(record.classes, true, answers, counts=stored, labels=labels, earlier=earlier)
    if record.kind == "conversation":
        (wanted, topics), (said, _) = unpacked(truth), unpacked(stored)
        return EvaluationRecord(
            record.classes, y_true=wanted, y_pred=said, labels=labels, earlier=earlier, topics=topics
        )
    return EvaluationRecord(record.classes, y_true=truth, y_pred=stored, labels=labels, earlier=earlier, probe=probe)
