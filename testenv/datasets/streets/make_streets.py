"""Street scenes in bulk: as arrays, or as files with an index."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError, closest, one_line
from ianvs.base.seeding import generator
from ianvs.testenv.datasets.downloads.cityscapes import LABELS as CITYSCAPES
from ianvs.testenv.datasets.downloads.cloud_robotics import LABELS as CLOUD_ROBOTICS
from ianvs.testenv.datasets.downloads.label_ids import write_ids
from ianvs.testenv.datasets.downloads.paired_folders import Pair
from ianvs.testenv.datasets.downloads.preparers import origin_of
from ianvs.testenv.datasets.downloads.raw_domain import LabelSet, RawDomain
from ianvs.testenv.datasets.downloads.synthia import LABELS as SYNTHIA
from ianvs.testenv.datasets.downloads.writing import (
    Prepared,
    Progress,
    refuse_strange_index,
    write_domain,
    write_together,
)
from ianvs.testenv.datasets.streets.looks import CLASSES
from ianvs.testenv.datasets.streets.scene import draw_scene

VERSION = 1  # part of the dataset's fingerprint: increase it when a seed gives other images

_PALETTE = {**CLOUD_ROBOTICS.palette, **SYNTHIA.palette, **CITYSCAPES.palette}


def make_streets(
    domain: str, count: int, size: tuple[int, int] = (64, 128), seed: int = 0, part: str = "train"
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """`count` scenes of "CS", "SYN" or "CR": x (count, height, width, 3), y (count, height, width).

    y holds positions in STREETS_CLASSES[domain], and 255 where a pixel is to be ignored: the bonnet of the car that
    carries the camera, and a thin line around some things. Scene i depends on (domain, part, seed, i) only, not on
    `count`; a larger `size` shows the same scene in more detail. Raises DataError for an unknown domain.
    """
    _check(domain, size)
    x = np.empty((count, *size, 3), dtype=np.uint8)
    y = np.empty((count, *size), dtype=np.uint8)
    for index in range(count):
        x[index], y[index] = draw_scene(domain, size, generator(seed, index, f"streets/{domain}/{part}"))
    return x, y


def write_streets(
    folder: Path,
    train: int = 120,
    test: int = 40,
    size: tuple[int, int] = (64, 128),
    seed: int = 0,
    domains: Sequence[str] = tuple(CLASSES),
    progress: Progress | None = None,
) -> tuple[Prepared, ...]:
    """Write each domain's images, masks and index files to `folder`/domain, and an index of all to `folder`."""
    from PIL import Image

    for domain in domains:
        _check(domain, size)
    refuse_strange_index(folder)
    origin = origin_of("streets", {"options": {"size": list(size), "seed": seed, "version": VERSION}})
    prepared, total, done = [], len(domains) * (train + test), 0
    for domain in domains:
        home, pairs = folder / domain, {}
        for part, count in (("train", train), ("test", test)):
            (home / "rgb" / part).mkdir(parents=True, exist_ok=True)
            of_part = []
            for index, (picture, labels) in enumerate(zip(*make_streets(domain, count, size, seed, part), strict=True)):
                pair = Pair(
                    f"{index:05d}",
                    home / "rgb" / part / f"{index:05d}.png",
                    home / "gt" / part / f"{index:05d}_TrainIds.png",
                )
                Image.fromarray(picture).save(pair.picture)
                write_ids(pair.label, labels)
                of_part.append(pair)
                done += 1
                if progress is not None:
                    progress(done, total)
            pairs[part] = tuple(of_part)
        palette = LabelSet({name: _PALETTE[name] for name in CLASSES[domain]})
        raw = RawDomain(domain, palette, pairs["train"], pairs["test"], {"rule": "generated apart", "seed": seed})
        prepared.append(write_domain(raw, home, origin))
    write_together(folder, prepared, origin)
    return tuple(prepared)


def _check(domain: str, size: tuple[int, int]) -> None:
    if domain not in CLASSES:
        domains = one_line(list(CLASSES))
        raise DataError(
            f"streets has no domain '{domain}'.{closest(domain, CLASSES)} There are: {domains}.", code="invalid-choice"
        )
    if min(size) < 16:
        raise DataError(
            f"images of {size[0]}x{size[1]} are too small for a street; 16 pixels at least.", code="out-of-range"
        )
