"""Reads images of more than 8 bits a channel, whose values Pillow would clip at 255 or cut to their upper byte."""

from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

ValueRange = tuple[float, float]
"""The values that become black (0) and white (255), the same for all images of a dataset."""

_FULL = (255, 1023, 4095, 16383, 65535)  # highest values of 8, 10, 12, 14 and 16 bits


def is_deep(image: Any) -> bool:
    """Return whether a PIL image holds more than 8 bits a channel. False once Pillow has loaded a 16-bit
    colour image.
    """
    return image.mode in ("I", "F") or image.mode.startswith("I;") or any(";16" in raw for raw in _raw_modes(image))


def deep_values(image: Any) -> NDArray[Any]:
    """Return the values of an image that `is_deep`: (height, width), or (height, width, 3) without transparency.

    Pillow reads only the upper byte of each value of 16-bit colour. With the opposite byte order it reads the lower
    byte, so both are combined. Raises ValueError for a format that can't be read.
    """
    if not any(";16" in raw and not raw.startswith("I") for raw in _raw_modes(image)):
        return np.asarray(image)
    raw = _raw_modes(image)[0]
    if image.mode not in ("RGB", "RGBA") or raw.startswith("LA"):
        raise ValueError(f"it is {raw}, of which only 8 bits can be read; save it as 16-bit grey, RGB or RGBA")
    image.fp.seek(0)
    held = image.fp.read()
    upper, lower = (_with_order(held, order) for order in ("BL" if raw.endswith("B") else "LB"))
    values: NDArray[Any] = upper.astype(np.int32) * 256 + lower
    return values[..., :3]


def eight_bits(values: NDArray[Any], value_range: ValueRange) -> NDArray[np.uint8]:
    """Return (height, width, 3) RGB: the range is scaled to 0 to 255, values outside are clipped, and nan becomes 0."""
    low, high = value_range
    scaled = np.nan_to_num((values.astype(np.float64) - low) * (255 / (high - low)), posinf=255, neginf=0)
    grey_or_rgb = np.rint(scaled.clip(0, 255)).astype(np.uint8)
    return np.stack([grey_or_rgb] * 3, axis=-1) if grey_or_rgb.ndim == 2 else grey_or_rgb


def lacks_range(low: float, high: float) -> str:
    """Return the message for deep images without a given range. low, high: their lowest and highest value."""
    full = next((value for value in _FULL if value >= high), None)
    if low < 0 or full is None:
        suggested = f"[{low:g}, {high:g}]"
    else:
        suggested = "[0, 1]" if high <= 1 and not float(high).is_integer() else f"[0, {full}]"
    return (
        f"has more than 8 bits a channel (values from {low:g} to {high:g}), and images are learned from as 8 bits. "
        "Write in the dataset which values become black and white, one range for all its images, for example "
        f"`value_range: {suggested}`."
    )


def finite_range(values: NDArray[Any]) -> ValueRange:
    """Return the lowest and the highest finite number of an image."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def _raw_modes(image: Any) -> list[str]:
    """Return Pillow's raw modes (byte layouts) of a file that is not loaded yet; [] for other images."""
    return [_raw_mode(tile[3]) for tile in getattr(image, "tile", None) or ()]


def _raw_mode(arguments: Any) -> str:
    return str(arguments[0] if isinstance(arguments, tuple) else arguments)


def _with_order(held: bytes, order: str) -> NDArray[np.uint8]:
    """Decode an image file with the bytes of 16-bit values in big ("B") or little ("L") endian order."""
    from PIL import Image

    with Image.open(BytesIO(held)) as image:
        tiles = []
        for name, extents, offset, given in image.tile:
            swapped = _raw_mode(given)[:-1] + order
            tiles.append(
                type(image.tile[0])(
                    name, extents, offset, (swapped, *given[1:]) if isinstance(given, tuple) else swapped
                )
            )
        image.tile = tiles
        return np.asarray(image)
