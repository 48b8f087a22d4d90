"""Images of more than 8 bits a channel, which Pillow alone would clip at 255 or cut to their upper byte."""

from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

ValueRange = tuple[float, float]
"""The values that become black (0) and white (255), the same for all images of a dataset."""

_FULL = (255, 1023, 4095, 16383, 65535)  # highest values of 8, 10, 12, 14 and 16 bits


def is_deep(image: Any) -> bool:
    """Whether a PIL image holds more than 8 bits a channel. False once Pillow has loaded a 16-bit colour image."""
    return image.mode in ("I", "F") or image.mode.startswith("I;") or any(";16" in raw for raw in _raw_modes(image))


def deep_values(image: Any) -> NDArray[Any]:
    """The values of an image that `is_deep`: (height, width), or (height, width, 3) without transparency.

    Pillow reads 16-bit colour as 8 bits, the upper byte of each value. Read with the bytes of a value in the other
    order, it takes the lower byte. Raises ValueError for a form that can't be read so.
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
    """(height, width, 3) RGB: the range becomes 0 to 255; what is outside of it becomes 0 or 255, and nan 0."""
    low, high = value_range
    scaled = np.nan_to_num((values.astype(np.float64) - low) * (255 / (high - low)), posinf=255, neginf=0)
    grey_or_rgb = np.rint(scaled.clip(0, 255)).astype(np.uint8)
    return np.stack([grey_or_rgb] * 3, axis=-1) if grey_or_rgb.ndim == 2 else grey_or_rgb


def lacks_range(low: float, high: float) -> str:
    """What is wrong with deep images whose range nobody gave. low, high: the values that were seen in them."""
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
    """The lowest and the highest number of an image; nan and infinite ones do not count."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def _raw_modes(image: Any) -> list[str]:
    """How the bytes of a file that is not loaded yet are laid out; [] of other images."""
    return [_raw_mode(tile[3]) for tile in getattr(image, "tile", None) or ()]


def _raw_mode(arguments: Any) -> str:
    return str(arguments[0] if isinstance(arguments, tuple) else arguments)


def _with_order(held: bytes, order: str) -> NDArray[np.uint8]:
    """The image in a file, with the bytes of its 16-bit values taken to be in big ("B") or little ("L") order."""
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
