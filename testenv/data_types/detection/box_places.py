"""Checks of boxes against their images: sizes in the box files, EXIF orientations, the edges."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Location, ValidationError, shown_path
from ianvs.exam.data.listing import SourceError, summary
from ianvs.testenv.data_types.detection.box_files import BoxFiles, PictureHead, Size, picture_head

_SWAPPED = range(5, 9)  # EXIF orientations that swap width and height
_TURNED = range(2, 5)  # orientations that mirror or rotate by 180 degrees, which a written size does not reveal
_TURN = (
    "`from PIL import Image, ImageOps; ImageOps.exif_transpose(Image.open(f)).save(f, quality=95)` turns a file f "
    "itself, once for all."
)
_IGNORE = "`written_sizes: ignore` in the dataset takes boxes as they are, in pixels of the file."


def check_box_files(files: BoxFiles, *, ignore_sizes: bool) -> tuple[ValidationError, ...]:
    """Check boxes against the headers of their image files.

    A box that is partly outside is left as it is, as in pycocotools.

    Args:
        files: The result of a reader.
        ignore_sizes: Whether written sizes and EXIF orientations are ignored.

    Returns:
        Warnings, each at the first entry that it is about.

    Raises:
        SourceError: A written size differs from that of the image, so the boxes were drawn on another image.
    """
    heads = [picture_head(path) for path in files.pictures]
    refused, turned = [], []
    for row, head in enumerate(() if ignore_sizes else heads):
        size = files.sizes[row] if files.sizes else None
        name = shown_path(files.pictures[row])
        if head.orientation in _TURNED or (size is None and head.orientation in _SWAPPED):
            turned.append(row)
        if size is not None and (message := _size_problem(size, head, name)) is not None:
            refused.append(ValidationError(message, files.place(row, None), code="invalid-record"))
    if refused:
        raise SourceError(summary(refused))
    problems = []
    if turned:
        message = (
            f"{shown_path(files.pictures[turned[0]])} has an EXIF orientation, which is not applied, as {len(turned)} "
            f"of {len(heads)} images have: boxes that were drawn on the upright image lie elsewhere. {_TURN} "
            f"{_IGNORE}"
        )
        problems.append(ValidationError(message, files.place(turned[0], None), warning=True, code="doubtful-data"))
    sizes = np.array([head.size[::-1] for head in heads], dtype=np.float64)
    problems += box_warnings(files.labels, sizes, files.place)
    return tuple(problems)


def _size_problem(size: Size, head: PictureHead, name: str) -> str | None:
    (width, height), stored = size, head.size
    if size == stored:
        return None
    written = f"width {width:g} and height {height:g} are written here, and {name} is {stored[0]} x {stored[1]}"
    if (height, width) == stored and head.orientation in _SWAPPED:
        return (
            f"{written} with an EXIF orientation, which is not applied: the boxes are of the upright image. "
            f"{_TURN} {_IGNORE}"
        )
    return (
        f"{written}: the boxes were drawn on another image, or one of another size. Use the image that they were "
        f"drawn on, or mend the size. {_IGNORE}"
    )


def box_warnings(
    labels: Sequence[Mapping[str, Any]] | NDArray[Any],
    sizes: NDArray[Any],
    place: Callable[[int, int], Location | None],
) -> list[ValidationError]:
    """Warn of boxes that no answer can match: those entirely outside their image, or without area.

    Args:
        labels: N labels with `boxes` (n, 4), x1 y1 x2 y2 in pixels.
        sizes: (N, 2) height and width of the images.
        place: Returns the location of a box, given the positions of its image and of the box in it.

    Returns:
        No warning, or one, at the first box that it is about.
    """
    if (share := _first_share(labels)) is not None:
        message = (
            "all boxes lie within the first pixel of their pictures: they seem to be shares of width and height. "
            "Multiply them by the width and height of each image."
        )
        return [ValidationError(message, place(*share), warning=True, code="doubtful-data")]
    wrong = list(_unmatchable(labels, sizes))
    if not wrong:
        return []
    total = sum(len(label["boxes"]) for label in labels)
    row, box = wrong[0]
    corners = ", ".join(f"{value:g}" for value in np.asarray(labels[row]["boxes"], float)[box])
    height, width = sizes[row]
    message = (
        f"{len(wrong)} of {total} boxes lie wholly outside of their image or have no area, so that no answer can "
        f"match them, such as box {box} of sample {row}, x1 y1 x2 y2 ({corners}) in an image of {width:g} x "
        f"{height:g} (width x height). Mend them, or take them out."
    )
    return [ValidationError(message, place(row, box), warning=True, code="doubtful-data")]


def _first_share(labels: Sequence[Mapping[str, Any]] | NDArray[Any]) -> tuple[int, int] | None:
    """Return (image, box) of the first box, if all boxes have corners from 0 to 1 and some are fractions; else None."""
    first, fractions = None, False
    for row, label in enumerate(labels):
        boxes = np.asarray(label["boxes"], dtype=np.float64)
        if boxes.size and not ((boxes >= 0) & (boxes <= 1)).all():
            return None
        first = (row, 0) if first is None and boxes.size else first
        fractions = fractions or bool((boxes % 1).any())
    return first if fractions else None


def _unmatchable(labels: Sequence[Mapping[str, Any]] | NDArray[Any], sizes: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Yield (image, box) of each box that no answer can match."""
    for row, (label, (height, width)) in enumerate(zip(labels, sizes, strict=True)):
        x1, y1, x2, y2 = np.asarray(label["boxes"], dtype=np.float64).reshape(-1, 4).T
        outside = (np.minimum(x2, width) <= np.maximum(x1, 0)) | (np.minimum(y2, height) <= np.maximum(y1, 0))
        yield from ((row, int(box)) for box in np.flatnonzero(outside))
