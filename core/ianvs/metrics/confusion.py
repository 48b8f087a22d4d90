"""Counts of true against predicted classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["confusion_matrix"]


def confusion_matrix(y_true: ArrayLike, y_pred: ArrayLike, num_classes: int) -> NDArray[np.int64]:
    """(C, C) int64 counts: [i, j] samples of class i that were predicted as class j.

    y_true, y_pred: class indices 0..C-1 of equal shape, (N,) or label pictures. Floats are taken if they are whole
    numbers. Raises ValueError that names the first sample that is not a class index.
    """
    truth = _class_indices(y_true, num_classes, "label")
    predicted = _class_indices(y_pred, num_classes, "prediction")
    if truth.shape != predicted.shape:
        raise ValueError(
            f"labels have shape {truth.shape}, predictions {predicted.shape}; there must be one prediction, a class "
            "index, for each label"
        )
    cells = truth.ravel() * num_classes + predicted.ravel()
    return np.bincount(cells, minlength=num_classes * num_classes).reshape(num_classes, num_classes).astype(np.int64)


def _class_indices(values: ArrayLike, num_classes: int, what: str) -> NDArray[np.int64]:
    try:
        array = np.asarray(values)
        if array.dtype == object:
            array = np.asarray(array.tolist())
    except ValueError as error:
        raise ValueError(f"{what}s don't form an array: {error}. {_expected(num_classes)}") from error
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "biuf":
        first = array.ravel()[:1].tolist()[0]
        raise ValueError(f"{what}s are {_kind(array)}, not class indices: {first!r}. {_expected(num_classes)}")
    if array.dtype.kind == "f":
        _refuse(array, ~(np.isfinite(array) & (array == np.floor(array))), what, num_classes)
    if array.min() < 0 or array.max() >= num_classes:
        _refuse(array, (array < 0) | (array >= num_classes), what, num_classes)
    return array.astype(np.int64)


def _refuse(array: NDArray[Any], wrong: NDArray[np.bool_], what: str, num_classes: int) -> None:
    positions = np.argwhere(wrong)
    if len(positions):
        first = tuple(int(index) for index in positions[0])
        where = f"sample {first[0]}" if len(first) == 1 else f"position {first}"
        raise ValueError(
            f"{what} of {where} is {array[first].item()}, no class index ({len(positions)} such {what}s). "
            + _expected(num_classes)
        )


def _expected(num_classes: int) -> str:
    return f"A class index is a whole number from 0 to {num_classes - 1}"


def _kind(array: NDArray[Any]) -> str:
    return {"U": "text", "S": "bytes", "c": "complex numbers", "O": "objects"}.get(array.dtype.kind, str(array.dtype))
