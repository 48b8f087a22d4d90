"""An image and its labels, drawn through a pinhole camera.

Positions in an image are the tangents of their viewing rays: (x, y) = ((u - cx) / f, (v - cy) / f), with y growing
downwards from the horizon. A point (X right, Y up, Z ahead), in metres from the ground below the camera, is seen at (X
/ Z, (camera height - Y) / Z). Drawings therefore do not depend on the size of the image.

Only +, -, *, /, %, floor and comparisons are used, whose rounding IEEE 754 defines (no sine, power or logarithm, whose
last bits depend on the C library), and uniform and integer draws: a seed gives the same image on every platform.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.data.labels import IGNORED

SAMPLES = 2  # points per pixel and direction: the colour is their mean, the label that of the first point

Floats = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
Colour = tuple[float, float, float]
Point = tuple[float, float]


@dataclass(frozen=True)
class Camera:
    """`height` in metres; focal length and horizon as fractions of the image's height, vanishing point of its width."""

    height: float
    focal: float
    horizon: float
    vanishing: float

    def see(self, X: float, Y: float, Z: float) -> Point:
        """Return the position of a point of the world in the image."""
        return X / Z, (self.height - Y) / Z

    def upright(self, left: float, right: float, low: float, high: float, Z: float) -> tuple[Point, ...]:
        """Return a rectangle that faces the camera."""
        return self.see(left, low, Z), self.see(right, low, Z), self.see(right, high, Z), self.see(left, high, Z)

    def along(self, X: float, low: float, high: float, near: float, far: float) -> tuple[Point, ...]:
        """Return a rectangle that runs into the image."""
        return self.see(X, low, near), self.see(X, low, far), self.see(X, high, far), self.see(X, high, near)

    def flat(self, left: float, right: float, Y: float, near: float, far: float) -> tuple[Point, ...]:
        """Return a rectangle that lies at height Y."""
        return self.see(left, Y, near), self.see(right, Y, near), self.see(right, Y, far), self.see(left, Y, far)


@dataclass(frozen=True)
class Polygon:
    """A convex polygon; its corners may be in either direction."""

    corners: Sequence[Point]
    colour: Colour

    def bounds(self) -> tuple[float, float, float, float]:
        xs, ys = zip(*self.corners, strict=True)
        return min(xs), max(xs), min(ys), max(ys)

    def covers(self, x: Floats, y: Floats) -> Mask:
        corners = list(self.corners)
        area = sum(ax * by - bx * ay for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1], strict=True))
        side = 1.0 if area > 0 else -1.0
        inside = np.ones(np.broadcast_shapes(x.shape, y.shape), dtype=bool)
        for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1], strict=True):
            inside &= ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) * side >= 0
        return inside


@dataclass(frozen=True)
class Ellipse:
    centre: Point
    radii: Point
    colour: Colour

    def bounds(self) -> tuple[float, float, float, float]:
        (x, y), (rx, ry) = self.centre, self.radii
        return x - rx, x + rx, y - ry, y + ry

    def covers(self, x: Floats, y: Floats) -> Mask:
        dx, dy = (x - self.centre[0]) / self.radii[0], (y - self.centre[1]) / self.radii[1]
        inside: Mask = dx * dx + dy * dy <= 1.0
        return inside


Shape = Polygon | Ellipse


