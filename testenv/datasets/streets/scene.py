"""One street scene: draws its layout and its things as seen by the domain's camera."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.data.labels import IGNORED
from ianvs.testenv.datasets.streets import ground, things
from ianvs.testenv.datasets.streets.canvas import Camera, Canvas, Colour, Ellipse, Shape, between
from ianvs.testenv.datasets.streets.looks import CLASSES, LOOKS, Look

_PAINTS: tuple[Colour, ...] = (
    (38, 52, 96),
    (140, 32, 30),
    (196, 198, 200),
    (44, 46, 50),
    (226, 226, 222),
    (96, 104, 110),
)
_COATS: tuple[Colour, ...] = (
    (176, 40, 44),
    (40, 60, 120),
    (220, 190, 60),
    (70, 70, 76),
    (224, 224, 220),
    (60, 110, 80),
)
_BINS: tuple[Colour, ...] = ((34, 96, 60), (36, 70, 132), (70, 74, 78))


def draw_scene(
    domain: str, size: tuple[int, int], rng: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return an image (height, width, 3) and its labels (height, width): positions in CLASSES[domain], 255 ignored."""
    look, ids = LOOKS[domain], {name: index for index, name in enumerate(CLASSES[domain])}
    camera = Camera(
        between(rng, *look.camera_height),
        between(rng, *look.focal),
        between(rng, *look.horizon),
        between(rng, 0.42, 0.58),
    )
    canvas = Canvas(size, camera)
    layout = _layout(look, ids, rng)
    ground.draw_sky(canvas, look, ids["sky"], rng)
    ground.draw_end(canvas, look, layout, ids, rng)
    ground.draw_ground(canvas, look, layout, ids)
    for side in (-1, 1):
        ground.draw_wall(canvas, look, layout, ids, side, rng)
    for _, draw in sorted(_things(canvas, look, layout, ids, rng), key=lambda thing: -thing[0]):
        draw()
    if domain == "CS":  # the car with the camera, which has no class, as in Cityscapes
        bottom = float(canvas.y[-1, 0])
        canvas.draw(
            [Ellipse((0.0, bottom), (between(rng, 0.6, 0.75), between(rng, 0.035, 0.07)), (48, 50, 56))], IGNORED
        )
    colour, labels = canvas.finished()
    return _exposed(colour, look, rng), labels


def _layout(look: Look, ids: Mapping[str, int], rng: np.random.Generator) -> ground.Layout:
    road, walk = between(rng, *look.road_width) / 2, between(rng, *look.walk_width)
    parking = 2.5 if "parking-slot" in ids and rng.random() < 0.75 else 0.0
    lawn = between(rng, 0.8, 2.5) if "curb" in ids or rng.random() < 0.3 else 0.0
    return ground.Layout(
        centre=between(rng, -0.45, 0.2) * road,
        road=road,
        walk=walk,
        wall=road + walk + parking + lawn,
        end=between(rng, *look.end),
        parking=parking,
        crossing=between(rng, 6, 16) if rng.random() < 0.5 else 0.0,
        salt=int(rng.integers(0, 1 << 31)),
    )


def _things(
    canvas: Canvas, look: Look, layout: ground.Layout, ids: Mapping[str, int], rng: np.random.Generator
) -> list[tuple[float, Callable[[], None]]]:
    """Return (distance, function that draws it) of everything in the street."""
    camera, items = canvas.camera, []
    near = camera.height * 2.2  # what is nearer is below the image

    def put(name: str, Z: float, shapes: list[Shape], shadow: Shape | None = None) -> None:
        fade, border = ground.haze(look, Z), name != "pole" and Z < 25 and rng.random() < 0.7

        def draw() -> None:
            if shadow is not None:
                canvas.shade(shadow, 0.55)
            canvas.draw(shapes, ids[name], border=border, fade=fade, haze=look.sky_low)

        items.append((Z, draw))

    def beside(side: float, away: float) -> float:
        """X of something `away` metres outside of the road's edge."""
        parked = layout.parking if side > 0 else 0.0
        return layout.centre + side * (layout.road + parked + away)

    if "stair" in ids:
        _entrance(canvas, look, layout, ids, rng)
    for side in (-1.0, 1.0):
        if rng.random() < 0.7:
            _avenue(put, beside, camera, look, layout, side, rng)
        if "pole" in ids:
            first, pitch = between(rng, near + 3, near + 12), between(rng, 12, 20)
            for Z in np.arange(first, min(layout.end, 55), pitch):
                post = things.pole(camera, beside(side, 0.5), float(Z), 5.6, (96, 100, 104), -side * 1.4)
                put("pole", float(Z), post)
    if "car" in ids:
        _cars(put, camera, layout, near, rng)
    if "person" in ids:
        for _ in range(int(rng.integers(2, 7))):
            Z = between(rng, 2.2, layout.end * 0.8) if layout.end < 30 else between(rng, 5, 20)
            side = float(rng.choice((-1.0, 1.0)))
            X = beside(side, between(rng, 0.4, layout.walk)) if rng.random() < 0.75 else beside(side, -1.0)
            figure = things.person(
                camera, X, Z, between(rng, 1.5, 1.9), _pick(_COATS, rng), _pick(_COATS[3:], rng), between(rng, 0.1, 0.6)
            )
            put("person", Z, figure, things.shadow(camera, X - 0.1, X + 0.8, Z, Z + 0.25))
    if "dustbin" in ids:
        for _ in range(int(rng.integers(1, 4))):
            Z, side = between(rng, 2.0, layout.end * 0.7), float(rng.choice((-1.0, 1.0)))
            X = beside(side, between(rng, 0.6, max(layout.walk, 0.7)))
            put("dustbin", Z, things.dustbin(camera, X, Z, _pick(_BINS, rng)))
    return items


