"""Distorted images of printed letters, on which a small transformer is trained before an exam on handwritten digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor
from torch.nn.functional import affine_grid, avg_pool2d, grid_sample, interpolate

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ" + "abdefghmnqrty"
"""Capitals but I and O, which are digits by their looks, and the small letters that don't look like their capitals."""

SIDE, BLOCK = 32, 4  # pixels of a drawing, and of its blocks; each block becomes a pixel of the image
WEIGHTS = range(4)  # pixels by which strokes are thickened, of a drawing twice as large
TURN, SHEAR, ZOOM, SHIFT, BEND = 0.3, 0.25, (0.8, 1.25), 0.12, 0.08  # radians; shares of the image


def printed_letters(count: int = 300, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return (x (N, 8, 8, 1) in [0, 1], y (N,)): `count` images of each of LETTERS, in the font that comes with Pillow.

    Made as the handwritten digits of scikit-learn were from scans: a black and white drawing of 32 x 32 pixels, of
    which each block of 4 x 4 becomes its share of ink, in sixteenths. Each drawing is turned, sheared, zoomed, shifted
    and bent by numbers that `seed` decides.
    """
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.stack([_drawn(letter, weight) for letter in LETTERS for weight in WEIGHTS])
    y = torch.arange(len(LETTERS)).repeat(count)
    chosen = y * len(WEIGHTS) + torch.randint(len(WEIGHTS), (len(y),), generator=generator)
    parts = [_bent(drawn[part], generator) for part in torch.split(chosen, 1024)]
    x = avg_pool2d((torch.cat(parts) > 0.5).float(), BLOCK)
    return x.permute(0, 2, 3, 1).numpy(), y.numpy()


def _drawn(letter: str, weight: int) -> Tensor:
    """Return (1, SIDE, SIDE) in [0, 1], the letter filling the middle, whatever its height in a line."""
    font: Any = ImageFont.load_default(4 * SIDE)
    left, top, right, bottom = font.getbbox(letter, stroke_width=2 * weight)
    picture = Image.new("L", (int(right - left), int(bottom - top)))
    ImageDraw.Draw(picture).text((-left, -top), letter, 255, font, stroke_width=2 * weight)
    height = 26
    width = min(height, max(6, round(height * picture.width / picture.height)))
    sheet = Image.new("L", (SIDE, SIDE))
    small = picture.resize((width, height), Image.Resampling.BOX)
    sheet.paste(small, ((SIDE - width) // 2, (SIDE - height) // 2))
    return torch.from_numpy(np.array(sheet, np.float32) / 255)[None]


def _bent(drawn: Tensor, generator: torch.Generator) -> Tensor:
    """Return (N, 1, SIDE, SIDE): each drawing through a map of its own, affine and a smooth bend."""

    def between(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(len(drawn), generator=generator)

    turn, shear = between(-TURN, TURN), between(-SHEAR, SHEAR)
    wide, high = between(*ZOOM), between(*ZOOM)
    first = torch.stack([wide * turn.cos(), wide * (shear - turn.sin()), between(-2 * SHIFT, 2 * SHIFT)], 1)
    second = torch.stack([high * turn.sin(), high * turn.cos(), between(-2 * SHIFT, 2 * SHIFT)], 1)
    grid = affine_grid(torch.stack([first, second], 1), [*drawn.shape], align_corners=False)
    coarse = 2 * BEND * torch.randn(len(drawn), 2, 4, 4, generator=generator)
    bend = interpolate(coarse, (SIDE, SIDE), mode="bicubic", align_corners=True)
    return grid_sample(drawn, grid + bend.permute(0, 2, 3, 1), align_corners=False)
