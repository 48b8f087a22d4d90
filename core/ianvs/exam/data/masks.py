"""Converts the values in segmentation masks to class indices of the dataset."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Location, closest, one_line
from ianvs.config.models.image_keys import IGNORE
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.labels import AS_WRITTEN, IGNORED, Numbering
from ianvs.exam.data.listing import SourceError

_SHOWN = 6  # colours listed in a message
_MANY = 256  # number of colours above which an image is a photograph or was compressed lossily


def mask_numbering(spec: DatasetSpec, names: Sequence[str]) -> Numbering | None:
    """Return the numbering of classes by `mask_values`; None without that key.

    Raises SourceError for a name that is none of the classes.
    """
    if spec.mask_values is None:
        return None
    place = spec.places.get("mask_values", spec.place)
    for name in spec.mask_values:
        if name != IGNORE and name not in names:
            message = f"'{name}' in `mask_values` is none of the classes: {one_line(names)}.{closest(name, names)}"
            raise SourceError.single(message, place, "unknown-class")
    classes = tuple(IGNORED if name == IGNORE else names.index(name) for name in spec.mask_values)
    return Numbering(classes, values=tuple(spec.mask_values.values()))


def to_class_indices(values: NDArray[np.integer], numbering: Numbering, place: Location) -> NDArray[np.uint8]:
    """Return a mask as class indices of the dataset, (height, width); ignored pixels become 255.

    Args:
        values: (height, width), or (height, width, 3) colours. Without `mask_values` they are positions in the
            numbering, or 255 or the number of its classes for ignored pixels (as CamVid's void, 11 of 11); colours have
            to be grey, or red only.
        numbering: Of the file.
        place: Of the file, for messages.

    Raises:
        SourceError: For any other number, and for unknown colours.
    """
    if numbering.values:
        return _by_mask_values(values, numbering, place)
    values = values if values.ndim == 2 else _single_channel(values, place)
    count = len(numbering.classes)
    wrong = np.unique(values[(values < 0) | ((values > count) & (values != IGNORED))])
    if len(wrong):
        why = (
            f", but the class list{numbering.owner} has {count} names (0 to {count - 1}); {count} and {IGNORED} are "
            "for ignored pixels. List all classes by `classes`, or say what each number stands for: "
            f"`mask_values: {{NAME: {wrong[0]}, ...}}`."
        )
        if numbering is AS_WRITTEN:
            why = (
                f"; masks hold 0 to {IGNORED - 1}, and {IGNORED} for ignored pixels. Say in the dataset what each "
                f"number stands for: `mask_values: {{NAME: {wrong[0]}, ...}}`."
            )
        raise SourceError.single(f"holds the label {wrong[0]}{why}", place, "unknown-class")
    if numbering.classes == tuple(range(count)):  # a lookup table would take ten times as long
        labels = values.astype(np.uint8)
        labels[labels == count] = IGNORED
        return labels
    table = np.full(256, IGNORED, dtype=np.uint8)
    table[:count] = numbering.classes
    return np.asarray(table[values])


def _by_mask_values(values: NDArray[np.integer], numbering: Numbering, place: Location) -> NDArray[np.uint8]:
    """Return `renumbered` for a numbering with `mask_values`."""
    if numbering.colours:
        values = values if values.ndim == 3 else np.stack([values] * 3, axis=-1)
    elif values.ndim == 3:
        values = _single_channel(values, place)
    codes = _codes(values)
    table_of = {_code(value): index for value, index in zip(numbering.values, numbering.classes, strict=True)}
    if not numbering.colours:
        table_of.setdefault(IGNORED, IGNORED)
    present, where = np.unique(codes, return_inverse=True)
    if unknown := [_as_mask_value(code, numbering.colours) for code in present.tolist() if code not in table_of]:
        noun = "colours" if numbering.colours else "numbers"
        message = (
            f"holds {noun} that `mask_values` does not name: {one_line(unknown, _SHOWN)}. Add the class of each; "
            f"`{IGNORE}: {unknown[0]}` leaves pixels out."
        )
        raise SourceError.single(message, place, "unknown-class")
    table = np.array([table_of[code] for code in present.tolist()], np.uint8)
    return table[where].reshape(codes.shape)


def _single_channel(values: NDArray[np.integer], place: Location) -> NDArray[np.integer]:
    """Return (height, width) of an image whose channels are equal, or that is red only."""
    first = values[..., 0]
    if not values[..., 1:].any() or (values == first[..., None]).all():
        return first
    codes, counts = np.unique(_codes(values), return_counts=True)
    if len(codes) > _MANY:
        message = (
            f"is a colour image with {len(codes)} colours: a photograph, or a mask that was compressed lossily. A mask "
            "has one number or one colour for each class."
        )
        raise SourceError.single(message, place, "damaged-dataset")
    colours = [_as_mask_value(code, True) for code in codes[np.argsort(-counts, kind="stable")].tolist()]
    pairs = ", ".join(f"NAME_{i}: {colour}" for i, colour in enumerate(colours[:_SHOWN]))
    message = (
        f"is a colour image; a mask has one channel of class indices, or a colour for each class. Its colours are "
        f"{one_line(colours, _SHOWN)}. Name the class of each in the dataset: `mask_values: {{{pairs}}}`."
    )
    raise SourceError.single(message, place, "ambiguous-data")


def _codes(values: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return (height, width) integers, a unique one for each number or colour."""
    if values.ndim == 2:
        return values.astype(np.int64)
    red, green, blue = (values[..., channel].astype(np.int64) for channel in range(3))
    return (red << 16) | (green << 8) | blue


def _code(value: int | Sequence[int]) -> int:
    return value if isinstance(value, int) else value[0] << 16 | value[1] << 8 | value[2]


def _as_mask_value(code: int, colour: bool) -> str:
    """Return a number or colour in the notation of `mask_values`."""
    return str([code >> 16, code >> 8 & 255, code & 255]) if colour else str(code)
