"""The static parts of a street scene: sky, the end of the street, walls on both sides, and the ground.

Each is a plane. A pixel's position on the plane is computed from its viewing ray, and the texture is a function of this
position, so textures, windows and lines have the correct perspective.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.testenv.datasets.streets.canvas import Canvas, Colour, Ellipse, Floats, Mask, between, speckle
from ianvs.testenv.datasets.streets.looks import Look

BUILDING, GREEN, EMPTY_LOT = range(3)
BLOCKS = 16  # along one side
LINE = 0.24  # width of a painted line
CURB = 0.42
INFINITY_M = 1e6  # distance if a ray does not hit the plane

Colours = NDArray[np.float32]  # (points, 3)


@dataclass(frozen=True)
class Layout:
    """Positions across the street, in metres. `centre` is the road's middle relative to the camera."""

    centre: float
    road: float  # half the width of the road
    walk: float  # width of a sidewalk
    wall: float  # from the middle to the walls
    end: float
    parking: float  # width of the parking slots, 0: none
    crossing: float  # where stripes cross the road, 0: nowhere
    salt: int


def haze(look: Look, Z: Any) -> Any:
    """Return the share of haze in a colour at distance Z, a number or an array."""
    return look.hidden * Z / (look.hidden * Z + 60 * (1 - look.hidden))


def draw_sky(canvas: Canvas, look: Look, label: int, rng: np.random.Generator) -> None:
    blend = np.clip(-canvas.y * 1.6, 0, 1)
    colour = _rgb(look.sky_low) + (_rgb(look.sky_high) - _rgb(look.sky_low)) * blend
    canvas.colour[:], canvas.label[:] = colour[:, None], label
    if not look.noise:  # the sky of a renderer has no clouds
        return
    red, green, blue = (min(part * 1.06, 250.0) for part in look.sky_low)
    for _ in range(int(rng.integers(2, 6))):
        x, y = between(rng, -1.0, 1.0), between(rng, -0.5, -0.12)
        puffs = [
            Ellipse(
                (x + between(rng, -0.14, 0.14), y + between(rng, -0.02, 0.02)),
                (between(rng, 0.06, 0.2), between(rng, 0.015, 0.045)),
                (red, green, blue),
            )
            for _ in range(3)
        ]
        canvas.draw(puffs, label)


def draw_end(canvas: Canvas, look: Look, layout: Layout, ids: Mapping[str, int], rng: np.random.Generator) -> None:
    """Draw the background at the end of the street: houses or trees."""
    X = canvas.x * layout.end
    Y = canvas.camera.height - canvas.y * layout.end
    salt = layout.salt + 4
    if rng.random() < 0.4 and "stair" not in ids:  # stairs need a house to lead to
        tops = 4 + 5 * speckle(X / 5, 0 * X, salt) + 1.5 * speckle(X / 0.9, 0 * X, salt + 1)
        _paint_green(canvas, look, tops > Y, X, Y, layout.end, ids["vegetation"], salt)
        return
    plot = np.floor(X / 11)
    floors = look.floors[0] + np.floor((look.floors[1] - look.floors[0] + 1) * speckle(plot, 0 * plot, salt + 2))
    tints = _picked(look.facades, speckle(plot, 0 * plot, salt + 3))
    _paint_facade(canvas, look, X, Y, layout.end, Y >= 0, 3.2 * floors, tints, {"building": ids["building"]}, salt)


