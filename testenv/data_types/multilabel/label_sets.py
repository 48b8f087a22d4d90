"""Labels as authors return them, and answers as plugins give them: checked, and as arrays."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError, PluginError, closest, one_line

__all__ = ["MultiHot", "checked_scores", "limited", "multi_hot", "pack", "unpack"]

MultiHot = NDArray[np.uint8]
_FORMS = "expected an array (N, C) of 0 and 1, or for each sample a list of names or of class indices"


def multi_hot(labels: Any, classes: Sequence[str], what: str = "y") -> MultiHot:
    """(N, C) uint8 of an array (N, C) of 0 and 1, or of N lists of names or of class indices, which may be empty.

    what: of what they are labels, for messages. Raises DataError with the sample, from 0, and the remedy.
    """
    if isinstance(labels, str) or not hasattr(labels, "__len__"):
        raise DataError(f"{what} is {labels!r:.60}; {_FORMS}.")
    if getattr(labels, "ndim", 1) != 1 and np.asarray(labels).dtype.kind in "biuf":
        return _of_array(np.asarray(labels), classes, what)
    rows = [_set_of(label, f"{what}[{n}]") for n, label in enumerate(labels)]
    if rows and all(len(row) == len(classes) and all(_is_bit(each) for each in row) for row in rows):
        raise DataError(
            f"{what} is a list of lists of {len(classes)} numbers 0 or 1, which could be rows for {len(classes)} "
            "classes or class indices. For rows, return np.array(y, dtype=np.uint8); otherwise, lists of names."
        )
    position = {name: c for c, name in enumerate(classes)}
    told = np.zeros((len(rows), len(classes)), dtype=np.uint8)
    for n, row in enumerate(rows):
        told[n, [_index(each, position, f"{what}[{n}]") for each in row]] = 1
    return told


def checked_scores(answers: Any, samples: int, classes: int) -> NDArray[np.float32] | NDArray[np.float64]:
    """(N, C) scores as they were given, in float64 or float32. Booleans and 0 or 1 are scores, too.

    Raises PluginError for another shape, and for nan and +inf; -inf says "never".
    """
    try:
        scores = np.asarray(answers)
    except (ValueError, TypeError, RuntimeError) as error:
        raise PluginError(f"predict returned what is no array ({error}); {_expected(samples, classes)}.") from error
    if scores.shape != (samples, classes) or scores.dtype.kind not in "biuf":
        raise PluginError(
            f"predict returned {scores.dtype} of shape {scores.shape}; {_expected(samples, classes)}, in the order "
            "of the samples and of `classes`."
        )
    exact = np.result_type(scores.dtype, np.float32)
    scores = scores.astype(np.float32 if exact == np.float32 else np.float64, copy=False)
    wrong = np.isnan(scores) | (scores == np.inf)
    if wrong.any():
        n, c = (int(each) for each in np.argwhere(wrong)[0])
        raise PluginError(
            f"predict returned {scores[n, c]} for class {c} of sample {n}; scores are finite, or -inf for what is "
            "never answered."
        )
    return scores


def limited(labels: MultiHot, classes: Collection[int]) -> MultiHot:
    """(N, C) what is left of the labels where only these classes are taught: the others are removed, not marked."""
    return labels * np.isin(np.arange(labels.shape[1]), list(classes)).astype(np.uint8)


def pack(labels: MultiHot) -> NDArray[np.uint8]:
    """(N, ceil(C / 8)): eight classes a byte."""
    return np.packbits(labels, axis=1)


def unpack(packed: NDArray[np.uint8], classes: int) -> MultiHot:
    """(N, C) of what `pack` returned."""
    return np.unpackbits(packed, axis=1, count=classes)


def _of_array(labels: NDArray[Any], classes: Sequence[str], what: str) -> MultiHot:
    if labels.ndim != 2:
        raise DataError(f"{what} has the shape {labels.shape}; {_FORMS}.")
    if labels.shape[1] != len(classes):
        raise DataError(
            f"{what} has {labels.shape[1]} columns for {len(classes)} classes ({one_line(classes)}); expected a column "
            "for each class, in the order of `classes`."
        )
    wrong = (labels != 0) & (labels != 1)
    if wrong.any():
        n, c = (int(each) for each in np.argwhere(wrong)[0])
        raise DataError(
            f"{what}[{n}] has {labels[n, c]} for '{classes[c]}'; expected 1 where the sample has the label, else 0."
        )
    return labels.astype(np.uint8)


def _set_of(label: Any, where: str) -> list[Any]:
    if isinstance(label, str) or not isinstance(label, Iterable):
        shown = label.item() if isinstance(label, np.generic) else label
        raise DataError(f"{where} is {shown!r:.60}; expected a list: [{shown!r:.60}], or [] for no label.")
    return list(label)


def _is_bit(label: Any) -> bool:
    return isinstance(label, Integral | np.bool_) and label in (0, 1)


def _index(label: Any, position: dict[str, int], where: str) -> int:
    """Class index of a name or an index."""
    if isinstance(label, str):
        if label not in position:
            hint = closest(label, position)
            raise DataError(f"{where} has '{label}', which is no class.{hint} There are: {one_line(list(position))}.")
        return position[label]
    if type(label) is bool or not isinstance(label, Integral) or not 0 <= int(label) < len(position):
        raise DataError(
            f"{where} has {label!r:.60}; expected names, or class indices from 0 to {len(position) - 1}: "
            f"{one_line(list(position))}."
        )
    return int(label)


def _expected(samples: int, classes: int) -> str:
    return f"expected ({samples}, {classes}) scores, higher being likelier"
