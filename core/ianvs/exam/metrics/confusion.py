"""Counts of true against predicted classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ianvs.base.errors import InvalidValue

if TYPE_CHECKING:
    import torch


def confusion_matrix(
    y_true: ArrayLike, y_pred: ArrayLike, num_classes: int, *, none: bool = False
) -> NDArray[np.int64]:
    """Return (C, C) int64 counts: [i, j] samples of class i that were predicted as class j.

    Args:
        y_true: Class indices 0..C-1, (N,) or segmentation masks. Floats are accepted if they are integers.
        y_pred: Predictions of the same shape.
        num_classes: C.
        none: Whether -1, "no class", may be predicted; it is counted in the last of C+1 columns.

    Raises:
        ValueError: If an entry is not a class index; it names the first such sample.
    """
    truth, predicted = class_indices(y_true, y_pred, num_classes, none=none)
    columns = num_classes + none
    cells = truth.ravel() * columns + predicted.ravel()
    return np.bincount(cells, minlength=num_classes * columns).reshape(num_classes, columns)


class ClassCounts(NamedTuple):
    """Counts by class, (C,) int64: samples of the class predicted as it, predictions of it, samples of it."""

    hits: NDArray[np.int64]
    predicted: NDArray[np.int64]
    true: NDArray[np.int64]

    @classmethod
    def of_matrix(cls, counts: NDArray[np.int64]) -> ClassCounts:
        """Count from a confusion matrix."""
        return cls(counts.diagonal(), counts.sum(axis=0)[: len(counts)], counts.sum(axis=1))

    @classmethod
    def of_labels(cls, truth: NDArray[np.int64], predicted: NDArray[np.int64], num_classes: int) -> ClassCounts:
        """Count from true and predicted class indices."""
        each = (truth[truth == predicted], predicted.ravel(), truth.ravel())
        return cls(*(np.bincount(labels, minlength=num_classes)[:num_classes] for labels in each))


def class_indices(
    y_true: ArrayLike, y_pred: ArrayLike, num_classes: int, *, none: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Check labels and predictions and return them as int64, with C for a predicted -1.

    The arguments are those of `confusion_matrix`.
    """
    truth = _class_indices(y_true, num_classes, "label")
    if none:
        y_pred = np.asarray(y_pred)
        y_pred = np.where(y_pred == -1, num_classes, y_pred)
    predicted = _class_indices(y_pred, num_classes + none, "prediction")
    if truth.shape != predicted.shape:
        raise InvalidValue(
            f"labels have shape {truth.shape}, predictions {predicted.shape}; there must be one prediction, a class "
            "index, for each label",
            "invalid-result",
        )
    return truth, predicted


def picture_confusion(
    y_true: NDArray[np.uint8], y_pred: NDArray[np.uint8] | torch.Tensor, num_classes: int
) -> NDArray[np.int64]:
    """Return (C, C+1) pixel counts: [i, j] of class i predicted as class j, [i, C] of class i predicted as "ignore".

    y_true: uint8 masks (N, ...), y_pred: uint8 array or tensor of the same shape; both hold 0..C-1, or 255 for no
    class. A tensor is counted on its device. Pixels whose truth is 255 are left out.
    """
    size = num_classes + 1
    # "Ignore" has an index like a class, C. Dropping its row is much cheaper than excluding its pixels.
    if isinstance(y_pred, np.ndarray):
        counts = np.zeros(size * size, dtype=np.int64)
        for truth, predicted in zip(
            y_true, y_pred, strict=True
        ):  # one at a time: the cells of one mask fit the processor's cache
            cells = np.minimum(truth, num_classes).astype(np.intp)
            cells *= size
            cells += np.minimum(predicted, num_classes)
            counts += np.bincount(cells.ravel(), minlength=size * size)
    else:
        import torch

        narrow = torch.int16 if size * size <= 1 << 15 else torch.int32
        truths = torch.from_numpy(y_true).to(y_pred.device)
        counted = truths.clamp(max=num_classes).to(narrow).mul_(size).add_(y_pred.clamp(max=num_classes))
        counts = torch.bincount(counted.flatten(), minlength=size * size).cpu().numpy()
    matrix: NDArray[np.int64] = counts.reshape(size, size)[:num_classes]
    return matrix


def _class_indices(values: ArrayLike, num_classes: int, noun: str) -> NDArray[np.int64]:
    try:
        array = np.asarray(values)
        if array.dtype == object:
            array = np.asarray(array.tolist())
    except ValueError as error:
        raise InvalidValue(
            f"{noun}s don't form an array: {error}. {_expected(num_classes)}", "invalid-result"
        ) from error
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "biuf":
        first = array.ravel()[:1].tolist()[0]
        kind = {"U": "text", "S": "bytes", "c": "complex numbers", "O": "objects"}.get(array.dtype.kind, array.dtype)
        raise InvalidValue(
            f"{noun}s are {kind}, not class indices: {first!r}. {_expected(num_classes)}", "invalid-result"
        )
    if array.dtype.kind == "f":
        _refuse(array, ~(np.isfinite(array) & (array == np.floor(array))), noun, num_classes)
    if array.min() < 0 or array.max() >= num_classes:
        _refuse(array, (array < 0) | (array >= num_classes), noun, num_classes)
    return array.astype(np.int64)


def _refuse(array: NDArray[Any], wrong: NDArray[np.bool_], noun: str, num_classes: int) -> None:
    positions = np.argwhere(wrong)
    if len(positions):
        first = tuple(int(index) for index in positions[0])
        where = f"sample {first[0]}" if len(first) == 1 else f"position {first}"
        raise InvalidValue(
            f"{noun} of {where} is {array[first].item()}, no class index ({len(positions)} such {noun}s). "
            + _expected(num_classes),
            "invalid-result",
        )


def _expected(num_classes: int) -> str:
    if not num_classes:
        return "These data have no classes; the metric exact_match compares texts"
    return f"A class index is a whole number from 0 to {num_classes - 1}"
