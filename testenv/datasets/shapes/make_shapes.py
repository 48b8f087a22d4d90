"""Scenes in bulk as arrays: images, and the boxes and classes of the shapes in them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError, closest, one_line
from ianvs.base.seeding import generator
from ianvs.testenv.datasets.shapes.outlines import OUTLINES
from ianvs.testenv.datasets.streets.canvas import between, speckle, summed

VERSION = 1  # part of the dataset's fingerprint: increase it when a seed gives other images
MOST = 4  # shapes in an image
HIDDEN = 0.2  # largest share of a shape that later shapes may cover
FINE = 2  # points per pixel and direction; a pixel is their mean
TRIALS = 8  # positions that are tried for a shape before it is left out
TEXTURES = ("plain", "stripes", "checks", "patches")


def make_shapes(
    texture: str, count: int, size: int = 64, seed: int = 0, part: str = "train", frequencies: Sequence[int] = ()
) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """`count` scenes on a background of `texture`, one of TEXTURES: x (count, size, size, 3) RGB, y (count,) objects.

    Each of y is {"boxes": (n, 4) float64 x1 y1 x2 y2 in pixels, "labels": (n,) int64 positions in SHAPES_CLASSES}, with
    1 <= n <= 4.
    A box holds the whole shape, of which at most HIDDEN is covered. Scene i depends on (texture, part, seed, i), `size`
    and `frequencies`, not on `count`. frequencies: how often each class is drawn, relative to the others; equally by
    default. Raises DataError for an unknown texture, a size below 32 pixels, and frequencies that are none.
    """
    often = np.asarray(frequencies or [1] * len(OUTLINES), dtype=np.int64)
    if texture not in TEXTURES:
        raise DataError(
            f"shapes has no texture '{texture}'.{closest(texture, TEXTURES)} It has: {one_line(TEXTURES)}.",
            code="invalid-choice",
        )
    if size < 32:
        raise DataError(f"images of {size} pixels are too small for four shapes; 32 at least.", code="out-of-range")
    if often.shape != (len(OUTLINES),) or often.min() < 0 or not often.any():
        raise DataError(
            f"frequencies are {len(OUTLINES)} whole numbers, 0 or more and not all 0; found {frequencies}.",
            code="out-of-range",
        )
    x = np.empty((count, size, size, 3), dtype=np.uint8)
    y = np.empty(count, dtype=object)
    for index in range(count):
        x[index], y[index] = _scene(texture, size, np.cumsum(often), generator(seed, index, f"shapes/{texture}/{part}"))
    return x, y


def multi_hot(y: NDArray[Any], num_classes: int = len(OUTLINES)) -> NDArray[np.uint8]:
    """Return (N, num_classes) 0 or 1: whether a scene has a shape of the class.

    Y: targets as returned by `make_shapes`.
    """
    held = np.zeros((len(y), num_classes), dtype=np.uint8)
    for row, target in zip(held, y, strict=True):
        row[target["labels"]] = 1
    return held


def _scene(
    texture: str, size: int, often: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], dict[str, NDArray[Any]]]:
    picture = _background(texture, size, rng)
    placed: list[tuple[int, NDArray[np.float64]]] = []
    seen: list[tuple[NDArray[np.bool_], int]] = []  # visible area and total area of each shape, in pixels
    for _ in range(int(rng.integers(1, MOST + 1))):
        label = int(np.searchsorted(often, rng.integers(0, often[-1]), side="right"))
        for _ in range(TRIALS):
            cover, box = _shape(label, size, rng)
            mask = 2 * cover > FINE**2
            left = [shown & ~mask for shown, _ in seen]
            if all(shown.sum() >= (1 - HIDDEN) * area for shown, (_, area) in zip(left, seen, strict=True)):
                seen = [(shown, area) for shown, (_, area) in zip(left, seen, strict=True)] + [(mask, int(mask.sum()))]
                picture = (picture * (FINE**2 - cover) + _paint(rng) * cover) // FINE**2
                placed.append((label, box))
                break
    picture = picture + rng.integers(-10, 11, picture.shape)
    target = {
        "boxes": np.array([box for _, box in placed]),
        "labels": np.array([label for label, _ in placed], dtype=np.int64),
    }
    return np.clip(picture, 0, 255), target


def _shape(label: int, size: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the number of points of each pixel that a shape covers (size, size, 1), and its box (4,)."""
    radius = between(rng, 0.1, 0.2) * size
    x, y = between(rng, radius, size - radius), between(rng, radius, size - radius)
    half = between(rng, -0.2, 0.2)  # the tangent of half the angle, which makes a sine unnecessary
    cosine, sine = (1 - half * half) / (1 + half * half), 2 * half / (1 + half * half)
    points = (np.arange(size * FINE) + 0.5) / FINE
    dx, dy = (points[None, :] - x) / radius, (points[:, None] - y) / radius
    inside = tuple(OUTLINES.values())[label](dx * cosine + dy * sine, dy * cosine - dx * sine)
    rows, columns = np.flatnonzero(inside.any(1)), np.flatnonzero(inside.any(0))
    box = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]) / FINE
    return summed(inside.astype(np.int64), FINE)[..., None], box


def _paint(rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a colour (3,) that is bright in at least one channel."""
    colour = rng.integers(40, 256, 3)
    colour[rng.integers(0, 3)] = rng.integers(200, 256)
    return colour


def _background(texture: str, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a dark background (size, size, 3): plain, or a pattern of two colours."""
    colour, other = rng.integers(10, 130, 3), rng.integers(10, 130, 3)
    cell, slope = between(rng, 3.0, 10.0), between(rng, -1.0, 1.0)
    points = np.arange(size, dtype=np.float64)
    i, j = (points[None, :] + slope * points[:, None]) / cell, (points[:, None] - slope * points[None, :]) / cell
    if texture == "plain":
        share = np.zeros((size, size), dtype=np.int64)
    elif texture == "patches":
        share = np.floor(speckle(i, j, int(rng.integers(0, 1 << 31))) * 17).astype(np.int64)
    else:
        share = (np.floor(i) + (np.floor(j) if texture == "checks" else 0)).astype(np.int64) % 2 * 16
    return colour + (other - colour) * share[..., None] // 16
