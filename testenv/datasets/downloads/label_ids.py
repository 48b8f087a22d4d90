"""Reading, checking and mapping segmentation masks of downloads to the ids of an exam."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError, first_line, one_line, shown_path
from ianvs.exam.data.decode import deep_colour, deep_first_channel, picture_size
from ianvs.exam.data.labels import IGNORED


def read_ids(path: Path, *, first_channel: bool = False) -> NDArray[Any]:
    """Return the integers (height, width) of a segmentation mask of 8 or 16 bits.

    first_channel: read the first channel if there are several.
    """
    from PIL import Image

    try:
        held = path.read_bytes()
        with Image.open(path) as image:
            bands = len(image.getbands())
            if bands == 1 and not deep_colour(held):
                return np.asarray(image)
            if not first_channel:
                raise DataError(
                    f"{shown_path(path)}: is a colour image ({image.mode}); a mask has one channel of ids.",
                    code="invalid-record",
                )
            return deep_first_channel(held, str(path)) if deep_colour(held) else np.asarray(image)[..., 0]
    except (OSError, SyntaxError, ValueError, RuntimeError, Image.DecompressionBombError) as error:
        message = f"{shown_path(path)}: can't be decoded as an image ({first_line(error)})."
        raise DataError(f"{message} Download it again, or leave it out.", code="unreadable-data") from None


def check_size(picture: Path, label: Path, shape: tuple[int, ...]) -> None:
    """Raise DataError unless the image has the same (height, width) as its labels. Reads only its header."""
    height, width = picture_size(str(picture))
    if (height, width) != shape:
        raise DataError(
            f"{shown_path(label)}: is {shape[0]}x{shape[1]} (height x width), its image {shown_path(picture)} is "
            f"{height}x{width}. Labels are for every pixel of their picture: one of the files is not the original.",
            code="invalid-record",
        )


def check_ids(path: Path, ids: NDArray[Any], count: int) -> None:
    """Raise DataError unless all ids are below `count` or mean "ignore": 255 and `count`."""
    present = np.unique(ids)
    _refuse(path, ids, present[((present < 0) | (present > count)) & (present != IGNORED)], f"0 to {count - 1}, or 255")


def map_ids(path: Path, ids: NDArray[Any], mapping: Mapping[int, int]) -> NDArray[np.uint8]:
    """Return `ids` mapped by `mapping`. Raises DataError for an id that is not in it."""
    present = np.unique(ids)
    unknown = present[~np.isin(present, list(mapping))]
    allowed = sorted(number for number in mapping if number != IGNORED)
    _refuse(path, ids, unknown, f"{allowed[0]} to {allowed[-1]}")
    table = np.full(IGNORED + 1, IGNORED, dtype=np.uint8)
    for source, target in mapping.items():
        table[source] = target
    mapped: NDArray[np.uint8] = table[ids]
    return mapped


def write_ids(path: Path, ids: NDArray[np.uint8]) -> None:
    """Write a single-channel 8-bit PNG."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(ids).save(path, format="PNG")


def _refuse(path: Path, ids: NDArray[Any], wrong: NDArray[Any], expected: str) -> None:
    if wrong.size:
        pixels = int(np.isin(ids, wrong).sum())
        problem = f"holds the label {one_line(wrong.tolist(), 5)} at {pixels} pixel{'s' if pixels != 1 else ''}"
        raise DataError(
            f"{shown_path(path)}: {problem}; expected {expected}. Is it a mask of this dataset?",
            code="invalid-record",
        )
