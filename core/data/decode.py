"""One picture file -> one array."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.data.listing import SourceError
from core.errors import Place, Problem

__all__ = ["decode_labels", "decode_picture"]


def decode_picture(path: str, size: tuple[int, int] | None) -> NDArray[np.uint8]:
    """(height, width, 3) RGB, grey and transparent ones converted; resized bilinearly with antialiasing."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            rgb = image.convert("RGB")
            if size is not None and rgb.size != (size[1], size[0]):
                rgb = rgb.resize((size[1], size[0]), Image.Resampling.BILINEAR)
            return np.asarray(rgb, dtype=np.uint8)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise _broken(path, error) from None


def decode_labels(path: str, size: tuple[int, int] | None) -> NDArray[np.uint8]:
    """(height, width) class indices of a label picture; resized to the nearest pixel, so no new index appears."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            if len(image.getbands()) != 1:
                message = f"is a colour picture ({image.mode}); a label picture has one channel of class indices."
                raise SourceError([Problem(message, Place(Path(path)))])
            values = np.asarray(image)  # of a palette picture: its indices, not its colours
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise _broken(path, error) from None
    if values.max() > 255 or values.min() < 0:
        message = f"holds the label {int(values.max())}; label pictures hold 0 to 255."
        raise SourceError([Problem(message, Place(Path(path)))])
    labels = values.astype(np.uint8)
    if size is None or labels.shape == size:
        return labels
    resized = Image.fromarray(labels).resize((size[1], size[0]), Image.Resampling.NEAREST)
    return np.asarray(resized, dtype=np.uint8)


def _broken(path: str, error: BaseException) -> SourceError:
    message = f"can't be decoded as a picture ({error}). Replace it, or take it out of the dataset."
    return SourceError([Problem(message, Place(Path(path)))])
