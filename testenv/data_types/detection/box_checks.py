"""Checks of labels and answers; errors name the sample and a remedy."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import InvalidValue, PluginError, closest, one_line
from ianvs.testenv.data_types.detection.box_overlaps import Boxes, box_areas

MAX_DETECTIONS = 100  # per image and class, as in COCO's evaluation
FLAGS = ("iscrowd", "difficult")
_OPTIONAL = (*FLAGS, "area")
_COLUMNS = 6  # x1 y1 x2 y2 score label
_TYPES: dict[str, Any] = {"labels": np.int64, "iscrowd": np.uint8, "difficult": np.uint8}

Lists = dict[str, list[Any]]


def checked_labels(y: Sequence[Any], num_classes: int | None) -> list[Lists]:
    """Return the labels of images after checks, as lists.

    y: a mapping of `boxes` (n, 4) and `labels` (n,), maybe `iscrowd`, `difficult`, `area`, for each image. num_classes:
    None: as many as the highest label needs. Raises ValueError, which names the sample.
    """
    offsets, columns = _checked(y, ("boxes", "labels"), _OPTIONAL, num_classes)
    return [{key: values.tolist() for key, values in boxes.items()} for boxes in by_picture(offsets, columns)]


def checked_answers(answers: Any, count: int, num_classes: int, where: str, most: int = MAX_DETECTIONS) -> list[Boxes]:
    """Return the answers to `count` images after checks.

    Each is a mapping of `boxes`, `labels` and `scores`, or (m, 6) x1 y1 x2 y2 score label. For each image and class the
    `most` answers with the highest scores are kept; of equal scores, the first ones. where: the source of the answers,
    for errors. Raises PluginError.
    """
    if isinstance(answers, (Mapping, str)) or not hasattr(answers, "__len__"):
        message = f"{where} returned {type(answers).__name__}; expected a list with boxes, labels and scores of each"
        raise PluginError(f"{message} image.", code="invalid-result")
    if len(answers) != count:
        message = f"{where} returned {len(answers)} answers for {count} images; expected one for each"
        raise PluginError(f"{message}, with boxes of shape (0, 4) where there is nothing.", code="invalid-result")
    try:
        offsets, columns = _checked(answers, ("boxes", "labels", "scores"), (), num_classes)
    except ValueError as error:
        raise PluginError(f"{where}, {error}", code="invalid-result") from None
    pictures = np.repeat(np.arange(count), np.diff(offsets))
    order = np.lexsort((-columns["scores"], columns["labels"], pictures))  # stable
    groups = np.stack([pictures, columns["labels"]])[:, order]
    places = np.arange(len(order))
    begins = np.where((np.diff(groups, axis=1, prepend=-1) != 0).any(axis=0), places, 0)
    keep = np.zeros(len(order), dtype=bool)
    keep[order] = places - np.maximum.accumulate(begins) < most
    offsets = np.concatenate([[0], np.cumsum(keep)])[offsets]
    return by_picture(offsets, {key: values[keep] for key, values in columns.items()})


def _checked(
    items: Sequence[Any], required: Sequence[str], optional: Sequence[str], num_classes: int | None
) -> tuple[NDArray[np.int64], Boxes]:
    """Return (offsets (N+1,), the columns of all items).

    A key that some of the items lack is 0 there, or, for `area`, the area of the box.
    """
    rows: list[Boxes] = []
    for i, item in enumerate(items):
        try:
            rows.append(_arrays(item, required, optional))
        except ValueError as error:
            raise InvalidValue(f"sample {i}: {error}", "invalid-record") from None
    offsets = np.cumsum([0, *(len(row["labels"]) for row in rows)], dtype=np.int64)
    none = {key: np.empty((0, 4) if key == "boxes" else 0) for key in required}
    keys = dict.fromkeys(key for row in (none, *rows) for key in row)
    columns = {key: np.concatenate([_column(row, key) for row in (none, *rows)]) for key in keys}
    if problem := _wrong_value(columns, num_classes):
        row_, message = problem
        sample = int(np.searchsorted(offsets, row_, side="right")) - 1
        raise InvalidValue(f"sample {sample}, box {row_ - offsets[sample]}: {message}", "invalid-record")
    return offsets, {key: values.astype(_TYPES.get(key, np.float64)) for key, values in columns.items()}


def _column(row: Boxes, key: str) -> NDArray[Any]:
    if key in row:
        return row[key]
    return box_areas(row["boxes"]) if key == "area" else np.zeros(len(row["labels"]))


def by_picture(offsets: NDArray[np.int64], columns: Boxes) -> list[Boxes]:
    """Return the rows of each image, as views. offsets: (N+1,) beginnings of the images' rows."""
    ends = pairwise(offsets.tolist())
    return [{key: values[start:end] for key, values in columns.items()} for start, end in ends]


