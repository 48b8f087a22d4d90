"""Boxes of many pictures as a few flat arrays, which is how they are stored.

A packed form of N pictures with M boxes in all has `offsets` (N + 1,) int64, the boxes of picture i being
offsets[i]:offsets[i + 1]; `boxes` (M, 4) float64, x1 y1 x2 y2 in pixels; `labels` (M,) int64. Truths may have `iscrowd`
and `difficult` (M,) uint8 and `area` (M,) float64; answers have `scores` (M,) float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    *("FLAGS", "Packed", "box_areas", "containing", "cut_answers", "join", "limit", "limit_target", "pack"),
    *("ragged_rows", "take", "unpack"),
]

Packed = dict[str, NDArray[Any]]
FLAGS = ("iscrowd", "difficult")


def pack(targets: Sequence[Mapping[str, NDArray[Any]]]) -> Packed:
    """Of one mapping of arrays for each picture. A key that some of them lack is 0 there, or the area of the box."""
    sizes = [len(target["labels"]) for target in targets]
    return {"offsets": np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]), **_columns(targets)}


def unpack(packed: Packed) -> list[dict[str, NDArray[Any]]]:
    """One mapping for each picture, of views."""
    ends = packed["offsets"].tolist()
    columns = {key: values for key, values in packed.items() if key != "offsets"}
    return [{key: values[start:end] for key, values in columns.items()} for start, end in pairwise(ends)]


def join(pieces: Sequence[Packed]) -> Packed:
    """The pictures of all pieces, in order."""
    sizes = np.concatenate([np.diff(piece["offsets"]) for piece in pieces])
    return {"offsets": np.concatenate([[0], np.cumsum(sizes)]), **_columns(pieces)}


def take(packed: Packed, positions: NDArray[np.int64]) -> Packed:
    """The pictures at `positions`, in that order; one may come twice."""
    counts = np.diff(packed["offsets"])[positions]
    _, rows = ragged_rows(packed["offsets"][positions], counts)
    columns = {key: values[rows] for key, values in packed.items() if key != "offsets"}
    return {"offsets": np.concatenate([[0], np.cumsum(counts)]), **columns}


def limit(packed: Packed, classes: Iterable[int]) -> Packed:
    """Only boxes of these classes; every picture stays."""
    return _select(packed, np.isin(packed["labels"], list(classes)))


def limit_target(target: Mapping[str, NDArray[Any]], classes: Iterable[int]) -> dict[str, NDArray[Any]]:
    """What is left of a picture's truth where only these classes are taught: the others are removed, not marked."""
    kept = np.isin(target["labels"], list(classes))
    return {key: values[kept] for key, values in target.items()}


def containing(truths: Packed, classes: Iterable[int]) -> NDArray[np.int64]:
    """Positions of the pictures that have a box of one of these classes."""
    return np.flatnonzero(np.diff(limit(truths, classes)["offsets"]))


def cut_answers(answers: Packed, max_detections: int) -> Packed:
    """At most so many of each picture and class: those with the highest scores, of equal ones the first."""
    pictures = np.repeat(np.arange(len(answers["offsets"]) - 1), np.diff(answers["offsets"]))
    order = np.lexsort((-answers["scores"], answers["labels"], pictures))  # stable
    new = np.diff(pictures[order], prepend=-1).astype(bool) | np.diff(answers["labels"][order], prepend=-1).astype(bool)
    places = np.arange(len(order))
    kept = np.zeros(len(order), dtype=bool)
    kept[order] = places - np.maximum.accumulate(np.where(new, places, 0)) < max_detections
    return answers if kept.all() else _select(answers, kept)


def box_areas(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(M,) in square pixels."""
    areas: NDArray[np.float64] = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    return areas


def ragged_rows(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of the runs starts[i], starts[i] + 1, ... of counts[i] numbers, all one after the other: (i, the number)."""
    owners = np.repeat(np.arange(len(counts)), counts)
    return owners, np.arange(len(owners)) + np.repeat(starts - np.cumsum(counts) + counts, counts)


def _select(packed: Packed, kept: NDArray[np.bool_]) -> Packed:
    offsets = np.concatenate([[0], np.cumsum(kept)])[packed["offsets"]]
    return {key: offsets if key == "offsets" else values[kept] for key, values in packed.items()}


def _columns(pieces: Sequence[Mapping[str, NDArray[Any]]]) -> Packed:
    keys = dict.fromkeys(key for piece in pieces for key in piece if key != "offsets")
    if not pieces:
        return {"boxes": np.empty((0, 4)), "labels": np.empty(0, dtype=np.int64)}
    return {key: np.concatenate([_column(piece, key) for piece in pieces]) for key in keys}


def _column(piece: Mapping[str, NDArray[Any]], key: str) -> NDArray[Any]:
    if key in piece:
        return piece[key]
    return box_areas(piece["boxes"]) if key == "area" else np.zeros(len(piece["labels"]), dtype=np.uint8)
