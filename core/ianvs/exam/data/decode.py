"""Decodes an image file to an array."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.deep_images import ValueRange, deep_values, eight_bits, finite_range, is_deep, lacks_range
from ianvs.base.errors import DataError, Location, first_line, shown_path
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.labels import AS_WRITTEN, Numbering
from ianvs.exam.data.listing import Listing, SourceError
from ianvs.exam.data.masks import to_class_indices

_DEPTH, _COLOUR_TYPE = 24, 25  # bytes of a PNG file (RFC 2083, section 4.1.1)
_DRAWN = 64  # images of each part that are read to find their value range
_NUMPY = b"\x93NUMPY"  # the first bytes of a .npy file


def decode_picture(
    path: str, size: tuple[int, int] | None, held: bytes | None = None, value_range: ValueRange | None = None
) -> NDArray[np.uint8]:
    """Return (height, width, 3) RGB; grey and transparent images are converted; resized bilinearly with antialiasing.

    Args:
        path: The file.
        size: (height, width), or None to keep the size.
        held: The content of the file, if it is already in memory; `path` is then its name in errors.
        value_range: The values of an image of more than 8 bits that become black and white.

    Raises:
        SourceError: If an image of more than 8 bits comes without `value_range`.
    """
    from PIL import Image

    try:
        with Image.open(path if held is None else BytesIO(held)) as image:
            return rgb_of(image, size, value_range)
    except NoValueRangeError as error:
        raise SourceError.single(str(error), Location(Path(path)), error.code) from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise _unreadable_error(path, error) from None


class NoValueRangeError(DataError):
    """An image has more than 8 bits a channel, and the dataset has no `value_range`."""


def rgb_of(image: Any, size: tuple[int, int] | None, value_range: ValueRange | None) -> NDArray[np.uint8]:
    """Return (height, width, 3) of a PIL image, as `decode_picture`. Raises NoValueRangeError, or Pillow's errors."""
    from PIL import Image

    if is_deep(image):
        values = deep_values(image)
        if value_range is None:
            raise NoValueRangeError(lacks_range(*finite_range(values)), code="ambiguous-data")
        rgb = Image.fromarray(eight_bits(values, value_range))
    else:
        rgb = image if image.mode == "RGB" else image.convert("RGB")  # which is a copy
    if size is not None and rgb.size != (size[1], size[0]):
        rgb = rgb.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    return np.asarray(rgb, dtype=np.uint8)


def require_value_range(listings: Sequence[Listing], spec: DatasetSpec) -> None:
    """Raise SourceError if image files have more than 8 bits a channel and the dataset has no `value_range`.

    Some files of each part are read, including the first; the error proposes a range. Other files are checked when they
    are decoded.
    """
    if spec.value_range is not None or listings[0].form != "files":
        return
    seen = []
    for listing in listings:
        for row in np.unique(np.linspace(0, len(listing) - 1, _DRAWN).astype(np.int64)).tolist():
            if (limits := _deep_range(listing.x[row])) is not None:
                seen.append((limits, listing, row))
    if seen:
        low, high = min(limits[0] for limits, _, _ in seen), max(limits[1] for limits, _, _ in seen)
        _, listing, row = seen[0]
        message = f"'{listing.ids[row]}' {lacks_range(low, high)}"
        raise SourceError.single(message, listing.place(row), "ambiguous-data")