class Canvas:
    """colour (h, w, 3) float32 in 0..255 and label (h, w) uint8, at SAMPLES x SAMPLES points a pixel."""

    def __init__(self, size: tuple[int, int], camera: Camera) -> None:
        self.size, self.camera = size, camera
        height, width = size[0] * SAMPLES, size[1] * SAMPLES
        self.colour = np.zeros((height, width, 3), dtype=np.float32)
        self.label = np.full((height, width), IGNORED, dtype=np.uint8)
        self._step = 1.0 / (camera.focal * height)
        self._origin = camera.vanishing * width, camera.horizon * height
        self.x: Floats = ((np.arange(width) + 0.5 - self._origin[0]) * self._step)[None, :]
        self.y: Floats = ((np.arange(height) + 0.5 - self._origin[1]) * self._step)[:, None]

    def draw(
        self, shapes: Sequence[Shape], label: int, *, border: bool = False, fade: float = 0.0, haze: Colour = (0, 0, 0)
    ) -> None:
        """Draw a thing made of shapes, later ones over earlier ones; `border` draws a line of IGNORED around the whole.

        fade: share of the colour `haze` in the result, 0 to 1.
        """
        margin = SAMPLES if border else 0
        rows, columns = self._window([shape.bounds() for shape in shapes], margin)
        if rows.start >= rows.stop or columns.start >= columns.stop:
            return
        x, y = self.x[:, columns], self.y[rows]
        whole = np.zeros((rows.stop - rows.start, columns.stop - columns.start), dtype=bool)
        colour = self.colour[rows, columns]
        for shape in shapes:
            mask = shape.covers(x, y)
            seen = [c + (h - c) * fade for c, h in zip(shape.colour, haze, strict=True)]
            colour[mask] = np.array(seen, dtype=np.float32)
            whole |= mask
        labels = self.label[rows, columns]
        if border:
            labels[_grown(whole, margin)] = IGNORED
        labels[whole] = label

    def shade(self, shape: Shape, factor: float) -> None:
        """Draw a shadow, which darkens existing colours."""
        rows, columns = self._window([shape.bounds()], 0)
        if rows.start < rows.stop and columns.start < columns.stop:
            mask = shape.covers(self.x[:, columns], self.y[rows])
            self.colour[rows, columns][mask] *= np.float32(factor)

    def finished(self) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        """Return colours (height, width, 3) and labels (height, width) in the requested size."""
        colour: NDArray[np.float32] = summed(self.colour, SAMPLES)
        colour /= np.float32(SAMPLES**2)
        return colour, np.ascontiguousarray(self.label[::SAMPLES, ::SAMPLES])

    def _window(self, bounds: Sequence[tuple[float, float, float, float]], margin: int) -> tuple[slice, slice]:
        left, right, top, bottom = zip(*bounds, strict=True)
        columns = self._pixels(min(left), max(right), self._origin[0], margin, self.label.shape[1])
        return self._pixels(min(top), max(bottom), self._origin[1], margin, self.label.shape[0]), columns

    def _pixels(self, low: float, high: float, origin: float, margin: int, count: int) -> slice:
        first, last = (int(np.floor(edge / self._step + origin)) for edge in (low, high))
        return slice(min(max(first - margin, 0), count), min(max(last + 1 + margin, 0), count))


def scaled(colour: Colour, factor: float) -> Colour:
    """Return a brighter or darker colour."""
    red, green, blue = (min(part * factor, 255.0) for part in colour)
    return red, green, blue


def summed(points: NDArray[Any], each: int) -> NDArray[Any]:
    """Return sums (H, W, ...) over the `each` x `each` points of a pixel, in a fixed order, which numpy does not
    guarantee.
    """
    total = np.zeros_like(points[::each, ::each])
    for row in range(each):
        for column in range(each):
            total += points[row::each, column::each]
    return total


def _grown(mask: Mask, by: int) -> Mask:
    grown = mask.copy()
    for _ in range(by):
        wider = grown.copy()
        wider[1:] |= grown[:-1]
        wider[:-1] |= grown[1:]
        wider[:, 1:] |= grown[:, :-1]
        wider[:, :-1] |= grown[:, 1:]
        grown = wider
    return grown


@overload
def between(rng: np.random.Generator, low: float, high: float) -> float: ...
@overload
def between(rng: np.random.Generator, low: float, high: float, count: int | tuple[int, int]) -> NDArray[np.float64]: ...
def between(
    rng: np.random.Generator, low: float, high: float, count: int | tuple[int, int] | None = None
) -> float | NDArray[np.float64]:
    """Return uniform draws. Generator.uniform is avoided because compilers may contract it to a fused multiply-add."""
    return low + (high - low) * rng.random(count)


def speckle(i: Floats, j: Floats, salt: int) -> NDArray[np.float32]:
    """Return a number in [0, 1) for each cell (floor i, floor j) of a grid, which depends only on the cell."""
    cells = [np.floor(np.clip(part, -1e6, 1e6)).astype(np.int64).astype(np.uint32) for part in (i, j)]
    mixed = cells[0] * np.uint32(0x9E3779B1) ^ cells[1] * np.uint32(0x85EBCA77) ^ np.uint32(salt & 0xFFFF_FFFF)
    for shift, factor in ((15, 0x2C1B3C6D), (12, 0x297A2D39)):
        mixed = (mixed ^ (mixed >> np.uint32(shift))) * np.uint32(factor)
    return ((mixed ^ (mixed >> np.uint32(15))) >> np.uint32(8)).astype(np.float32) / np.float32(1 << 24)
