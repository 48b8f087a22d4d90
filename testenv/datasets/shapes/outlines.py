"""The shapes, each within a circle of radius 1 around the origin.

As in the street scenes, only operations with exact IEEE 754 rounding are used: a seed gives the same image on every
platform.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
Outline = Callable[[Floats, Floats], Mask]
"""Returns which of the points (u, v) lie in the shape; v grows downwards."""

_RAYS = ((0.0, 1.0), (0.9510565, 0.3090170), (0.5877853, -0.8090170), (-0.5877853, -0.8090170), (-0.9510565, 0.3090170))


def _disc(u: Floats, v: Floats) -> Mask:
    return u * u + v * v <= 1.0


def _ring(u: Floats, v: Floats) -> Mask:
    square = u * u + v * v
    return (square <= 1.0) & (square >= 0.36)


def _square(u: Floats, v: Floats) -> Mask:
    return np.maximum(abs(u), abs(v)) <= 0.7


def _frame(u: Floats, v: Floats) -> Mask:
    far = np.maximum(abs(u), abs(v))
    return (far <= 0.7) & (far >= 0.4)


def _triangle(u: Floats, v: Floats) -> Mask:
    """Return the points in an equilateral triangle with a corner on top."""
    return (v <= 0.5) & (1.7320508 * abs(u) <= v + 1.0)


def _star(u: Floats, v: Floats) -> Mask:
    """Return the points in a pentagram: on the inner side of at least four of its five lines, 0.309 from its centre."""
    sides = np.zeros(np.broadcast_shapes(u.shape, v.shape), dtype=np.uint8)
    for a, b in _RAYS:
        sides += a * u + b * v <= 0.3090170
    return sides >= 4


def _cross(u: Floats, v: Floats) -> Mask:
    near, far = np.minimum(abs(u), abs(v)), np.maximum(abs(u), abs(v))
    return (near <= 0.28) & (far <= 0.95)


def _crescent(u: Floats, v: Floats) -> Mask:
    right = u - 0.5
    return (u * u + v * v <= 1.0) & (right * right + v * v >= 0.64)


OUTLINES: Mapping[str, Outline] = MappingProxyType(
    {
        "disc": _disc,
        "square": _square,
        "triangle": _triangle,
        "ring": _ring,
        "cross": _cross,
        "star": _star,
        "frame": _frame,
        "crescent": _crescent,
    }
)
