"""Average precision as PASCAL VOC has it (Everingham et al. 2010; VOCdevkit), and F1 at one IoU.

Each answer, from the highest score down, goes to the truth that it overlaps most, taken or not: the second answer to a
truth is wrong. COCO's matching gives it the next best truth. For average precision truths that are `difficult`, and
answers to them, don't count; for F1 they are as others.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ianvs.testenv.data_types.detection.box_overlaps import by_class, overlaps
from ianvs.testenv.data_types.detection.packed_boxes import Packed

__all__ = ["Pixels", "Points", "f1_at_iou", "ianvs_pcb_f1", "voc_ap"]

Array = NDArray[np.float64]
Points = Literal["all_points", "11_points"]
Pixels = Literal["real", "inclusive"]


class _Judged(NamedTuple):
    """Answers of a class that count, from the highest score down, whether each is right; truths that count."""

    right: NDArray[np.bool_]
    truths: int


def voc_ap(
    truths: Packed,
    answers: Packed,
    num_classes: int,
    *,
    iou: float = 0.5,
    points: Points = "all_points",
    pixels: Pixels = "real",
) -> Array:
    """(C,) average precision by class, nan for a class without truths.

    iou: the least that counts. points: the area under the non-increasing precision (from VOC 2010 on), or its mean at
    recalls 0, .1, ..., 1 (VOC 2007). pixels: `inclusive` where coordinates are of pixels that are inside, as in the
    VOC devkit: widths and heights are one more.
    """
    scores = np.full(num_classes, np.nan)
    for label, (truth, answer) in enumerate(_classes(truths, answers, num_classes)):
        judged = _judged(truth, answer, iou, pixels, truth.get("difficult"))
        if not judged.truths:
            continue
        hits = np.cumsum(judged.right)
        recall = hits / judged.truths
        precision = np.maximum.accumulate((hits / np.arange(1, len(hits) + 1))[::-1])[::-1]
        if points == "11_points":
            at = np.searchsorted(recall, np.linspace(0, 1, 11), side="left")
            scores[label] = np.append(precision, 0.0)[at].mean()
        else:
            scores[label] = (np.diff(recall, prepend=0.0) * precision).sum()
    return scores


def f1_at_iou(
    truths: Packed,
    answers: Packed,
    num_classes: int,
    *,
    iou: float = 0.5,
    score: float = 0.5,
    pixels: Pixels = "real",
) -> Array:
    """(C,) 2 P R / (P + R) by class, over all pictures, of the answers with at least this score; 0 without a hit."""
    scores = np.zeros(num_classes)
    for label, (truth, answer) in enumerate(_classes(truths, answers, num_classes)):
        sure = {key: values[answer["scores"] >= score] for key, values in answer.items()}
        scores[label] = _f1(_judged(truth, sure, iou, pixels))
    return scores


def ianvs_pcb_f1(truths: Packed, answers: Packed, num_classes: int) -> Array:
    """(C,) what KubeEdge Ianvs's pcb-aoi example calls F1, to reproduce its numbers; it rounds the mean to 4 digits.

    IoU above .3 with inclusive pixels, whatever the score. Truths of pictures in which a class was not answered are
    not counted as missed, so a model that answers one picture in ten can have 1.0: use `f1_at_iou` to compare.
    """
    scores = np.zeros(num_classes)
    above = float(np.nextafter(0.3, 1.0))
    for label, (truth, answer) in enumerate(_classes(truths, answers, num_classes)):
        known = np.isin(truth["pictures"], answer["pictures"])
        seen = {key: values[known] for key, values in truth.items()}
        scores[label] = _f1(_judged(seen, answer, above, "inclusive"))
    return scores


def _classes(truths: Packed, answers: Packed, num_classes: int) -> zip[tuple[Packed, Packed]]:
    return zip(by_class(truths, num_classes), by_class(answers, num_classes), strict=True)


def _judged(
    truth: Packed, answer: Packed, iou: float, pixels: Pixels, difficult: NDArray[np.uint8] | None = None
) -> _Judged:
    pairs = overlaps(answer, truth, iou, extra=1.0 if pixels == "inclusive" else 0.0)
    counts = np.ones(len(truth["labels"]), dtype=bool) if difficult is None else difficult == 0
    target = np.full(len(answer["labels"]), -1)
    # Of equal overlaps the first truth counts: pairs are sorted so that within an answer it comes first among them.
    best = np.full(len(answer["labels"]), -1.0)
    np.maximum.at(best, pairs.answers, pairs.ious)
    largest = pairs.ious == best[pairs.answers]
    rows, first = np.unique(pairs.answers[largest], return_index=True)
    target[rows] = pairs.truths[largest][first]
    order = np.argsort(-answer["scores"], kind="stable")
    target = target[order]
    right = np.zeros(len(target), dtype=bool)
    taken, first = np.unique(target, return_index=True)
    right[first[taken >= 0]] = True
    counted = np.append(counts, True)[target]  # of an answer that overlaps nothing, -1, it is the last
    return _Judged(right[counted], int(counts.sum()))


def _f1(judged: _Judged) -> float:
    """2 hits / (answers + truths), which is the harmonic mean of precision and recall."""
    hits = int(judged.right.sum())
    return 2 * hits / (len(judged.right) + judged.truths) if hits else 0.0
