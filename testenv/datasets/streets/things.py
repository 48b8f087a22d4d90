"""The things in a street: cars, persons, poles, trees, dustbins, and stairs that lead to a door.

Each function returns the shapes of one thing, later ones over earlier ones; X and Z are its position in metres.
"""

import numpy as np

from ianvs.testenv.datasets.streets.canvas import Camera, Colour, Ellipse, Polygon, Shape, between, scaled

_GLASS: Colour = (44, 50, 58)
_BLACK: Colour = (26, 26, 28)


def car(camera: Camera, X: float, Z: float, paint: Colour, oncoming: bool) -> list[Shape]:
    """Return a box with a cabin, 1.8 x 4.2 x 1.5 m, seen from behind or, with `oncoming`, from the front."""
    left, right, far = X - 0.9, X + 0.9, Z + 4.2
    side = left if X > 0 else right
    dark, light = scaled(paint, 0.72), scaled(paint, 1.12)
    lamp: Colour = (246, 240, 214) if oncoming else (196, 30, 28)
    shapes: list[Shape] = []
    if abs(X) > 0.9:  # seen from straight behind, no side is visible
        inner = side + (0.12 if X > 0 else -0.12)
        for hub in (Z + 0.8, Z + 3.3):
            shapes.append(Polygon(camera.along(side, 0.0, 0.6, hub - 0.32, hub + 0.32), _BLACK))
        shapes.append(Polygon(camera.along(side, 0.25, 0.85, Z, far), dark))
        cabin = (camera.see(side, 0.8, Z), camera.see(side, 0.8, Z + 3.1))
        shapes.append(Polygon((*cabin, camera.see(inner, 1.47, Z + 2.4), camera.see(inner, 1.47, Z + 0.4)), _GLASS))
    if camera.height > 1.47:
        shapes.append(Polygon(camera.flat(left + 0.12, right - 0.12, 1.47, Z + 0.4, Z + 2.4), light))
    trapezoid = (
        camera.see(left + 0.05, 0.85, Z),
        camera.see(right - 0.05, 0.85, Z),
        camera.see(right - 0.22, 1.47, Z + 0.4),
        camera.see(left + 0.22, 1.47, Z + 0.4),
    )
    window = (
        camera.see(left + 0.2, 0.92, Z),
        camera.see(right - 0.2, 0.92, Z),
        camera.see(right - 0.32, 1.36, Z + 0.35),
        camera.see(left + 0.32, 1.36, Z + 0.35),
    )
    for tyre in (left + 0.05, right - 0.35):
        shapes.append(Polygon(camera.upright(tyre, tyre + 0.3, 0.0, 0.4, Z), _BLACK))
    shapes += [
        Polygon(trapezoid, paint),
        Polygon(window, _GLASS),
        Polygon(camera.upright(left, right, 0.28, 0.88, Z), paint),
        Polygon(camera.upright(left, right, 0.28, 0.42, Z), scaled(paint, 0.5)),
        Polygon(camera.upright(left + 0.06, left + 0.4, 0.6, 0.76, Z), lamp),
        Polygon(camera.upright(right - 0.4, right - 0.06, 0.6, 0.76, Z), lamp),
        Polygon(camera.upright(X - 0.26, X + 0.26, 0.5, 0.62, Z), (220, 220, 214)),
    ]
    return shapes


def shadow(camera: Camera, left: float, right: float, near: float, far: float) -> Shape:
    """Return the area on the ground under a thing that is to be darkened."""
    return Polygon(camera.flat(left, right, 0.0, near, far), _BLACK)


def person(
    camera: Camera, X: float, Z: float, tall: float, coat: Colour, trousers: Colour, stride: float
) -> list[Shape]:
    """Return a person. stride: distance between the feet in metres."""
    hip, neck = 0.5 * tall, 0.86 * tall
    shapes: list[Shape] = []
    for foot in (-stride / 2, stride / 2):
        feet = camera.see(X + foot - 0.09, 0.0, Z), camera.see(X + foot + 0.09, 0.0, Z)
        shapes.append(Polygon((*feet, camera.see(X + 0.14, hip, Z), camera.see(X - 0.14, hip, Z)), trousers))
    low, high = camera.see(X - 0.19, hip - 0.06, Z), camera.see(X + 0.19, hip - 0.06, Z)
    shapes.append(Polygon((low, high, camera.see(X + 0.25, neck, Z), camera.see(X - 0.25, neck, Z)), coat))
    shapes.append(Polygon(camera.upright(X - 0.3, X - 0.2, hip, neck - 0.04, Z), scaled(coat, 0.8)))
    shapes.append(Polygon(camera.upright(X + 0.2, X + 0.3, hip, neck - 0.04, Z), scaled(coat, 0.8)))
    shapes.append(Ellipse(camera.see(X, 0.93 * tall, Z), (0.12 / Z, 0.15 / Z), (206, 162, 136)))
    shapes.append(Ellipse(camera.see(X, 0.97 * tall, Z), (0.12 / Z, 0.09 / Z), (60, 44, 36)))
    return shapes


