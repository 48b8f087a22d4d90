"""Drifting images in bulk: as arrays, or as files in the layout of a CLEAR release."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError
from ianvs.base.seeding import generator
from ianvs.testenv.datasets.downloads.writing import Progress
from ianvs.testenv.datasets.drift.objects import CLASSES
from ianvs.testenv.datasets.drift.picture import draw_picture

VERSION = 1  # part of the dataset's fingerprint: increase it when a seed gives other images
BUCKETS = 10
FOLDERS = {"train": "train_image_only", "test": "test"}  # names of the release


def make_drift(
    bucket: int, count: int, size: int = 32, seed: int = 0, part: str = "train"
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """`count` images of each class in a bucket, 1 to 10: x (classes * count, size, size, 3), y (classes * count,).

    Class by class. Image i of a class depends on (bucket, class, part, seed, i) only, not on `count`.
    Raises DataError for another bucket or a size below 8 pixels.
    """
    if not 1 <= bucket <= BUCKETS:
        raise DataError(f"there is no bucket {bucket}; there are 1 to {BUCKETS}.", code="out-of-range")
    if size < 8:
        raise DataError(f"images of {size} pixels are too small to show anything; 8 at least.", code="out-of-range")
    x = np.empty((len(CLASSES) * count, size, size, 3), dtype=np.uint8)
    time = (bucket - 1) / (BUCKETS - 1)
    for index, name in enumerate(CLASSES):
        for number in range(count):
            rng = generator(seed, number, f"drift/{bucket}/{name}/{part}")
            x[index * count + number] = draw_picture(name, time, size, rng)
    return x, np.repeat(np.arange(len(CLASSES)), count)


def write_drift(
    folder: Path, train: int = 30, test: int = 15, size: int = 32, seed: int = 0, progress: Progress | None = None
) -> None:
    """Write a folder that the source `clear10` can read: the layout of the release of 2022, with train_image_only/ and
    test/.

    train, test: images of each class in each bucket. Images are png files, so they equal those of `make_drift`. Raises
    DataError if `folder` already holds something else.
    """
    from PIL import Image

    for name in FOLDERS.values():
        if (folder / name).exists():
            raise DataError(
                f"{folder / name} is there already. Name a new folder, or remove it.", code="existing-output"
            )
    done = 0
    for part, count in (("train", train), ("test", test)):
        home = folder / FOLDERS[part]
        home.mkdir(parents=True)
        (home / "class_names.txt").write_text("\n".join(CLASSES) + "\n", encoding="utf-8")
        overview: dict[str, dict[str, str]] = {}
        for bucket in range(1, BUCKETS + 1):
            x, y = make_drift(bucket, count, size, seed, part)
            for index, name in enumerate(CLASSES):
                pictures = home / "labeled_images" / str(bucket) / name
                pictures.mkdir(parents=True)
                entries = {}
                for number, pixels in enumerate(x[y == index]):
                    key = flickr_id(bucket, index, part, number)
                    Image.fromarray(pixels).save(pictures / f"{key}.png")
                    entries[key] = {"IMG_PATH": f"labeled_images/{bucket}/{name}/{key}.png"}
                listing = f"labeled_metadata/{bucket}/{name}.json"
                (home / listing).parent.mkdir(parents=True, exist_ok=True)
                (home / listing).write_text(json.dumps(entries, indent=1), encoding="utf-8")
                overview.setdefault(str(bucket), {})[name] = listing
                done += count
                if progress is not None:
                    progress(done, BUCKETS * len(CLASSES) * (train + test))
        (home / "labeled_metadata.json").write_text(json.dumps(overview, indent=1), encoding="utf-8")


def flickr_id(bucket: int, index: int, part: str, number: int) -> str:
    """Return a number in the form of Flickr's, unique for each image."""
    return f"{bucket:02d}{index:02d}{int(part == 'test')}{number:06d}"
