"""Small releases of CLEAR on disk, in both layouts, for tests."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

from ianvs.config.spec import DatasetSpec

CLASSES = ("BACKGROUND", "bus", "camera")


def spec(root: Path, *, name: str = "clear10", image_size: int | None = 8, using=(), **options) -> DatasetSpec:
    size = None if image_size is None else (image_size, image_size)
    return DatasetSpec(name=name, root=root, image_size=size, using=tuple(using), options=options)


def pixels(bucket: int, label: int, number: int, size: tuple[int, int] = (8, 8)) -> np.ndarray:
    """A plain picture that tells where it belongs."""
    return np.full((*size, 3), (10 * bucket, 20 * label, number), dtype=np.uint8)


def write(path: Path, values: np.ndarray) -> None:
    """Without loss, whatever the name's suffix: pictures are known by their content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path, format="PNG")


def with_metadata(folder: Path, buckets, each: int, *, first: int = 0, classes=CLASSES) -> Path:
    """A training or test folder of the release of 2022: `each` pictures per class and bucket, numbered from `first`."""
    overview: dict[str, dict[str, str]] = {}
    for bucket in buckets:
        for label, name in enumerate(classes):
            entries = {}
            for number in range(first, first + each):
                path = f"labeled_images/{bucket}/{name}/{number}.jpg"
                write(folder / path, pixels(bucket, label, number))
                entries[str(number)] = {"IMG_PATH": path, "DATE_TAKEN": "2009-01-01", "TITLE": "a picture"}
            listing = f"labeled_metadata/{bucket}/{name}.json"
            (folder / listing).parent.mkdir(parents=True, exist_ok=True)
            (folder / listing).write_text(json.dumps(entries))
            overview.setdefault(str(bucket), {})[name] = listing
    (folder / "labeled_metadata.json").write_text(json.dumps(overview))
    (folder / "class_names.txt").write_text("\n".join(classes))
    return folder


def release(root: Path, buckets=(1, 2, 3), *, train: int = 3, test: int = 2) -> Path:
    """The layout of 2022."""
    with_metadata(root / "train_image_only", buckets, train)
    with_metadata(root / "test", buckets, test, first=100)
    return root


def with_lists(root: Path, buckets=(1, 2), each: int = 10, *, announced=None) -> Path:
    """The layout of 2021: file lists and the five splits, in each of which 30 % are for testing."""
    home = root / "training_folder"
    for bucket in buckets:
        lines = []
        for label, name in enumerate(CLASSES):
            for number in range(each):
                path = f"labeled_images/{bucket}/{name}/{number}.jpg"
                write(root / path, pixels(bucket, label, number))
                lines.append(f"{path} {label}")
        _lines(home / "filelists" / str(bucket) / "all.txt", lines)
        for split in range(5):
            taken = [i for i in range(len(lines)) if (i * 7 + split) % 10 < 3]
            for part, keep in (("train", set(range(len(lines))) - set(taken)), ("test", taken)):
                path = home / "testset_ratio_0.3" / f"split_{split}" / str(bucket)
                _lines(path / f"{part}.txt", [lines[i] for i in sorted(keep)])
                (path / f"{part}_indices.json").write_text(json.dumps(sorted(keep)))
    (home / "bucket_indices.json").write_text(json.dumps([str(b) for b in announced or buckets]))
    (root / "class_names.txt").write_text("\n".join(CLASSES) + "\n")
    return root


def lines_of(file: Path) -> list[tuple[str, int]]:
    """(path, label) of a caffe-style list, read the plain way."""
    return [(path, int(label)) for path, label in (line.split() for line in file.read_text().splitlines())]


def _lines(file: Path, lines: list[str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")
