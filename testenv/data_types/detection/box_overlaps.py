"""Which answers overlap which truths of the same picture, for one class at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ianvs.testenv.data_types.detection.packed_boxes import Packed, ragged_rows

__all__ = ["Pairs", "by_class", "overlaps"]

_BLOCK = 1 << 20  # pairs that are compared at once: some 100 MB


class Pairs(NamedTuple):
    """(P,) each: row of the answer, row of the truth, their IoU. Sorted by answer, then IoU, then truth."""

    answers: NDArray[np.int64]
    truths: NDArray[np.int64]
    ious: NDArray[np.float64]


def by_class(packed: Packed, num_classes: int) -> Iterator[Packed]:
    """The boxes of each class in turn: `pictures` (M,) ascending in place of `offsets`; answers of one by -score."""
    pictures = np.repeat(np.arange(len(packed["offsets"]) - 1), np.diff(packed["offsets"]))
    keys = (packed["labels"],) if "scores" not in packed else (-packed["scores"], pictures, packed["labels"])
    order = np.lexsort(keys)  # stable, the last key first
    ends = np.searchsorted(packed["labels"][order], np.arange(num_classes + 1))
    columns = {**packed, "pictures": pictures}
    for start, end in pairwise(ends):
        rows = order[start:end]
        yield {key: values[rows] for key, values in columns.items() if key != "offsets"}


def overlaps(
    answers: Packed, truths: Packed, minimum: float, crowd: NDArray[np.bool_] | None = None, extra: float = 0.0
) -> Pairs:
    """All pairs whose IoU is at least `minimum`, which is above 0, of the boxes of one class as `by_class` gives them.

    crowd: (G,) truths for which the area of the answer stands in place of the union. extra: pixels that a box has
    beyond x2 - x1 and y2 - y1; 1 where coordinates are of pixels that are inside.
    """
    first = np.searchsorted(truths["pictures"], answers["pictures"], side="left")
    counts = np.searchsorted(truths["pictures"], answers["pictures"], side="right") - first
    sums = np.cumsum(counts)
    edges = np.searchsorted(sums, np.arange(0, max(1, counts.sum()), _BLOCK), side="right")
    found: list[Pairs] = []
    for start, end in zip(edges, [*edges[1:], len(counts)], strict=True):
        rows, columns = ragged_rows(first[start:end], counts[start:end])
        rows += start
        a, b = answers["boxes"][rows], truths["boxes"][columns]
        inner = np.minimum(a[:, 2:], b[:, 2:]) - np.maximum(a[:, :2], b[:, :2]) + extra
        both = np.where((inner > 0).all(axis=1), inner[:, 0] * inner[:, 1], 0.0)
        area_a, area_b = ((box[:, 2] - box[:, 0] + extra) * (box[:, 3] - box[:, 1] + extra) for box in (a, b))
        union = area_a + area_b - both
        if crowd is not None:
            union = np.where(crowd[columns], area_a, union)
        ious = np.divide(both, union, out=np.zeros_like(both), where=both > 0)
        near = ious >= minimum
        found.append(Pairs(rows[near], columns[near], ious[near]))
    rows, columns, ious = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.lexsort((columns, ious, rows))
    return Pairs(rows[order], columns[order], ious[order])
