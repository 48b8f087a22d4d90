"""SYNTHIA-RAND-CITYSCAPES (Ros et al. 2016): 9400 rendered images of 1280x760, no official split."""

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ianvs.exam.data.labels import IGNORED
from ianvs.testenv.datasets.downloads import cityscapes
from ianvs.testenv.datasets.downloads.paired_folders import Pair, files_below, folder_of, pair_up
from ianvs.testenv.datasets.downloads.raw_domain import LabelSet, Preparer, PrepareRequest, RawDomain

_CS = cityscapes.LABELS.palette

LABELS = LabelSet(
    palette=MappingProxyType(
        {
            "sky": _CS["sky"],
            "building": _CS["building"],
            "road": _CS["road"],
            "sidewalk": _CS["sidewalk"],
            "fence": (64, 64, 128),
            "vegetation": _CS["vegetation"],
            "pole": _CS["pole"],
            "car": _CS["car"],
            "traffic sign": _CS["traffic sign"],
            "person": _CS["person"],  # "pedestrian" in SYNTHIA
            "bicycle": _CS["bicycle"],
            "motorcycle": (0, 0, 230),
            "parking-slot": (250, 170, 160),
            "road-work": (128, 64, 64),
            "traffic light": _CS["traffic light"],
            "terrain": _CS["terrain"],
            "rider": _CS["rider"],
            "truck": _CS["truck"],
            "bus": _CS["bus"],
            "train": _CS["train"],
            "wall": _CS["wall"],
            "lane-marking": (157, 234, 50),  # its colour in SYNTHIA's table is that of wall
        }
    ),
    groups=MappingProxyType(
        {
            "flat": ("road", "sidewalk", "parking-slot", "lane-marking"),
            "construction": ("building", "wall", "fence", "road-work"),
            "object": ("pole", "traffic light", "traffic sign"),
            "nature": ("vegetation", "terrain"),
            "sky": ("sky",),
            "human": ("person", "rider"),
            "vehicle": ("car", "truck", "bus", "train", "motorcycle", "bicycle"),
        }
    ),
)
"""The 22 classes by id - 1. Those that Cityscapes has too bear its names, so that a union of domains joins them."""

TO_OWN: Mapping[int, int] = MappingProxyType({0: IGNORED} | {number: number - 1 for number in range(1, 23)})
"""From the ids of SYNTHIA's files, 0 void, to positions in LABELS."""

TO_CITYSCAPES: Mapping[int, int] = MappingProxyType(
    {0: IGNORED}
    | {
        number: cityscapes.LABELS.classes.index(name) if name in _CS else IGNORED
        for number, name in enumerate(LABELS.classes, start=1)
    }
)
"""From the ids of SYNTHIA's files to the trainIds of Cityscapes; what Cityscapes has not is ignored."""


def find(request: PrepareRequest) -> tuple[RawDomain, ...]:
    """`RGB/{id}.png` with the 16-bit `GT/LABELS/{id}.png`, parted by `test_ratio` and `seed`."""
    pictures = files_below(folder_of(request.root, "RGB"), ".png")
    labels = files_below(folder_of(request.root, "GT/LABELS"), ".png")
    warnings: list[str] = []
    pairs = tuple(
        Pair(pair.key, pair.picture, pair.label, mapped=True)
        for pair in pair_up(pictures, labels, "*.png", request.skip_missing, warnings)
    )
    test = split_by_hash([pair.key for pair in pairs], request.test_ratio, request.seed)
    rule: dict[str, str | int | float] = {
        "rule": "the images with the smallest sha256 of 'seed/id' are the test part",
        "test_ratio": request.test_ratio,
        "seed": request.seed,
    }
    return (
        RawDomain(
            request.domain or "SYN",
            cityscapes.LABELS if request.classes == "cityscapes" else LABELS,
            tuple(pair for pair in pairs if pair.key not in test),
            tuple(pair for pair in pairs if pair.key in test),
            rule,
            TO_CITYSCAPES if request.classes == "cityscapes" else TO_OWN,
            tuple(warnings),
            first_channel=True,
        ),
    )


def split_by_hash(keys: Sequence[str], ratio: float, seed: int) -> frozenset[str]:
    """Return round(ratio * len(keys)) of the keys, independent of platform and library versions."""
    ordered = sorted(keys, key=lambda key: hashlib.sha256(f"{seed}/{key}".encode()).digest())
    return frozenset(ordered[: round(ratio * len(ordered))])


PREPARER = Preparer("synthia", find, ("classes", "test_ratio", "seed"))
