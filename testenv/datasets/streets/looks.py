"""The appearance of each domain.

Colours conflict on purpose: the road of one domain looks like the walls of another.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ianvs.testenv.datasets.streets.canvas import Colour

Range = tuple[float, float]

CLASSES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "CS": ("road", "sidewalk", "building", "pole", "vegetation", "sky", "person", "car"),
        "SYN": (
            "sky",
            "building",
            "road",
            "sidewalk",
            "vegetation",
            "pole",
            "car",
            "parking-slot",
            "lane-marking",
        ),
        "CR": (
            "road",
            "sidewalk",
            "building",
            "vegetation",
            "sky",
            "person",
            "stair",
            "curb",
            "door",
            "dustbin",
        ),
    }
)
"""Class names of each domain; a segmentation mask holds positions in its domain's tuple, and 255 for "ignore"."""


@dataclass(frozen=True)
class Look:
    """Ranges are drawn anew for every image. Lengths in metres, colours RGB 0..255."""

    camera_height: Range
    focal: Range  # fraction of the picture's height
    horizon: Range  # fraction of the picture's height
    road_width: Range
    walk_width: Range
    end: Range  # distance to the end of the street
    floors: tuple[int, int]
    road: Colour
    sidewalk: Colour
    lawn: Colour
    facades: tuple[Colour, ...]
    window: Colour
    foliage: tuple[Colour, ...]
    sky_high: Colour
    sky_low: Colour
    hidden: float  # share of the haze colour (sky_low) at 60 m
    sunlit: float  # brightness of walls on the sunny side relative to the others
    gain: Range  # exposure
    cast: Colour  # white balance, factors
    grain: float  # contrast of surface texture
    noise: int  # of the sensor, plus or minus
    vignette: float
    blur: bool
    bricks: bool  # a paved road
    wall_kinds: tuple[float, float, float]  # chances of building, vegetation, gap


LOOKS: Mapping[str, Look] = MappingProxyType(
    {
        # A car's camera on an overcast day: grey asphalt, brown and beige walls, pale sky, haze, sensor noise.
        "CS": Look(
            camera_height=(1.3, 1.7),
            focal=(1.0, 1.15),
            horizon=(0.42, 0.5),
            road_width=(7.5, 11.0),
            walk_width=(2.2, 3.8),
            end=(55, 80),
            floors=(3, 6),
            road=(88, 90, 92),
            sidewalk=(134, 124, 122),
            lawn=(92, 100, 70),
            facades=((150, 118, 92), (122, 96, 80), (164, 146, 116), (128, 120, 112), (142, 92, 74)),
            window=(62, 66, 72),
            foliage=((54, 72, 44), (66, 80, 46), (46, 62, 42)),
            sky_high=(186, 196, 206),
            sky_low=(222, 224, 222),
            hidden=0.55,
            sunlit=1.12,
            gain=(0.78, 1.12),
            cast=(0.98, 1.0, 0.97),
            grain=0.16,
            noise=7,
            vignette=0.12,
            blur=False,
            bricks=False,
            wall_kinds=(0.68, 0.2, 0.12),
        ),
        # Rendered by a game engine from a high camera: sandy roads, slate walls, hard sun, deep sky, no noise.
        "SYN": Look(
            camera_height=(2.3, 3.6),
            focal=(0.95, 1.1),
            horizon=(0.3, 0.4),
            road_width=(8.0, 12.0),
            walk_width=(2.5, 5.0),
            end=(60, 90),
            floors=(2, 8),
            road=(168, 146, 116),
            sidewalk=(214, 196, 190),
            lawn=(120, 190, 60),
            facades=((84, 90, 104), (70, 84, 96), (104, 104, 120), (96, 80, 110), (76, 100, 104)),
            window=(150, 200, 232),
            foliage=((98, 168, 44), (122, 188, 58), (82, 148, 50)),
            sky_high=(40, 110, 222),
            sky_low=(130, 186, 246),
            hidden=0.12,
            sunlit=1.3,
            gain=(0.95, 1.05),
            cast=(1.0, 1.0, 1.0),
            grain=0.03,
            noise=0,
            vignette=0.0,
            blur=False,
            bricks=False,
            wall_kinds=(0.6, 0.22, 0.18),
        ),
        # A robot dog's eye at knee height on a campus in the evening: brick paths, white walls, dim sky, soft focus.
        "CR": Look(
            camera_height=(0.4, 0.55),
            focal=(0.85, 1.0),
            horizon=(0.5, 0.58),
            road_width=(2.6, 4.4),
            walk_width=(1.0, 2.0),
            end=(8, 15),
            floors=(1, 3),
            road=(150, 96, 76),
            sidewalk=(98, 94, 96),
            lawn=(74, 92, 40),
            facades=((214, 206, 190), (198, 192, 184), (220, 200, 176), (188, 190, 196)),
            window=(96, 108, 120),
            foliage=((72, 90, 36), (92, 104, 44), (58, 80, 40)),
            sky_high=(112, 122, 150),
            sky_low=(206, 176, 150),
            hidden=0.25,
            sunlit=1.2,
            gain=(0.75, 1.05),
            cast=(1.08, 0.98, 0.84),
            grain=0.22,
            noise=6,
            vignette=0.28,
            blur=True,
            bricks=True,
            wall_kinds=(0.45, 0.45, 0.1),
        ),
    }
)
