"""Average precision and recall as COCO has them (Lin et al. 2014; pycocotools 2.0.11, which the tests compare with).

Class by class, over all pictures at once. An answer's turn is its place among the answers of its picture that overlap
any truth enough; all answers with one turn, of all pictures, thresholds and ranges of area, are matched together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.metrics.definition import mean
from ianvs.testenv.data_types.detection.box_overlaps import Pairs, by_class, overlaps
from ianvs.testenv.data_types.detection.packed_boxes import Packed, box_areas

__all__ = ["CocoEvaluation", "coco_evaluation", "mean_over"]

Array = NDArray[np.float64]
THRESHOLDS = np.linspace(0.5, 0.95, 10)
_RECALLS = np.linspace(0, 1, 101)
_AREAS = np.array([[0, 1e10], [0, 32**2], [32**2, 96**2], [96**2, 1e10]])  # all, S, M, L; bounds are inside
_LIMITS = (1, 10, 100)  # answers of a picture and class
_HIT, _IGNORED = 1, 2


@dataclass(frozen=True)
class CocoEvaluation:
    """Classes without a truth that counts are nan everywhere, and left out of every mean; without any, a mean is nan.

    precision: (C, 4, 10) average precision by class, range of area (all, small, medium, large) and IoU threshold.
    recall: (C, 3, 10) by class, limit of answers (1, 10, 100) and threshold.
    """

    precision: Array
    recall: Array

    @property
    def by_class(self) -> Array:
        """(C,) AP_c, the mean over thresholds."""
        means: Array = self.precision[:, 0].mean(axis=1)
        return means

    def scores(self) -> dict[str, float]:
        """AP, AP50, AP75, AP_S, AP_M, AP_L, AR_1, AR_10, AR_100."""
        parts = {"AP": self.precision[:, 0], "AP50": self.precision[:, 0, 0], "AP75": self.precision[:, 0, 5]}
        parts |= {f"AP_{size}": self.precision[:, i] for i, size in enumerate("SML", 1)}
        parts |= {f"AR_{limit}": self.recall[:, i] for i, limit in enumerate(_LIMITS)}
        return {name: mean(values[~np.isnan(values)]) for name, values in parts.items()}


def coco_evaluation(truths: Packed, answers: Packed, num_classes: int) -> CocoEvaluation:
    """Of packed truths and answers to the same pictures. Of each picture and class the first 100 answers count.

    The area of a truth is its `area` where there is one (COCO's are of masks), else that of the box.
    """
    precision = np.full((num_classes, len(_AREAS), len(THRESHOLDS)), np.nan)
    recall = np.full((num_classes, len(_LIMITS), len(THRESHOLDS)), np.nan)
    pairs = zip(by_class(truths, num_classes), by_class(answers, num_classes), strict=True)
    for label, (truth, answer) in enumerate(pairs):
        if len(truth["labels"]):
            precision[label], recall[label] = _evaluated(truth, answer)
    return CocoEvaluation(precision, recall)


def mean_over(by_class: Array, classes: Iterable[int]) -> float:
    """Mean of (C,) scores by class over a list of classes, those that are nan left out: R[k, j] over those of j."""
    values = by_class[list(classes)]
    return mean(values[~np.isnan(values)])


def _evaluated(truth: Packed, answer: Packed) -> tuple[Array, Array]:
    """((4, 10) precision, (3, 10) recall) of a class."""
    places = np.arange(len(answer["scores"])) - np.searchsorted(answer["pictures"], answer["pictures"])
    answer = {key: values[places < _LIMITS[-1]] for key, values in answer.items()}
    places = places[places < _LIMITS[-1]]
    crowd = truth.get("iscrowd", np.zeros(len(truth["labels"]))).astype(bool)
    ignored = crowd | _outside(truth.get("area", box_areas(truth["boxes"])))
    pairs = overlaps(answer, truth, THRESHOLDS[0], crowd)
    matched = _matched(pairs, answer["pictures"], crowd, ignored)
    counted = (~ignored).sum(axis=1)
    precision = np.full((len(_AREAS), len(THRESHOLDS)), np.nan)
    recall = np.full((len(_LIMITS), len(THRESHOLDS)), np.nan)
    outside = _outside(box_areas(answer["boxes"]))
    order = np.argsort(-answer["scores"], kind="stable")
    for area in np.flatnonzero(counted):
        hits = matched[area] == _HIT
        misses = (matched[area] == 0) & ~outside[area]
        precision[area] = _average_precision(hits[:, order], misses[:, order], counted[area])
        if area == 0:
            recall[:] = [hits[:, places < limit].sum(axis=1) / counted[0] for limit in _LIMITS]
    return precision, recall


def _outside(areas: Array) -> NDArray[np.bool_]:
    """(4, M) whether each lies outside each range."""
    outside: NDArray[np.bool_] = (areas < _AREAS[:, :1]) | (areas > _AREAS[:, 1:])
    return outside


def _matched(
    pairs: Pairs, pictures: NDArray[np.int64], crowd: NDArray[np.bool_], ignored: NDArray[np.bool_]
) -> NDArray[np.uint8]:
    """(4, 10, D) 0 for an answer that takes no truth, _HIT, or _IGNORED where it takes one of `ignored` (4, G).

    In turn, each takes the truth with the largest IoU among those that are free, a crowd being always free; of equal
    ones the last; one that is ignored only if no other is left.
    """
    matched = np.zeros((*ignored.shape[:1], len(THRESHOLDS), len(pictures)), dtype=np.uint8)
    taken = np.zeros((*matched.shape[:2], len(crowd)), dtype=bool)
    asking, counts = np.unique(pairs.answers, return_counts=True)
    turns = np.arange(len(asking)) - np.searchsorted(pictures[asking], pictures[asking])
    turns = np.repeat(turns, counts)
    order = np.argsort(turns, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(turns[order])) + 1):
        if not len(rows):
            continue
        answers, truths = pairs.answers[rows], pairs.truths[rows]
        free = (pairs.ious[rows] >= THRESHOLDS[:, None]) & (~taken[:, :, truths] | crowd[truths])
        # The pairs of an answer are sorted by what they are worth, but for those that are ignored.
        worth = np.arange(len(rows)) + len(rows) * ~ignored[:, None, truths]
        begins = np.flatnonzero(np.diff(answers, prepend=-1))
        best = np.maximum.reduceat(np.where(free, worth, -1), begins, axis=2)
        area, threshold, which = np.nonzero(best >= 0)
        chosen = truths[best[area, threshold, which] % len(rows)]
        taken[area, threshold, chosen] = True
        matched[area, threshold, answers[begins[which]]] = np.where(ignored[area, chosen], _IGNORED, _HIT)
    return matched


def _average_precision(hits: NDArray[np.bool_], misses: NDArray[np.bool_], counted: int) -> Array:
    """(10,) mean of the non-increasing precision at 101 recalls, of (10, D) answers from the highest score down."""
    if not hits.shape[1]:
        return np.zeros(len(hits))
    right, wrong = np.cumsum(hits, axis=1), np.cumsum(misses, axis=1)
    precision = right / (right + wrong + np.spacing(1))
    precision = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    precision = np.pad(precision, ((0, 0), (0, 1)))  # 0 beyond the largest recall
    recall = right / counted
    at = [np.searchsorted(row, _RECALLS, side="left") for row in recall]
    return np.array([row[where].mean() for row, where in zip(precision, at, strict=True)])
