"""Transforms of a picture and its boxes together.

A picture is an array (height, width, channels) or a tensor (channels, height, width); a target is a mapping with
`boxes`, arrays or tensors. Both come back as new ones; what the mapping holds beside moves along, `area` in proportion.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np


def resize(picture: Any, target: Mapping[str, Any], size: tuple[int, int]) -> tuple[Any, dict[str, Any]]:
    """To (height, width), bilinear with antialiasing; boxes are scaled with it, each direction by itself."""
    import torch
    from torchvision.transforms.v2.functional import resize as resized

    array = isinstance(picture, np.ndarray)
    pixels = torch.from_numpy(picture).permute(2, 0, 1) if array else picture
    down, across = size[0] / pixels.shape[-2], size[1] / pixels.shape[-1]
    pixels = resized(pixels, list(size), antialias=True)
    boxes = target["boxes"] * 1.0
    boxes[:, 0::2] *= across
    boxes[:, 1::2] *= down
    moved = {**target, "boxes": boxes}
    if "area" in target:
        moved["area"] = target["area"] * (down * across)
    return pixels.permute(1, 2, 0).contiguous().numpy() if array else pixels, moved


def flip(picture: Any, target: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Mirrored from left to right."""
    array = isinstance(picture, np.ndarray)
    width = picture.shape[1] if array else picture.shape[-1]
    boxes = target["boxes"][:, [2, 1, 0, 3]]
    boxes[:, 0::2] = width - boxes[:, 0::2]
    return picture[:, ::-1].copy() if array else picture.flip(-1), {**target, "boxes": boxes}
