"""Intersection over union, the score of segmentation masks, counted over a whole test set and not image by image.

For class c: TP_c samples (pixels) are of class c and predicted as c, FN_c are of class c and predicted otherwise, FP_c
are predicted as c and of another class. Ignored pixels are not counted; a pixel for which "ignore" was predicted is an
FN of its true class and no FP (Garg et al. 2022, iouEval.py).
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.metrics.definition import mean, score_metric
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.testenv.metrics.classification import ratio


def _ious(record: EvaluationRecord) -> NDArray[np.float64]:
    """Return the IoU of each class, (C,); nan for a class in neither truth nor prediction."""
    counts = record.class_counts
    return ratio(counts.hits, counts.predicted + counts.true - counts.hits)


def _tested(record: EvaluationRecord) -> tuple[int, ...]:
    """Return the classes of the test set."""
    return tuple(range(len(record.classes))) if record.labels is None else record.labels


def _mean_over(record: EvaluationRecord, classes: Iterable[int]) -> float:
    """Return the mean over those of `classes` that occur in truth or prediction."""
    values = _ious(record)[list(classes)]
    return mean(values[~np.isnan(values)])


@score_metric(
    "mIoU",
    formula="mean_c TP_c / (TP_c + FP_c + FN_c) over classes in truth or prediction",
    source="Everingham et al. 2015 (PASCAL VOC); absent classes left out, as in the Ianvs evaluator",
)
def mean_iou(record: EvaluationRecord) -> float:
    """Mean intersection over union over classes that occur in truth or prediction, counted over the whole test set."""
    return _mean_over(record, range(len(record.classes)))


@score_metric(
    "mIoU_all",
    formula="mean_c TP_c / (TP_c + FP_c + FN_c) over all classes of the test set's class list, 0 for an absent class",
    source="Garg et al. 2022 (MDIL-SS, WACV), iouEval.py",
)
def mean_iou_all(record: EvaluationRecord) -> float:
    """Mean intersection over union over all classes of the test set; a class that occurs nowhere counts 0."""
    if not record.class_counts.true.any():
        return float("nan")
    return mean(np.nan_to_num(_ious(record)[list(_tested(record))], nan=0.0))


@score_metric(
    "mIoU_seen",
    partial=True,
    formula="mIoU over the test set's classes that were taught in a round before its own",
    source="Garg et al. 2022 (MDIL-SS, WACV), section on overlapping and novel classes",
)
def mean_iou_seen(record: EvaluationRecord) -> float:
    """mIoU over the classes of the test set that an earlier round than its own had taught already; nan if none."""
    if record.earlier is None:
        return float("nan")
    return _mean_over(record, [label for label in _tested(record) if label in record.earlier])


@score_metric(
    "mIoU_novel",
    partial=True,
    formula="mIoU over the test set's classes that were not taught before its own round",
    source="Garg et al. 2022 (MDIL-SS, WACV), section on overlapping and novel classes",
)
def mean_iou_novel(record: EvaluationRecord) -> float:
    """mIoU over the classes of the test set that its own round was the first to teach; nan if none."""
    if record.earlier is None:
        return float("nan")
    return _mean_over(record, [label for label in _tested(record) if label not in record.earlier])


def _taught_mean(record: EvaluationRecord, first: bool | None) -> float:
    """Return the mean IoU over taught classes, without pixels of others.

    first: True: classes of the first round; False: of later rounds; None: of all rounds so far.
    """
    if record.seen is None or record.seen_first is None or not record.seen:
        return float("nan")
    counts = record.confusion[list(record.seen)]
    hits = counts[np.arange(len(counts)), list(record.seen)]
    ious = ratio(hits, counts.sum(1) + counts[:, list(record.seen)].sum(0) - hits)
    chosen = [first is None or (label in record.seen_first) == first for label in record.seen]
    values = ious[chosen]
    return mean(values[~np.isnan(values)])


_CERMELLI = "Cermelli et al. 2020 (MiB, arXiv 2002.00718), section 4"


@score_metric(
    "mIoU_old",
    pooled=True,
    formula="mean_c IoU_c over the classes of the first round, the background with them; pixels of taught classes only",
    source=_CERMELLI,
)
def mean_iou_old(record: EvaluationRecord) -> float:
    """Mean intersection over union over the classes of the first round, in class-incremental segmentation."""
    return _taught_mean(record, True)


@score_metric(
    "mIoU_new",
    pooled=True,
    formula="mean_c IoU_c over the classes of later rounds that were taught; pixels of taught classes only",
    source=_CERMELLI,
)
def mean_iou_new(record: EvaluationRecord) -> float:
    """Mean intersection over union over the classes of all rounds but the first; nan before the second."""
    return _taught_mean(record, False)


@score_metric(
    "mIoU_taught",
    pooled=True,
    formula="mean_c IoU_c over all classes that were taught by then; pixels of taught classes only",
    source=_CERMELLI,
)
def mean_iou_taught(record: EvaluationRecord) -> float:
    """Mean intersection over union over all classes taught so far, in class-incremental segmentation."""
    return _taught_mean(record, None)


@score_metric(
    "per_class_IoU",
    formula="TP_c / (TP_c + FP_c + FN_c) for each class c of the test set's class list",
    source="Everingham et al. 2015 (PASCAL VOC)",
    mapping=True,
)
def per_class_iou(record: EvaluationRecord) -> dict[str, float]:
    """Intersection over union of each class of the test set; nan for a class in neither truth nor prediction."""
    values = _ious(record)
    return {record.classes[label]: float(values[label]) for label in _tested(record)}