def _avenue(
    put: Callable[..., None],
    beside: Callable[[float, float], float],
    camera: Camera,
    look: Look,
    layout: ground.Layout,
    side: float,
    rng: np.random.Generator,
) -> None:
    """Add a row of trees along the sidewalk."""
    short = layout.end < 30
    pitch = between(rng, 3, 6) if short else between(rng, 7, 14)
    for Z in np.arange(between(rng, 3, 7) if short else between(rng, 9, 18), min(layout.end, 50), pitch):
        if rng.random() < 0.65:
            tall = between(rng, 2.2, 3.4) if short else between(rng, 4, 7)
            X = beside(side, layout.walk * between(rng, 0.75, 1.0))
            put("vegetation", float(Z), things.tree(camera, X, float(Z), tall, look.foliage, rng))


def _cars(
    put: Callable[..., None], camera: Camera, layout: ground.Layout, near: float, rng: np.random.Generator
) -> None:
    """Add cars in both lanes, and parked ones in the slots or at the edge of the road."""
    lanes = [(layout.centre + layout.road / 2, False, 2, 9.0), (layout.centre - layout.road / 2, True, 2, 9.0)]
    if layout.parking:
        lanes.append((layout.centre + layout.road + layout.parking / 2, False, 3, 5.0))
    elif rng.random() < 0.6:
        lanes.append((layout.centre - layout.road + 1.0, True, 4, 5.2))
    for X, oncoming, most, pitch in lanes:
        start = near + between(rng, 1.5, 12)
        for place in range(int(rng.integers(0, most + 1))):
            Z = start + place * pitch * between(rng, 1.0, 1.5)
            shape = things.car(camera, X + between(rng, -0.2, 0.2), Z, _pick(_PAINTS, rng), oncoming)
            put("car", Z, shape, things.shadow(camera, X - 1.2, X + 1.25, Z - 0.15, Z + 4.4))


def _entrance(
    canvas: Canvas, look: Look, layout: ground.Layout, ids: Mapping[str, int], rng: np.random.Generator
) -> None:
    """Draw stairs and a door at the house at the end of the street, before everything in front of it."""
    camera, steps = canvas.camera, int(rng.integers(4, 10))
    X = layout.centre + between(rng, -0.35, 0.35) * layout.wall
    wood = _pick(((112, 62, 38), (58, 84, 110), (96, 44, 40)), rng)
    fade = ground.haze(look, layout.end)
    entrance = things.door(camera, X, layout.end, 0.16 * steps, wood)
    canvas.draw(entrance, ids["door"], fade=fade, haze=look.sky_low)
    width, stone = (
        between(rng, 0.7, 1.25) * layout.wall,
        _pick(((150, 146, 140), (128, 118, 112), (168, 156, 138)), rng),
    )
    flight = things.stairs(camera, X, layout.end, steps, width, stone)
    canvas.draw(flight, ids["stair"], border=True, fade=fade, haze=look.sky_low)


def _pick(colours: tuple[Colour, ...], rng: np.random.Generator) -> Colour:
    return colours[int(rng.integers(0, len(colours)))]


def _exposed(colour: NDArray[np.float32], look: Look, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Convert light to pixel values: exposure, white balance, vignette, soft focus, sensor noise."""
    height, width = colour.shape[:2]
    if look.blur:
        padded = np.pad(colour, ((1, 1), (1, 1), (0, 0)), mode="edge")
        across = padded[:, :-2] + 4 * padded[:, 1:-1] + padded[:, 2:]
        colour = (across[:-2] + 4 * across[1:-1] + across[2:]) / np.float32(36)
    rows = (np.arange(height, dtype=np.float32) + np.float32(0.5)) / np.float32(height) - np.float32(0.5)
    columns = (np.arange(width, dtype=np.float32) + np.float32(0.5)) / np.float32(width) - np.float32(0.5)
    corner = rows[:, None] * rows[:, None] + columns[None] * columns[None]
    light = np.float32(between(rng, *look.gain)) * (1 - np.float32(2 * look.vignette) * corner)
    colour = colour * np.array(look.cast, dtype=np.float32) * light[..., None]
    if look.noise:
        colour = colour + rng.integers(-look.noise, look.noise + 1, (height, width, 1))
        colour = colour + rng.integers(-(look.noise // 2), look.noise // 2 + 1, colour.shape)
    picture: NDArray[np.uint8] = np.floor(np.clip(colour, 0, 255) + 0.5).astype(np.uint8)
    return picture