def draw_wall(
    canvas: Canvas, look: Look, layout: Layout, ids: Mapping[str, int], side: int, rng: np.random.Generator
) -> None:
    """Draw the row of houses, hedges and empty lots along one side (-1 left, 1 right)."""
    is_short_street = layout.end < 30
    lengths = between(rng, 4, 8, BLOCKS) if is_short_street else between(rng, 6, 15, BLOCKS)
    edges = np.cumsum(lengths) - between(rng, 0, 5)
    kinds = rng.choice(3, BLOCKS, p=look.wall_kinds)
    floors = rng.integers(look.floors[0], look.floors[1] + 1, BLOCKS)
    tints = np.array([look.facades[index] for index in rng.integers(0, len(look.facades), BLOCKS)], dtype=np.float32)
    tints *= between(rng, 0.9, 1.1, (BLOCKS, 1)).astype(np.float32)
    if side * (1 if layout.salt % 2 else -1) > 0:
        tints *= np.float32(look.sunlit)

    outwards = canvas.x * side
    away = layout.wall + side * layout.centre
    Z = np.divide(away, outwards, out=np.full_like(outwards, INFINITY_M), where=outwards > 1e-6)
    Y = canvas.camera.height - canvas.y * Z
    block = np.minimum(np.searchsorted(edges, Z), BLOCKS - 1)
    visible, salt = (layout.end > Z) & (Y >= 0), layout.salt + 20 + side
    houses = visible & (kinds[block] == BUILDING)
    _paint_facade(canvas, look, Z, Y, Z, houses, (3.1 * floors + 0.4)[block], tints[block], ids, salt)
    min_height = 1.1 if is_short_street else 3.0
    tops = min_height * (1 + speckle(Z / 3, 0 * Z, salt) + 0.4 * speckle(Z / 0.7, 0 * Z, salt + 1))
    _paint_green(canvas, look, visible & (kinds[block] == GREEN) & (tops > Y), Z, Y, Z, ids["vegetation"], salt)


def draw_ground(canvas: Canvas, look: Look, layout: Layout, ids: Mapping[str, int]) -> None:
    """Draw road, lines, slots, curbs, sidewalks and the ground beyond them, up to the end of the street."""
    distance = np.divide(canvas.camera.height, canvas.y, out=np.full_like(canvas.y, INFINITY_M), where=canvas.y > 1e-6)
    ahead = np.broadcast_to(distance < layout.end, canvas.label.shape)
    Z = np.broadcast_to(distance, canvas.label.shape)[ahead]
    X = (canvas.x * distance)[ahead] - layout.centre
    away, salt = np.abs(X), layout.salt + 40
    colour = np.empty((len(X), 3), dtype=np.float32)
    labels = np.empty(len(X), dtype=np.uint8)

    def lay(where: Mask, paint: Colour, name: str) -> None:
        colour[where], labels[where] = _rgb(paint), ids[name]

    lay(np.ones(len(X), dtype=bool), look.road, "road")
    edge = layout.road
    if "lane-marking" in ids:
        paint = (244.0, 244.0, 236.0)
        lay((away < LINE / 2) & (Z % 6 < 3.4), paint, "lane-marking")
        lay(np.abs(away - edge + 0.45) < LINE / 2, paint, "lane-marking")
        if layout.crossing:
            lay((np.abs(Z - layout.crossing) < 1.5) & (X % 1.1 < 0.6) & (away < edge - 0.8), paint, "lane-marking")
    if layout.parking:
        slot = (edge <= X) & (edge + layout.parking > X)
        lay(slot, (196, 118, 96), "parking-slot")
        lay(slot & ((Z % 5 < 0.3) | (edge + 0.2 > X)), (240, 226, 214), "parking-slot")
    edges = np.where(X > 0, edge + layout.parking, edge)
    walk = away >= edges
    lay(walk, look.sidewalk, "sidewalk")
    joints = walk & ((Z % 1.5 < 0.08) | (away % 1.2 < 0.06)) & (Z < 12)
    colour[joints] *= np.float32(0.86)
    if "curb" in ids:
        lay(walk & (away < edges + CURB), (206, 200, 186), "curb")
        lay(walk & (away < edges + 0.09), (120, 112, 104), "curb")  # the face towards the road
    lay(away >= edges + layout.walk, look.lawn, "vegetation")
    if look.bricks:  # joints along and across, every other row shifted by half a brick
        shifted = X + 0.25 * (np.floor(Z / 0.3) % 2)
        joints = ~walk & ((Z % 0.3 < 0.05) | (shifted % 0.5 < 0.05)) & (Z < 5)
        colour[joints] *= np.float32(0.72)
    grain = speckle(X * 5, Z * 5, salt) * (Z < 14) + speckle(X / 1.7, Z / 2.6, salt + 1)
    colour *= (1 + look.grain * (grain - 0.75)).astype(np.float32)[:, None]
    canvas.colour[ahead], canvas.label[ahead] = _with_haze(colour, look, Z), labels


