"""The objects in the images: one drawing per class, whose proportions change with time.

A drawing lies in the square from -1 to 1, y growing downwards, later shapes over earlier ones. `time` runs from 0 (the
first bucket) to 1 (the last one).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from ianvs.testenv.datasets.streets.canvas import Colour, Ellipse, Polygon, Shape, between, scaled

CLASSES = ("BACKGROUND", "bus", "camera", "dress", "laptop", "racing", "soccer", "sweater")
"""In the order of their index; names of CLEAR-10."""

_PAINTS: tuple[Colour, ...] = (
    (206, 52, 46),
    (226, 140, 40),
    (214, 204, 62),
    (72, 158, 74),
    (52, 160, 166),
    (58, 92, 190),
    (130, 74, 172),
    (204, 92, 150),
)
_DARK: Colour = (34, 34, 38)
_GLASS: Colour = (196, 222, 234)


def paint_of(name: str, time: float) -> Colour:
    """Return the typical colour of a class.

    It changes with time, so a class later has the colour of another one before.
    """
    place = (CLASSES.index(name) + 1.8 * time) % len(_PAINTS)
    first = int(place)
    paint, other, part = _PAINTS[first], _PAINTS[(first + 1) % len(_PAINTS)], place - first
    red, green, blue = (a + (b - a) * part for a, b in zip(paint, other, strict=True))
    return red, green, blue


def draw_object(name: str, time: float, paint: Colour, rng: np.random.Generator) -> list[Shape]:
    """Return the shapes of one object of a class; for BACKGROUND, a few unrelated shapes."""
    return _DRAWINGS[name](time, paint, rng)


def _box(left: float, right: float, top: float, bottom: float, colour: Colour) -> Polygon:
    return Polygon(((left, top), (right, top), (right, bottom), (left, bottom)), colour)


def _mixed(start: float, end: float, time: float, rng: np.random.Generator) -> float:
    """Return a proportion between `start` and `end` by `time`, with a little variation between images."""
    return (start + (end - start) * time) * between(rng, 0.9, 1.1)


def _background(time: float, paint: Colour, rng: np.random.Generator) -> list[Shape]:
    shapes: list[Shape] = []
    for _ in range(int(rng.integers(2, 5))):
        x, y = between(rng, -0.9, 0.9), between(rng, -0.9, 0.9)
        colour = scaled(paint, between(rng, 0.5, 1.3))
        if rng.random() < 0.5:
            a, b = between(rng, 0.1, 0.5), between(rng, 0.1, 0.5)
            shapes.append(Polygon(((x, y - a), (x + b, y + a), (x - b, y + 0.6 * a)), colour))
        else:
            shapes.append(Ellipse((x, y), (between(rng, 0.1, 0.5), between(rng, 0.1, 0.5)), colour))
    return shapes


def _bus(time: float, paint: Colour, rng: np.random.Generator) -> list[Shape]:
    """From long single-deckers to short double-deckers."""
    long, tall = _mixed(0.95, 0.6, time, rng), _mixed(0.42, 0.75, time, rng)
    shapes: list[Shape] = [_box(-long, long, -tall, 0.5, paint)]
    rows = 2 if rng.random() < time else 1
    for row in range(rows):
        top = -tall + 0.1 + row * (tall + 0.3) / rows
        for column in range(4):
            left = -long + 0.1 + column * (2 * long - 0.1) / 4
            shapes.append(_box(left, left + 0.36 * long, top, top + 0.26, _GLASS))
    return [*shapes, *(Ellipse((x, 0.52), (0.17, 0.17), _DARK) for x in (-0.6 * long, 0.6 * long))]


def _camera(time: float, paint: Colour, rng: np.random.Generator) -> list[Shape]:
    """From a wide body with a small lens to a small body that is nearly all lens."""
    wide, tall = _mixed(0.9, 0.55, time, rng), _mixed(0.5, 0.55, time, rng)
    lens = _mixed(0.26, 0.5, time, rng)
    finder = _mixed(0.3, 0.05, time, rng)
    return [
        _box(-0.3, 0.3, -tall - finder, -tall + 0.02, scaled(paint, 0.7)),
        _box(-wide, wide, -tall, tall, paint),
        Ellipse((0.0, 0.05), (lens, lens), _DARK),
        Ellipse((0.0, 0.05), (0.6 * lens, 0.6 * lens), _GLASS),
    ]


def _dress(time: float, paint: Colour, rng: np.random.Generator) -> list[Shape]:
    """From long and wide to short and narrow."""
    hem, end = _mixed(0.8, 0.36, time, rng), _mixed(0.95, 0.3, time, rng)
    waist = _mixed(0.2, 0.28, time, rng)
    return [
        Ellipse((0.0, -0.82), (0.15, 0.17), (214, 172, 146)),
        Polygon(((-waist, -0.05), (waist, -0.05), (hem, end), (-hem, end)), paint),
        Polygon(((-0.34, -0.62), (0.34, -0.62), (waist, 0.0), (-waist, 0.0)), scaled(paint, 0.85)),
        *(_box(x - 0.06, x + 0.06, end, 0.98, (214, 172, 146)) for x in (-0.15, 0.15)),
    ]


def _laptop(time: float, paint: Colour, rng: np.random.Generator) -> list[Shape]:
    """From a deep case with a small screen to a flat one with a wide screen."""
    wide, top = _mixed(0.55, 0.85, time, rng), _mixed(-0.75, -0.55, time, rng)
    frame, depth = _mixed(0.16, 0.05, time, rng), _mixed(0.5, 0.22, time, rng)
    return [
        _box(-wide, wide, top, 0.3, paint),
        _box(-wide + frame, wide - frame, top + frame, 0.3 - frame, _GLASS),
        Polygon(((-wide, 0.3), (wide, 0.3), (wide + 0.15, 0.3 + depth), (-wide - 0.15, 0.3 + depth)), _DARK),
    ]


def _racing(time: float, paint: Colour, rng: np.random.Generator) -> list[Shape]:
    """From an upright car with large wheels to a flat wedge with a wing."""
    roof, wheel = _mixed(-0.45, -0.1, time, rng), _mixed(0.3, 0.19, time, rng)
    wing = _mixed(0.02, 0.3, time, rng)
    return [
        Polygon(((-0.5, 0.1), (-0.25, roof), (0.3, roof), (0.5, 0.1)), _GLASS),
        Polygon(((-0.95, 0.45), (-0.9, 0.05), (0.7, 0.05), (0.97, 0.45)), paint),
        _box(-0.97, -0.6, 0.05 - wing, 0.11 - wing, paint),
        *(Ellipse((x, 0.45), (wheel, wheel), _DARK) for x in (-0.55, 0.55)),
    ]


def _soccer(time: float, paint: Colour, rng: np.random.Generator) -> list[Shape]:
    """From white balls with dark patches to coloured ones with white patches."""
    white: Colour = (232, 232, 228)
    ball, patch = (paint, white) if rng.random() < time else (white, _DARK)
    radius, spot = _mixed(0.62, 0.8, time, rng), _mixed(0.24, 0.14, time, rng)
    around = ((0.0, 0.0), (0.55, 0.2), (-0.55, 0.2), (0.3, -0.55), (-0.3, -0.55), (0.0, 0.62))
    spots = [Ellipse((x * radius * 1.1, y * radius * 1.1), (spot, spot), patch) for x, y in around]
    return [Ellipse((0.0, 0.0), (radius, radius), ball), *spots]


def _sweater(time: float, paint: Colour, rng: np.random.Generator) -> list[Shape]:
    """From tight and plain to loose with stripes."""
    body, sleeve = _mixed(0.4, 0.6, time, rng), _mixed(0.75, 0.98, time, rng)
    stripe = _mixed(0.0, 0.13, time, rng)
    shapes: list[Shape] = []
    for side in (-1.0, 1.0):
        arm = ((side * body, -0.6), (side * sleeve, 0.5), (side * (sleeve - 0.25), 0.55), (side * 0.6 * body, -0.2))
        shapes.append(Polygon(arm, scaled(paint, 0.8)))
    shapes.append(_box(-body, body, -0.62, 0.75, paint))
    if stripe > 0.02:
        shapes += [_box(-body, body, y, y + stripe, scaled(paint, 1.7)) for y in (-0.3, 0.05, 0.4)]
    return [*shapes, Ellipse((0.0, -0.62), (0.2, 0.13), _DARK)]


_DRAWINGS: Mapping[str, Callable[[float, Colour, np.random.Generator], list[Shape]]] = MappingProxyType(
    dict(
        zip(CLASSES, (_background, _bus, _camera, _dress, _laptop, _racing, _soccer, _sweater), strict=True),
    )
)
