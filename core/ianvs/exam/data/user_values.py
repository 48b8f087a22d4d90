"""Converts values that a user's dataset returns, such as tensors, PIL images and lists, to arrays."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.deep_images import is_deep
from ianvs.base.errors import DataError, code_of, one_line
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.arrays import plain_array
from ianvs.exam.data.cells import CellError, classes_of
from ianvs.exam.data.decode import mask_array, rgb_of


def to_pixels(sample: Any, where: str, spec: DatasetSpec) -> NDArray[Any]:
    """Return the array of one sample; a PIL image becomes 8-bit grey or RGB in the size of the dataset."""
    if not hasattr(sample, "getbands"):
        return to_array(sample, where)
    try:
        rgb = rgb_of(sample, spec.image_size, spec.value_range)
    except (DataError, ValueError) as error:
        raise DataError(f"{where} {error}", code=code_of(error, "unreadable-data")) from None
    return rgb[..., 0] if sample.mode == "L" or (is_deep(sample) and len(sample.getbands()) == 1) else rgb


def to_numbers(array: NDArray[Any], where: str) -> NDArray[Any]:
    """Return uint8 unchanged, other numbers as float32."""
    if array.dtype.kind not in "iufb":
        raise DataError(f"{where} is {in_words(array)}; expected numbers, or paths of images.", code="invalid-result")
    return array if array.dtype == np.uint8 else array.astype(np.float32, copy=False)


def to_labels(labels: object, where: str) -> NDArray[Any]:
    """Return (N,) int64 or strings (names, or paths of segmentation masks), or (N, height, width) segmentation
    masks.
    """
    if isinstance(labels, list | tuple):
        labels = [_to_label(label) for label in labels]
    array = to_array(labels, where)
    if array.dtype == object:
        array = to_array([_to_label(label) for label in array.tolist()], where)
    if array.dtype.kind in "OS" and array.ndim == 1:  # names beside numbers, bytes, None
        try:
            array = np.array(classes_of(array).tolist(), dtype=str)
        except CellError as error:
            raise DataError(f"label {error.row} of {where} {error.message}.", code="invalid-result") from None
    if array.dtype.kind not in "iub" or (array.dtype.kind == "b" and array.ndim < 3):
        return array
    return array.astype(np.uint8 if array.ndim > 2 and array.min() >= 0 and array.max() <= 255 else np.int64)


def _to_label(label: object) -> object:
    if isinstance(label, os.PathLike):
        return os.fspath(label)
    if hasattr(label, "getbands"):
        return mask_array(label)
    if hasattr(label, "item") and getattr(label, "shape", None) in ((), (1,)):
        return label.item()
    return plain_array(label) if hasattr(label, "detach") else label


def to_array(value: object, where: str) -> NDArray[Any]:
    try:
        return plain_array(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{where} is {in_words(value)}, which is no array ({error}).", code="invalid-result") from None


def in_words(value: object) -> str:
    """Describe a value in a few words, for messages."""
    if value is None or isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, Mapping):
        return f"a mapping with {one_line([repr(key) for key in value]) or 'nothing in it'}"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"{getattr(value, 'dtype', type(value).__name__)} {tuple(shape)}"
    return f"'{value}'" if isinstance(value, str) and len(value) <= 40 else f"{type(value).__name__}"