def pole(camera: Camera, X: float, Z: float, tall: float, metal: Colour, arm: float) -> list[Shape]:
    """Return a lamp post whose arm reaches `arm` metres to the right (negative: to the left)."""
    ends = sorted((X, X + arm))
    return [
        Polygon(camera.upright(X - 0.15, X + 0.15, 0.0, tall, Z), metal),
        Polygon(camera.upright(ends[0], ends[1], tall - 0.16, tall, Z), metal),
        Polygon(camera.upright(X + arm - 0.35, X + arm + 0.35, tall - 0.3, tall, Z), scaled(metal, 1.3)),
    ]


def tree(
    camera: Camera, X: float, Z: float, tall: float, foliage: tuple[Colour, ...], rng: np.random.Generator
) -> list[Shape]:
    """Return a trunk and a crown of a few balls of leaves."""
    shapes: list[Shape] = [Polygon(camera.upright(X - 0.14, X + 0.14, 0.0, 0.6 * tall, Z), (84, 66, 50))]
    for index in range(9):
        spread = 0.27 * tall * (1.0 - 0.05 * index)
        centre = camera.see(X + between(rng, -spread, spread), tall * between(rng, 0.55, 0.92), Z)
        radius = tall * between(rng, 0.1, 0.2) / Z
        leaves = scaled(foliage[index % len(foliage)], between(rng, 0.8, 1.2))
        shapes.append(Ellipse(centre, (radius * 1.15, radius), leaves))
    return shapes


def dustbin(camera: Camera, X: float, Z: float, paint: Colour) -> list[Shape]:
    """Return a wheeled bin, 1 m high."""
    foot = camera.see(X - 0.24, 0.06, Z), camera.see(X + 0.24, 0.06, Z)
    return [
        Polygon(camera.upright(X - 0.22, X - 0.08, 0.0, 0.2, Z), _BLACK),
        Polygon(camera.upright(X + 0.08, X + 0.22, 0.0, 0.2, Z), _BLACK),
        Polygon((*foot, camera.see(X + 0.31, 0.9, Z), camera.see(X - 0.31, 0.9, Z)), paint),
        Polygon(camera.upright(X - 0.15, X + 0.15, 0.4, 0.62, Z), scaled(paint, 1.5)),
        Polygon(camera.upright(X - 0.35, X + 0.35, 0.88, 1.04, Z), scaled(paint, 0.7)),
    ]


def stairs(camera: Camera, X: float, end: float, steps: int, width: float, stone: Colour) -> list[Shape]:
    """Return steps of 16 x 32 cm up to a wall at distance `end`."""
    shapes: list[Shape] = []
    left, right = X - width / 2, X + width / 2
    for step in range(steps - 1, -1, -1):  # the farthest first
        near, high = end - 0.32 * (steps - step), 0.16 * (step + 1)
        if camera.height > high:
            shapes.append(Polygon(camera.flat(left, right, high, near, near + 0.32), scaled(stone, 1.15)))
        shapes.append(Polygon(camera.upright(left, right, high - 0.16, high, near), scaled(stone, 0.78)))
        shapes.append(Polygon(camera.upright(left, right, high - 0.05, high, near), scaled(stone, 1.1)))
    return shapes


def door(camera: Camera, X: float, end: float, low: float, wood: Colour) -> list[Shape]:
    """Return a double door in a frame, its foot at height `low`."""
    return [
        Polygon(camera.upright(X - 1.0, X + 1.0, low, low + 2.5, end), scaled(wood, 0.6)),
        Polygon(camera.upright(X - 0.86, X - 0.04, low, low + 2.35, end), wood),
        Polygon(camera.upright(X + 0.04, X + 0.86, low, low + 2.35, end), scaled(wood, 0.92)),
    ]