def _arrays(item: Any, required: Sequence[str], optional: Sequence[str]) -> Boxes:
    """Return the arrays of one image: `boxes` (n, 4), others (n,). Raises ValueError."""
    expected = f"expected {', '.join(required)}" + (f", and maybe {', '.join(optional)}" if optional else "")
    if not isinstance(item, Mapping):
        if "scores" not in required:
            raise InvalidValue(f"a truth is a mapping, this is {type(item).__name__}; {expected}.", "invalid-record")
        rows = _numbers(item, "the answer")
        if rows.size and (rows.ndim != 2 or rows.shape[1] != _COLUMNS):
            message = f"an answer is a mapping or an array (m, {_COLUMNS}) of x1 y1 x2 y2 score label"
            raise InvalidValue(f"{message}; this has shape {rows.shape}.", "invalid-record")
        rows = rows.reshape(-1, _COLUMNS)
        return {"boxes": rows[:, :4], "labels": rows[:, 5], "scores": rows[:, 4]}
    for key in item:
        if key not in (*required, *optional):
            hint = closest(str(key), (*required, *optional))
            raise InvalidValue(
                f"'{key}' means nothing here; {expected}.{hint} Leave out what is not used.", "invalid-record"
            )
    for key in required:
        if key not in item:
            raise InvalidValue(
                f"there is no '{key}', only {one_line(list(item)) or 'nothing'}; {expected}.", "invalid-record"
            )
    arrays = {key: _numbers(values, key) for key, values in item.items()}
    boxes = arrays["boxes"]
    if boxes.size and (boxes.ndim != 2 or boxes.shape[1] != 4):
        message = f"boxes have shape {boxes.shape}; expected (n, 4), x1 y1 x2 y2 of each box"
        raise InvalidValue(f"{message}, and (0, 4) where there is nothing.", "invalid-record")
    arrays["boxes"] = boxes.reshape(-1, 4)
    for key, values in arrays.items():
        if values.size == 0 and key != "boxes":
            values = arrays[key] = values.reshape(-1)
        if key != "boxes" and values.shape != (len(arrays["boxes"]),):
            message = f"{key} have shape {values.shape} and boxes {arrays['boxes'].shape}"
            raise InvalidValue(f"{message}; expected one entry for each box.", "invalid-record")
    return arrays


def _numbers(values: Any, name: str) -> NDArray[np.float64]:
    if hasattr(values, "detach"):  # a tensor, maybe on a GPU, maybe bfloat16, which numpy doesn't know
        values = values.detach().cpu().double()
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidValue(f"{name} is no array: its rows differ in length.", "invalid-record") from None
    if array.size and array.dtype.kind not in "biuf":
        raise InvalidValue(f"{name} holds {array.dtype}; expected numbers.", "invalid-record")
    return array.astype(np.float64)


def _wrong_value(packed: Boxes, num_classes: int | None) -> tuple[int, str] | None:
    """Return (row, description) of the first invalid value; None if there is none."""
    boxes, labels = packed["boxes"], packed["labels"]
    for key in ("boxes", "scores", "area"):
        values = packed.get(key, np.empty(0))
        if not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0][0])
            hint = " Leave out the box, or look for a division by 0." if key != "scores" else " Has training diverged?"
            return row, f"{key} holds {_shown_value(values[row])}, which is no finite number.{hint}"
    for axis, low in (("x", 0), ("y", 1)):
        if (wrong := boxes[:, low + 2] < boxes[:, low]).any():
            row = int(np.argmax(wrong))
            message = f"{_shown_value(boxes[row])} has {axis}2 < {axis}1. Boxes are x1 y1 x2 y2"
            return row, f"{message}: if these are x y width height, add x and y to them."
    most = np.inf if num_classes is None else num_classes
    if (wrong := (labels != np.floor(labels)) | (labels < 0) | (labels >= most) | ~np.isfinite(labels)).any():
        row = int(np.argmax(wrong))
        expected = "a whole number from 0" if num_classes is None else f"one of 0 to {num_classes - 1}"
        message = f"label {labels[row]:g} is not {expected}"
        return row, f"{message}. If 0 is the background (as in torchvision), take 1 off."
    for key in FLAGS:
        if key in packed and (wrong := ~np.isin(packed[key], (0, 1))).any():
            row = int(np.argmax(wrong))
            return row, f"{key} is {packed[key][row]:g}; expected 0 or 1."
    if "area" in packed and (wrong := packed["area"] < 0).any():
        row = int(np.argmax(wrong))
        return row, f"area is {packed['area'][row]:g}; expected square pixels, or leave `area` out for that of the box."
    return None


def _shown_value(values: Any) -> str:
    return "(" + ", ".join(f"{value:g}" for value in values) + ")" if np.ndim(values) else f"{values:g}"
