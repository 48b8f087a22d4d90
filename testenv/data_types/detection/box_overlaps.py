"""Boxes of many images as flat columns, and the overlaps of answers and true boxes, for one class at a time."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.metrics.ragged import Ragged

Boxes = dict[str, NDArray[Any]]
"""M boxes: the columns of TRUTH or ANSWER, and `pictures` (M,) int64, ascending: the image of each box."""

_BOXES, _LABELS, _FLAGS, _NUMBERS = np.empty((0, 4)), np.empty(0, np.int64), np.empty(0, np.uint8), np.empty(0)
TRUTH: Boxes = {"boxes": _BOXES, "labels": _LABELS, "iscrowd": _FLAGS, "difficult": _FLAGS, "area": _NUMBERS}
ANSWER: Boxes = {"boxes": _BOXES, "labels": _LABELS, "scores": _NUMBERS}
_BLOCK = 1 << 20  # pairs that are compared at once: about 100 MB


class Pairs(NamedTuple):
    """Columns (P,): row of the answer, row of the true box, and their IoU.

    Sorted by answer, then IoU, then true box.
    """

    answers: NDArray[np.int64]
    truths: NDArray[np.int64]
    ious: NDArray[np.float64]


def boxes_of(stored: Ragged, fields: Boxes) -> Boxes:
    """Return the columns `fields` of all images."""
    return {"pictures": stored.column("labels")[1], **{name: stored.column(name)[0] for name in fields}}


def by_class(boxes: Boxes, classes: Sequence[int]) -> Iterator[Boxes]:
    """Yield the boxes of each of `classes` in turn; answers of one image by -score."""
    pictures = boxes["pictures"]
    keys = (boxes["labels"],) if "scores" not in boxes else (-boxes["scores"], pictures, boxes["labels"])
    order = np.lexsort(keys)  # stable, the last key first
    labels = boxes["labels"][order]
    for start, end in zip(
        np.searchsorted(labels, classes), np.searchsorted(labels, classes, side="right"), strict=True
    ):
        yield {key: values[order[start:end]] for key, values in boxes.items()}


def overlaps(
    answers: Boxes, truths: Boxes, minimum: float, crowd: NDArray[np.bool_] | None = None, extra: float = 0.0
) -> Pairs:
    """Return all pairs of boxes in an image whose IoU is at least `minimum`, which is above 0.

    crowd: (G,) true boxes for which the area of the answer replaces the union. extra: pixels added to x2 - x1 and y2 -
    y1; 1 if coordinates are of pixels inside the box.
    """
    first = np.searchsorted(truths["pictures"], answers["pictures"], side="left")
    counts = np.searchsorted(truths["pictures"], answers["pictures"], side="right") - first
    sums = np.cumsum(counts)
    edges = np.searchsorted(sums, np.arange(0, max(1, counts.sum()), _BLOCK), side="right")
    pairs: list[Pairs] = []
    for start, end in pairwise([*edges, len(counts)]):
        rows = np.repeat(np.arange(start, end), counts[start:end])
        columns = np.arange(len(rows)) + np.repeat((first - sums + counts)[start:end], counts[start:end])
        columns += sums[start] - counts[start] if start < end else 0
        a, b = answers["boxes"][rows], truths["boxes"][columns]
        inner = np.minimum(a[:, 2:], b[:, 2:]) - np.maximum(a[:, :2], b[:, :2]) + extra
        both = np.where((inner > 0).all(axis=1), inner[:, 0] * inner[:, 1], 0.0)
        area_a, area_b = box_areas(a, extra), box_areas(b, extra)
        union = area_a + area_b - both
        if crowd is not None:
            union = np.where(crowd[columns], area_a, union)
        ious = np.divide(both, union, out=np.zeros_like(both), where=both > 0)
        near = ious >= minimum
        pairs.append(Pairs(rows[near], columns[near], ious[near]))
    rows, columns, ious = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    order = np.lexsort((columns, ious, rows))
    return Pairs(rows[order], columns[order], ious[order])


def box_areas(boxes: NDArray[np.float64], extra: float = 0.0) -> NDArray[np.float64]:
    """Return areas (M,) in square pixels."""
    areas: NDArray[np.float64] = (boxes[:, 2] - boxes[:, 0] + extra) * (boxes[:, 3] - boxes[:, 1] + extra)
    return areas