def _deep_range(path: str) -> ValueRange | None:
    """Return the lowest and highest value of an image of more than 8 bits; None for others and for unreadable files."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            return finite_range(deep_values(image)) if is_deep(image) else None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None  # decoding it will report why


def decode_labels(
    path: str, size: tuple[int, int] | None, numbering: Numbering = AS_WRITTEN, held: bytes | None = None
) -> NDArray[np.uint8]:
    """Return (height, width) class indices of a segmentation mask, resized to the nearest pixel, so no new index
    appears.

    Of an image with 16 bits and several channels the first is read (SYNTHIA has the class there, the instance in the
    second). An image with 8 bits and three channels must be grey or red only, unless `mask_values` names its colours. A
    .npy file holds the numbers themselves. numbering: how the file numbers classes. held: as in `decode_picture`.
    """
    from PIL import Image

    place = Location(Path(path))
    try:
        held = Path(path).read_bytes() if held is None else held
        values = _read_npy(held) if held.startswith(_NUMPY) else _read_mask(held, path, numbering)
    except (OSError, SyntaxError, ValueError, RuntimeError, Image.DecompressionBombError) as error:
        raise _unreadable_error(path, error) from None
    _require_mask(values, place)
    labels = to_class_indices(values.astype(np.uint8) if values.dtype == bool else values, numbering, place)
    if size is None or labels.shape == size:
        return labels
    resized = Image.fromarray(labels).resize((size[1], size[0]), Image.Resampling.NEAREST)
    return np.asarray(resized, dtype=np.uint8)


def _require_mask(values: NDArray[Any], place: Location) -> None:
    """Raise SourceError for what is no mask: fractions, or another shape than (height, width) or (height, width, 3)."""
    if values.dtype.kind not in "biu" or values.ndim not in (2, 3) or (values.ndim == 3 and values.shape[2] != 3):
        message = (
            f"holds {values.dtype} {values.shape}; a mask holds whole numbers, class indices, (height, width). Save "
            "it so: `mask.astype('uint8')` of numbers, `mask.argmax(axis=0)` of a channel for each class."
        )
        raise SourceError.single(message, place, "invalid-array")


def _read_mask(held: bytes, path: str, numbering: Numbering) -> NDArray[Any]:
    """Return (height, width) numbers or (height, width, 3) colours of an image file.

    Of a palette image these are its indices, unless colours stand for classes.
    """
    from PIL import Image

    with Image.open(BytesIO(held)) as image:
        _require_lossless(image, held, Location(Path(path)))
        if numbering.colours:
            return np.asarray(image.convert("RGB"))
        if deep_colour(held):
            return deep_first_channel(held, path)
        return _channels(image)


def mask_array(image: Any) -> NDArray[Any]:
    """Return (height, width) numbers or (height, width, 3) colours of a PIL image; of a palette image its indices."""
    _require_lossless(image, b"", None)
    return _channels(image)


def _channels(image: Any) -> NDArray[Any]:
    values = np.asarray(image)
    if values.ndim == 3:  # without transparency
        values = values[..., 0] if image.mode == "LA" else values[..., :3]
    return values


def _require_lossless(image: Any, held: bytes, place: Location | None) -> None:
    """Raise SourceError for a mask with lossy compression: JPEG, also within TIFF, and WebP."""
    webp = image.format == "WEBP" and b"VP8L" not in held[:64] and b"VP8 " in held
    if image.format in ("JPEG", "MPO") or image.info.get("compression") == "jpeg" or webp:
        message = (
            f"a mask is compressed lossily ({image.format}), which puts values between those of the classes into it. "
            "Make PNG files of the original masks; if there are none, round each pixel to the value of a class first."
        )
        raise SourceError.single(message, place, "damaged-dataset")


def _read_npy(held: bytes) -> NDArray[Any]:
    """Return the array in a .npy file, without axes of length 1 before or after height and width."""
    if not held.startswith(_NUMPY):  # numpy's message would suggest unpickling
        raise ValueError("it does not begin as a .npy file does")
    values: NDArray[Any] = np.load(BytesIO(held), allow_pickle=False)
    if values.ndim == 3 and 1 in (values.shape[0], values.shape[2]):
        values = values[0] if values.shape[0] == 1 else values[..., 0]
    return values


def require_one_shape(label: str, picture: str, size: tuple[int, int] | None) -> None:
    """Raise SourceError unless a mask fits its image: equal in size, or in aspect ratio if both are resized."""
    (height, width), (h, w) = picture_size(picture), picture_size(label)
    if (height, width) == (h, w):
        return
    sizes = f"is {h}x{w} pixels (height x width), its image {picture} is {height}x{width}."
    if size is None:
        remedy = " Set `image_size: [height, width]` in the dataset to bring both to one size."
        raise SourceError.single(sizes + remedy, Location(Path(label)), "mismatched-data")
    # A side may have been rounded when one of the two was resized.
    off = min(abs(w * height / h - width), abs(h * width / w - height))
    if off > 1 and min(abs(width * h / height - w), abs(height * w / width - h)) > 1:
        remedy = " They show different parts of a scene, so resizing can't make them fit. Check that they are a pair."
        raise SourceError.single(sizes + remedy, Location(Path(label)), "mismatched-data")


def deep_colour(held: bytes) -> bool:
    """Return whether it is a PNG of 16 bits and several channels, which Pillow would reduce to the upper 8 bits."""
    head = held[: _COLOUR_TYPE + 1]
    return head[1:4] == b"PNG" and head[_DEPTH] == 16 and head[_COLOUR_TYPE] != 0


def deep_first_channel(held: bytes, path: str) -> NDArray[Any]:
    """Return (height, width) ids of 16 bits from the content of the file `path`.

    Pillow reduces 16-bit colour to 8 bits by taking the upper byte of each value. If the byte order is declared as
    swapped, it takes the lower byte.
    """
    from PIL import Image

    upper_and_lower = []
    for order in "BL":
        with Image.open(BytesIO(held)) as image:
            (name, extents, offset, raw), *rest = image.tile
            if rest or raw not in ("RGB;16B", "RGBA;16B"):
                raise DataError(
                    f"{shown_path(Path(path))}: expected 16-bit RGB or RGBA, found {raw}. Save it as one of them.",
                    code="unreadable-data",
                )
            image.tile = [type(image.tile[0])(name, extents, offset, raw[:-1] + order)]
            upper_and_lower.append(np.asarray(image)[..., 0].astype(np.int32))
    upper, lower = upper_and_lower
    ids: NDArray[Any] = upper * 256 + lower
    return ids


def picture_size(path: str) -> tuple[int, int]:
    """Return (height, width) of an image file or of a mask in a .npy file, read from its header."""
    from PIL import Image

    try:
        if path.lower().endswith(".npy"):
            values = _read_npy(Path(path).read_bytes())
            _require_mask(values, Location(Path(path)))
            return values.shape[0], values.shape[1]
        with Image.open(path) as image:
            return image.height, image.width
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise _unreadable_error(path, error) from None


def _unreadable_error(path: str, error: BaseException) -> SourceError:
    message = f"can't be decoded as an image ({first_line(error)}). Replace it, or take it out of the dataset."
    return SourceError.single(message, Location(Path(path)), "unreadable-data")
