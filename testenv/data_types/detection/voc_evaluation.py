"""Average precision as in PASCAL VOC (Everingham et al. 2010; VOCdevkit), and F1 at one IoU.

Each answer, by falling score, is assigned to the true box with the largest overlap, even if that is taken: the second
answer to a true box is wrong. COCO's matching would assign it to the next best one. For average precision, true boxes
that are `difficult` and answers to them don't count; for F1 they count like others.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ianvs.testenv.data_types.detection.box_matches import HIT, IGNORED, MISS, BoxMatches, ClassMatches
from ianvs.testenv.data_types.detection.box_overlaps import Boxes, by_class, overlaps

Array = NDArray[np.float64]
Points = Literal["all_points", "11_points"]
Pixels = Literal["real", "inclusive"]


def voc_matches(
    truths: Boxes, answers: Boxes, classes: Sequence[int], pictures: int, iou: float = 0.5, pixels: Pixels = "real"
) -> BoxMatches:
    """Return the matches for `voc_precision`.

    iou: the minimum that counts. pixels: `inclusive` if coordinates are of pixels inside the box, as in the VOC devkit:
    widths and heights are then one larger.
    """
    judged = [_judged(*pair, iou, pixels, pair[0]["difficult"] == 0) for pair in _pairs(truths, answers, classes)]
    return BoxMatches(judged, pictures)


def voc_precision(matches: BoxMatches, points: Points = "all_points") -> Array:
    """Return average precision by class (C,), nan for a class without counted true boxes.

    points: the area under the non-increasing precision (since VOC 2010), or its mean at recalls 0, .1, ..., 1.
    """
    scores = np.full(len(matches.classes), np.nan)
    for index in matches.classes:
        matched = matches.of_class(index, 0, slice(None))
        if not (truths := int(matched.counted.sum())):
            continue
        right = matched.judged[0, 0][matched.judged[0, 0] != IGNORED] == HIT
        hits = np.cumsum(right)
        recall = hits / truths
        precision = np.maximum.accumulate((hits / np.arange(1, len(hits) + 1))[::-1])[::-1]
        if points == "11_points":
            at = np.searchsorted(recall, np.linspace(0, 1, 11), side="left")
            scores[index] = np.append(precision, 0.0)[at].mean()
        else:
            scores[index] = (np.diff(recall, prepend=0.0) * precision).sum()
    return scores


def f1_matches(
    truths: Boxes,
    answers: Boxes,
    classes: Sequence[int],
    pictures: int,
    iou: float = 0.5,
    score: float = 0.5,
    pixels: Pixels = "real",
) -> BoxMatches:
    """Return the matches for `f1_scores`, over all images, for the answers with at least this score."""
    sure = {key: values[answers["scores"] >= score] for key, values in answers.items()}
    return BoxMatches([_judged(*pair, iou, pixels) for pair in _pairs(truths, sure, classes)], pictures)


def pcb_matches(truths: Boxes, answers: Boxes, classes: Sequence[int], pictures: int) -> BoxMatches:
    """Return the matches for `f1_scores` with which it equals the F1 of KubeEdge Ianvs's pcb-aoi example.

    IoU above .3 with inclusive pixels, whatever the score. True boxes in images without an answer of their class are
    not counted as missed, so a model that answers one image in ten can have 1.0: use `f1_at_iou` to compare.
    """
    above = float(np.nextafter(0.3, 1.0))
    pairs = _pairs(truths, answers, classes)
    judged = [_judged(*p, above, "inclusive", np.isin(p[0]["pictures"], p[1]["pictures"])) for p in pairs]
    return BoxMatches(judged, pictures)


def f1_scores(matches: BoxMatches) -> Array:
    """Return 2 hits / (answers + true boxes) by class (C,), the harmonic mean of precision and recall.

    0 without a hit.
    """
    scores = np.zeros(len(matches.classes))
    for index in matches.classes:
        matched = matches.of_class(index, 0, slice(None))
        if hits := int((matched.judged == HIT).sum()):
            scores[index] = 2 * hits / (matched.judged.size + int(matched.counted.sum()))
    return scores


def _pairs(truths: Boxes, answers: Boxes, classes: Sequence[int]) -> Iterator[tuple[Boxes, Boxes]]:
    return zip(by_class(truths, classes), by_class(answers, classes), strict=True)


def _judged(
    truth: Boxes, answer: Boxes, iou: float, pixels: Pixels, counts: NDArray[np.bool_] | None = None
) -> ClassMatches:
    """Return the matches of a class. counts: (G,) counted true boxes; an answer to another one is ignored."""
    counts = np.ones(len(truth["labels"]), dtype=bool) if counts is None else counts
    pairs = overlaps(answer, truth, iou, extra=1.0 if pixels == "inclusive" else 0.0)
    target = np.full(len(answer["labels"]), -1)
    # Of equal overlaps the first true box counts: pairs are sorted so that it comes first within an answer.
    best = np.full(len(answer["labels"]), -1.0)
    np.maximum.at(best, pairs.answers, pairs.ious)
    largest = pairs.ious == best[pairs.answers]
    rows, first = np.unique(pairs.answers[largest], return_index=True)
    target[rows] = pairs.truths[largest][first]
    order = np.argsort(-answer["scores"], kind="stable")
    target = target[order]
    judged = np.full(len(target), MISS, dtype=np.uint8)
    taken, first = np.unique(target, return_index=True)
    judged[first[taken >= 0]] = HIT
    judged[~np.append(counts, True)[target]] = (
        IGNORED  # for an answer that overlaps nothing, index -1 reads the last entry
    )
    pictures = answer["pictures"][order]
    return ClassMatches(pictures, np.zeros_like(pictures), judged[None, None], truth["pictures"], counts[None])
