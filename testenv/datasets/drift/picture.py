"""One image: an object in front of a background, taken by a camera of its time.

As in the street scenes, only operations with exact IEEE 754 rounding, and uniform and integer draws are used: a seed
gives the same image on every platform.
"""

import numpy as np
from numpy.typing import NDArray

from ianvs.testenv.datasets.drift.objects import draw_object, paint_of
from ianvs.testenv.datasets.streets.canvas import Colour, between, speckle, summed

SAMPLES = 2  # per pixel and direction

Floats = NDArray[np.float64]

_WALLS: tuple[tuple[Colour, Colour], ...] = (  # the two colours of the background, at equally spaced times
    ((176, 150, 112), (120, 104, 84)),
    ((150, 160, 130), (96, 112, 92)),
    ((136, 160, 186), (96, 110, 140)),
    ((216, 214, 208), (166, 168, 176)),
)


def draw_picture(name: str, time: float, size: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return (size, size, 3) RGB of a class at `time`, 0 to 1."""
    width = size * SAMPLES
    steps = (np.arange(width) + 0.5) * (2.0 / width) - 1.0
    x, y = np.broadcast_arrays(steps[None, :], steps[:, None])
    colour = _wall(x, y, time, rng)
    paint = paint_of(name, time)
    red, green, blue = (min(max(part + between(rng, -55, 55), 0.0), 255.0) for part in paint)
    u, v = _placed(x, y, rng)
    for shape in draw_object(name, time, (red, green, blue), rng):
        colour[shape.covers(u, v)] = np.array(shape.colour)
    return _taken(summed(colour, SAMPLES) / SAMPLES**2, time, rng)


def _wall(x: Floats, y: Floats, time: float, rng: np.random.Generator) -> Floats:
    """Return a chequered or striped background, in colours between those of the time before and after."""
    place = time * (len(_WALLS) - 1)
    first = min(int(place), len(_WALLS) - 2)
    part = place - first
    cell, salt = between(rng, 0.15, 0.7), int(rng.integers(0, 1 << 31))
    pattern = speckle(x / cell, y / cell if rng.random() < 0.6 else y * 0, salt).astype(np.float64)
    light = between(rng, 0.75, 1.2)
    colours = []
    for paint, other in zip(_WALLS[first], _WALLS[first + 1], strict=True):
        colours.append([(a + (b - a) * part) * light for a, b in zip(paint, other, strict=True)])
    near, far = (np.array(rgb) for rgb in colours)
    wall: Floats = near + (far - near) * pattern[..., None]
    return wall


def _placed(x: Floats, y: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the position of each point in the drawing, which is moved, scaled, mirrored and rotated by up to 15
    degrees.
    """
    scale = between(rng, 0.6, 0.9)
    half = between(rng, -0.13, 0.13)  # the tangent of half the angle, which makes a sine unnecessary
    cosine, sine = (1 - half * half) / (1 + half * half), 2 * half / (1 + half * half)
    dx, dy = x - between(rng, -0.25, 0.25), y - between(rng, -0.25, 0.25)
    mirror = 1.0 if rng.random() < 0.5 else -1.0
    return mirror * (dx * cosine + dy * sine) / scale, (dy * cosine - dx * sine) / scale


def _taken(light: Floats, time: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Early cameras are pale, yellowish and noisy; late ones are clear."""
    grey = (light[..., 0] + light[..., 1] + light[..., 2])[..., None] / 3
    saturation = 0.6 + 0.4 * time
    colour = grey + (light - grey) * saturation
    contrast = 0.7 + 0.3 * time
    colour = 128 + (colour - 128) * contrast
    colour = colour * np.array((1.0, 0.94 + 0.06 * time, 0.78 + 0.22 * time)) * between(rng, 0.85, 1.15)
    noise = int(28 - 20 * time)
    colour = colour + rng.integers(-noise, noise + 1, (*colour.shape[:2], 1))
    picture: NDArray[np.uint8] = np.floor(np.clip(colour, 0, 255) + 0.5).astype(np.uint8)
    return picture
