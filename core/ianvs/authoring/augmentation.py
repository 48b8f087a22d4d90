"""Small changes to images that preserve their class, for a whole batch at once."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from ianvs.authoring.image_transforms import ImageAugmentation
from ianvs.authoring.round_data import to_device
from ianvs.base.errors import PluginError, require_known

Augmentation = Callable[[Tensor, torch.Generator], Tensor]


def crop_flip(x: Tensor, generator: torch.Generator) -> Tensor:
    """Random crop of the image padded by an eighth of its size, mirrored with probability 1/2 (He et al. 2016, 4.2).

    x: (B, C, H, W), prepared; the result has the same shape. The border repeats the image's edge, so that no
    value for "black" is needed. Offsets and flips are drawn for each image; `generator` is on the CPU.
    """
    return _cropped(x, generator, "crop_flip", mirror=True)


def crop(x: Tensor, generator: torch.Generator) -> Tensor:
    """Random crop without mirroring, for images whose mirror image has another meaning."""
    return _cropped(x, generator, "crop", mirror=False)


def _cropped(x: Tensor, generator: torch.Generator, name: str, *, mirror: bool) -> Tensor:
    if x.dim() != 4:
        raise PluginError(
            f"augment '{name}' needs images (channels, height, width), but a sample has shape "
            f"{tuple(x.shape[1:])}. Use augment 'none' for feature vectors.",
            code="refused-arguments",
        )
    size, height, width = len(x), x.shape[2], x.shape[3]
    dy, dx = max(1, height // 8), max(1, width // 8)
    top = torch.randint(2 * dy + 1, (size, 1), generator=generator)
    left = torch.randint(2 * dx + 1, (size, 1), generator=generator)
    mirrored = torch.randint(2, (size, 1), generator=generator) if mirror else torch.zeros_like(left)
    top, left, mirrored = to_device(torch.stack([top, left, mirrored]), x.device)  # one transfer, no wait
    rows, columns = top + torch.arange(height, device=x.device), left + torch.arange(width, device=x.device)
    if mirror:
        columns = torch.where(mirrored.bool(), columns.flip(1), columns)
    rows, columns = rows[:, :, None], columns[:, None, :]
    picture = torch.arange(size, device=x.device)[:, None, None]
    padded = pad(x, (dx, dx, dy, dy), mode="replicate").permute(0, 2, 3, 1)
    return padded[picture, rows, columns].permute(0, 3, 1, 2)  # channels_last


def find_augmentation(given: str | Mapping[str, Any]) -> Augmentation | ImageAugmentation | None:
    """Return the augmentation called `given`, or built from that mapping; None for 'none' and for an empty mapping.

    A named one changes prepared samples. One from a mapping changes the stored images, as the papers' codes do.
    """
    if isinstance(given, Mapping):
        return ImageAugmentation(given) if given else None
    named: dict[str, Augmentation | None] = {"none": None, "crop": crop, "crop_flip": crop_flip}
    require_known("augment", given, named)
    return named[given]
