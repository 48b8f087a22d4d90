"""One picture file -> one array."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError, Place, Problem, shown_path
from ianvs.exam.data.labels import AS_WRITTEN, Numbering, renumbered
from ianvs.exam.data.listing import SourceError

_DEPTH, _COLOUR_TYPE = 24, 25  # bytes of a PNG file (RFC 2083, section 4.1.1)


def decode_picture(path: str, size: tuple[int, int] | None, held: bytes | None = None) -> NDArray[np.uint8]:
    """(height, width, 3) RGB, grey and transparent ones converted; resized bilinearly with antialiasing.

    held: what is in the file, where it is at hand; `path` is then what errors call it.
    """
    from PIL import Image

    try:
        with Image.open(path if held is None else BytesIO(held)) as image:
            rgb = image if image.mode == "RGB" else image.convert("RGB")  # which is a copy
            if size is not None and rgb.size != (size[1], size[0]):
                rgb = rgb.resize((size[1], size[0]), Image.Resampling.BILINEAR)
            return np.asarray(rgb, dtype=np.uint8)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise _broken(path, error) from None


def decode_labels(
    path: str, size: tuple[int, int] | None, numbering: Numbering = AS_WRITTEN, held: bytes | None = None
) -> NDArray[np.uint8]:
    """(height, width) class indices of a label picture; resized to the nearest pixel, so no new index appears.

    Of a picture with 16 bits and several channels the first is read (SYNTHIA writes the class there, the instance into
    the second). One with 8 bits and three channels has to be grey or red only, or it is a picture of colours.
    numbering: how the file numbers classes. held: as in `decode_picture`.
    """
    from PIL import Image

    place = Place(Path(path))
    try:
        held = Path(path).read_bytes() if held is None else held
        if deep_colour(held):
            values = deep_first_channel(held, path)
        else:
            with Image.open(BytesIO(held)) as image:
                values = np.asarray(image)  # of a palette picture: its indices, not its colours
                values = values if values.ndim == 2 else _single_channel(values, image.mode, place)
    except (OSError, SyntaxError, ValueError, RuntimeError, Image.DecompressionBombError) as error:
        raise _broken(path, error) from None
    if values.dtype == bool:
        values = values.astype(np.uint8)
    if values.dtype.kind not in "iu":
        message = f"holds {values.dtype} numbers; a label picture holds whole numbers, class indices."
        raise SourceError([Problem(message, place)])
    labels = renumbered(values, numbering, place)
    if size is None or labels.shape == size:
        return labels
    resized = Image.fromarray(labels).resize((size[1], size[0]), Image.Resampling.NEAREST)
    return np.asarray(resized, dtype=np.uint8)


def require_one_shape(label: str, picture: str, size: tuple[int, int] | None) -> None:
    """Raise SourceError unless a label picture fits its picture: equal in size, or in shape where both are resized."""
    (height, width), (h, w) = picture_size(picture), picture_size(label)
    if (height, width) == (h, w):
        return
    sizes = f"is {h}x{w} pixels (height x width), its picture {picture} is {height}x{width}."
    if size is None:
        remedy = " Set `image_size: [height, width]` in the dataset to bring both to one size."
        raise SourceError([Problem(sizes + remedy, Place(Path(label)))])
    # One of the sides may have been rounded when one of the two was made from the other.
    off = min(abs(w * height / h - width), abs(h * width / w - height))
    if off > 1 and min(abs(width * h / height - w), abs(height * w / width - h)) > 1:
        remedy = " They show different parts of a scene, so resizing can't make them fit. Check that they are a pair."
        raise SourceError([Problem(sizes + remedy, Place(Path(label)))])


def deep_colour(held: bytes) -> bool:
    """Whether it is a PNG of 16 bits and several channels, which Pillow would cut down to the upper 8 bits."""
    head = held[: _COLOUR_TYPE + 1]
    return head[1:4] == b"PNG" and head[_DEPTH] == 16 and head[_COLOUR_TYPE] != 0


def deep_first_channel(held: bytes, path: str) -> NDArray[Any]:
    """(height, width) ids of 16 bits, of what is in the file `path`.

    Pillow makes 8-bit pictures of 16-bit colour by taking the upper byte of each value. Where a value's bytes are
    said to come in the other order, it takes the lower one.
    """
    from PIL import Image

    upper_and_lower = []
    for order in "BL":
        with Image.open(BytesIO(held)) as image:
            (name, extents, offset, raw), *rest = image.tile
            if rest or raw not in ("RGB;16B", "RGBA;16B"):
                raise DataError(
                    f"{shown_path(Path(path))}: expected 16-bit RGB or RGBA, found {raw}. Save it as one of them."
                )
            image.tile = [type(image.tile[0])(name, extents, offset, raw[:-1] + order)]
            upper_and_lower.append(np.asarray(image)[..., 0].astype(np.int32))
    upper, lower = upper_and_lower
    ids: NDArray[Any] = upper * 256 + lower
    return ids


def picture_size(path: str) -> tuple[int, int]:
    """(height, width), read from the head of the file."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            return image.height, image.width
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise _broken(path, error) from None


def _single_channel(values: NDArray[Any], mode: str, place: Place) -> NDArray[Any]:
    first = values[..., 0]
    colours = values[..., 1:3] if mode in ("RGB", "RGBA") else values[..., 1:] if mode != "LA" else values[..., :0]
    if not colours.any() or (colours == first[..., None]).all():
        return first
    message = f"is a colour picture ({mode}); a label picture has one channel of class indices."
    raise SourceError([Problem(message, place)])


def _broken(path: str, error: BaseException) -> SourceError:
    message = f"can't be decoded as a picture ({error}). Replace it, or take it out of the dataset."
    return SourceError([Problem(message, Place(Path(path)))])
