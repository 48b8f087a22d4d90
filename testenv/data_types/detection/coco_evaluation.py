"""Average precision and recall as in COCO (Lin et al. 2014; pycocotools 2.0.11, which the tests compare with).

Computed class by class, over all images at once. An answer's turn is its rank among the answers of its image that
overlap any true box enough; all answers with the same turn, of all images, thresholds and ranges of area, are matched
together.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ianvs.testenv.data_types.detection.box_matches import HIT, IGNORED, MISS, BoxMatches, ClassMatches
from ianvs.testenv.data_types.detection.box_overlaps import Boxes, Pairs, box_areas, by_class, overlaps

Array = NDArray[np.float64]
THRESHOLDS = np.linspace(0.5, 0.95, 10)
AREAS = ("all", "small", "medium", "large")
MOST = 100  # answers per image and class
_RECALLS = np.linspace(0, 1, 101)
_BOUNDS = np.array([[0, 1e10], [0, 32**2], [32**2, 96**2], [96**2, 1e10]])  # both ends included


def coco_matches(truths: Boxes, answers: Boxes, classes: Sequence[int], pictures: int) -> BoxMatches:
    """Match answers in `pictures` images, by range of area (4) and IoU threshold (10).

    For each image and class, the first 100 answers count. `area` of a true box determines its range (COCO's is that of
    a mask).
    """
    pairs = zip(by_class(truths, classes), by_class(answers, classes), strict=True)
    return BoxMatches([_of_class(truth, answer) for truth, answer in pairs], pictures)


def coco_precision(matches: BoxMatches, area: int = 0, thresholds: slice = slice(None)) -> Array:
    """Return average precision by class (C,), the mean over thresholds; nan for a class without a counted true box."""
    precisions = np.full(len(matches.classes), np.nan)
    for index in matches.classes:
        matched = matches.of_class(index, area, thresholds)
        if counted := int(matched.counted.sum()):
            precisions[index] = _average_precision(matched.judged[0] == HIT, matched.judged[0] == MISS, counted).mean()
    return precisions


def coco_recall(matches: BoxMatches, limit: int = MOST) -> Array:
    """Return the largest recall by class (C,), the mean over thresholds, for the first `limit` answers of each
    image.
    """
    recalls = np.full(len(matches.classes), np.nan)
    for index in matches.classes:
        matched = matches.of_class(index, 0, slice(None))
        if counted := int(matched.counted.sum()):
            recalls[index] = (matched.judged[0][:, matched.places < limit] == HIT).sum(axis=1).mean() / counted
    return recalls


def _of_class(truth: Boxes, answer: Boxes) -> ClassMatches:
    places = np.arange(len(answer["scores"])) - np.searchsorted(answer["pictures"], answer["pictures"])
    answer = {key: values[places < MOST] for key, values in answer.items()}
    places = places[places < MOST]
    crowd = truth["iscrowd"].astype(bool)
    ignored = crowd | _outside(truth["area"])
    judged = _matched(overlaps(answer, truth, THRESHOLDS[0], crowd), answer["pictures"], crowd, ignored)
    outside = _outside(box_areas(answer["boxes"]))[:, None]
    judged[(judged == MISS) & outside] = IGNORED
    order = np.argsort(-answer["scores"], kind="stable")
    return ClassMatches(answer["pictures"][order], places[order], judged[..., order], truth["pictures"], ~ignored)


def _outside(areas: Array) -> NDArray[np.bool_]:
    """Return (4, M) whether each area lies outside each range."""
    outside: NDArray[np.bool_] = (areas < _BOUNDS[:, :1]) | (areas > _BOUNDS[:, 1:])
    return outside


def _matched(
    pairs: Pairs, pictures: NDArray[np.int64], crowd: NDArray[np.bool_], ignored: NDArray[np.bool_]
) -> NDArray[np.uint8]:
    """Return (4, 10, D): MISS for an answer without a match, HIT, or IGNORED if its match is one of `ignored` (4, G).

    In turn, each answer takes the true box with the largest IoU among the free ones; a crowd is always free. Of equal
    IoUs the last box is taken; an ignored box only if no other is left.
    """
    matched = np.zeros((len(ignored), len(THRESHOLDS), len(pictures)), dtype=np.uint8)
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
        # The pairs of an answer are sorted by preference, apart from the ignored ones.
        worth = np.arange(len(rows)) + len(rows) * ~ignored[:, None, truths]
        begins = np.flatnonzero(np.diff(answers, prepend=-1))
        best = np.maximum.reduceat(np.where(free, worth, -1), begins, axis=2)
        area, threshold, which = np.nonzero(best >= 0)
        chosen = truths[best[area, threshold, which] % len(rows)]
        taken[area, threshold, chosen] = True
        matched[area, threshold, answers[begins[which]]] = np.where(ignored[area, chosen], IGNORED, HIT)
    return matched


def _average_precision(hits: NDArray[np.bool_], misses: NDArray[np.bool_], counted: int) -> Array:
    """Return (T,) mean of the non-increasing precision at 101 recalls, for (T, D) answers by falling score."""
    if not hits.shape[1]:
        return np.zeros(len(hits))
    right, wrong = np.cumsum(hits, axis=1), np.cumsum(misses, axis=1)
    precision = right / (right + wrong + np.spacing(1))
    precision = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    precision = np.pad(precision, ((0, 0), (0, 1)))  # 0 beyond the largest recall
    recall = right / counted
    at = [np.searchsorted(row, _RECALLS, side="left") for row in recall]
    return np.array([row[where].mean() for row, where in zip(precision, at, strict=True)])
