"""Label pictures as downloaded: read, checked, and mapped to the ids that an exam uses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.datasets.labelset import IGNORE
from ianvs.errors import DataError, one_line, shown_path

__all__ = ["check_ids", "check_size", "deep_colour", "deep_first_channel", "map_ids", "read_ids", "write_ids"]

_DEPTH, _COLOUR_TYPE = 24, 25  # bytes of a PNG file (RFC 2083, section 4.1.1)


def read_ids(path: Path, *, first_channel: bool = False) -> NDArray[Any]:
    """(height, width) integers of a label picture of 8 or 16 bits; the first channel of several if so asked."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            bands = len(image.getbands())
            if bands == 1 and not deep_colour(path):
                return np.asarray(image)
            if not first_channel:
                raise DataError(
                    f"{shown_path(path)}: is a colour picture ({image.mode}); a label picture has one channel of ids."
                )
            return deep_first_channel(path) if deep_colour(path) else np.asarray(image)[..., 0]
    except (OSError, SyntaxError, ValueError, RuntimeError, Image.DecompressionBombError) as error:
        raise DataError(
            f"{shown_path(path)}: can't be decoded as a picture ({error}). Download it again, or leave it out."
        ) from None


def check_size(picture: Path, label: Path, shape: tuple[int, ...]) -> None:
    """Raises DataError if the picture is not of the (height, width) of its labels. Reads only its head."""
    from PIL import Image

    try:
        with Image.open(picture) as image:
            width, height = image.size
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(
            f"{shown_path(picture)}: can't be opened as a picture ({error}). Download it again, or leave it out."
        ) from None
    if (height, width) != shape:
        raise DataError(
            f"{shown_path(label)}: is {shape[0]}x{shape[1]} (height x width), its picture {shown_path(picture)} is "
            f"{height}x{width}. Labels are for every pixel of their picture: one of the files is not the original."
        )


def check_ids(path: Path, ids: NDArray[Any], count: int) -> None:
    """Raises DataError unless all ids are below `count`, or one of the two that mean "ignore": 255 and `count`."""
    present = np.unique(ids)
    _refuse(path, ids, present[((present < 0) | (present > count)) & (present != IGNORE)], f"0 to {count - 1}, or 255")


def map_ids(path: Path, ids: NDArray[Any], mapping: Mapping[int, int]) -> NDArray[np.uint8]:
    """`ids` through `mapping`. Raises DataError for an id that it does not hold."""
    present = np.unique(ids)
    unknown = present[~np.isin(present, list(mapping))]
    known = sorted(number for number in mapping if number != IGNORE)
    _refuse(path, ids, unknown, f"{known[0]} to {known[-1]}")
    table = np.full(IGNORE + 1, IGNORE, dtype=np.uint8)
    for source, target in mapping.items():
        table[source] = target
    mapped: NDArray[np.uint8] = table[ids]
    return mapped


def write_ids(path: Path, ids: NDArray[np.uint8]) -> None:
    """A single-channel 8-bit PNG."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(ids).save(path, format="PNG")


def _refuse(path: Path, ids: NDArray[Any], wrong: NDArray[Any], expected: str) -> None:
    if wrong.size:
        pixels = int(np.isin(ids, wrong).sum())
        found = f"holds the label {one_line(wrong.tolist(), 5)} at {pixels} pixel{'s' if pixels != 1 else ''}"
        raise DataError(f"{shown_path(path)}: {found}; expected {expected}. Is it a label picture of this dataset?")


def deep_colour(path: Path) -> bool:
    """Whether it is a PNG of 16 bits and several channels, which Pillow would cut down to the upper 8 bits."""
    with path.open("rb") as stream:
        head = stream.read(_COLOUR_TYPE + 1)
    return head[1:4] == b"PNG" and head[_DEPTH] == 16 and head[_COLOUR_TYPE] != 0


def deep_first_channel(path: Path) -> NDArray[Any]:
    """(height, width) ids of 16 bits.

    Pillow makes 8-bit pictures of 16-bit colour by taking the upper byte of each value. Where a value's bytes are
    said to come in the other order, it takes the lower one.
    """
    from PIL import Image

    upper_and_lower = []
    for order in "BL":
        with Image.open(path) as image:
            (name, extents, offset, raw), *rest = image.tile
            if rest or raw not in ("RGB;16B", "RGBA;16B"):
                raise DataError(
                    f"{shown_path(path)}: expected 16-bit RGB or RGBA, found {raw}. Save it as one of them."
                )
            image.tile = [type(image.tile[0])(name, extents, offset, raw[:-1] + order)]
            upper_and_lower.append(np.asarray(image)[..., 0].astype(np.int32))
    upper, lower = upper_and_lower
    ids: NDArray[Any] = upper * 256 + lower
    return ids