def _paint_facade(
    canvas: Canvas,
    look: Look,
    along: Floats,
    Y: Floats,
    Z: Floats | float,
    where: Mask,
    tops: Floats,
    tints: Colours,
    ids: Mapping[str, int],
    salt: int,
) -> None:
    """Walls with windows, and doors where they are a class. `along` and Y are the place on the wall, in metres.

    tops: height of the houses, tints: their colours; both vary along the wall only.
    """
    where = where & (tops > Y)
    along, Y, Z, tops, columns = _points(where, along, Y, Z, tops, np.arange(where.shape[1])[None])
    colour = tints.reshape(-1, 3)[columns]
    labels = np.full(len(Y), ids["building"], dtype=np.uint8)
    across, up = along % 2.6, Y % 3.1
    glass = (across > 0.7) & (across < 1.9) & (up > 0.9) & (up < 2.4) & (tops - 0.6 > Y)
    bright = np.float32(0.75) + np.float32(0.5) * speckle(along[glass] / 2.6, Y[glass] / 3.1, salt + 1)
    colour[glass] = _rgb(look.window) * bright[:, None]
    colour[(up < 0.16) | (tops - 0.35 < Y)] *= np.float32(0.82)
    if "door" in ids:
        place = along % 5.2
        door = (place < 1.9) & (Y < 2.25) & (speckle(along / 5.2, 0 * along, salt + 2) < 0.6)
        colour[door], labels[door] = _rgb((104, 58, 36)), ids["door"]
        colour[door & (place > 0.95)] *= np.float32(0.88)  # the other wing
    rough = speckle(along * 2, Y * 2, salt + 3) * (Z < 20) + speckle(along / 2, Y / 2, salt + 4)
    colour *= (1 + look.grain * 0.8 * (rough - 0.75)).astype(np.float32)[:, None]
    canvas.colour[where], canvas.label[where] = _with_haze(colour, look, Z), labels


def _paint_green(
    canvas: Canvas, look: Look, where: Mask, along: Floats, Y: Floats, Z: Floats | float, label: int, salt: int
) -> None:
    """Draw the foliage of hedges and trees at the positions (along, Y) of a plane."""
    where = where & (Y >= 0)
    along, Y, Z = _points(where, along, Y, Z)
    colour = _picked(look.foliage, speckle(along * 1.7, Y * 1.7, salt + 5))
    colour *= (np.float32(0.85) + np.float32(0.3) * speckle(along * 4, Y * 4, salt + 6))[:, None]
    canvas.colour[where], canvas.label[where] = _with_haze(colour, look, Z), label


def _points(where: Mask, *values: Any) -> list[NDArray[Any]]:
    """Return each of `values` at the points in `where`, as (points,)."""
    return [np.broadcast_to(value, where.shape)[where] for value in values]


def _picked(colours: tuple[Colour, ...], chance: NDArray[np.float32]) -> Colours:
    table = np.array(colours, dtype=np.float32)
    return table[np.minimum((chance * len(table)).astype(np.int64), len(table) - 1)]


def _with_haze(colour: Colours, look: Look, Z: Floats) -> Colours:
    share = haze(look, Z).astype(np.float32)[:, None]
    seen: Colours = colour + (_rgb(look.sky_low) - colour) * share
    return seen


def _rgb(colour: Colour) -> NDArray[np.float32]:
    return np.array(colour, dtype=np.float32)
