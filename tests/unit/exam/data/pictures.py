"""Small picture datasets on disk, for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from ianvs.config.spec import DatasetSpec, SourceSpec


def write_picture(path: Path, pixels: np.ndarray | None = None, *, mode: str | None = None, seed: int = 0) -> Path:
    """A picture of the given (H, W[, C]) uint8 pixels, else of random 6x5 ones."""
    if pixels is None:
        pixels = np.random.default_rng(seed).integers(0, 256, (6, 5, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(path)
    return path


def write_index(folder: Path, lines: list[str], name: str = "index.txt") -> SourceSpec:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return SourceSpec(path, "index")


def two_classes(folder: Path, **settings: object) -> DatasetSpec:
    """Four training and two test pictures of cats and dogs, listed in index files."""
    sources = {}
    for part, count in (("train", 4), ("test", 2)):
        lines = []
        for i in range(count):
            name = f"{part}/{i}.png"
            write_picture(folder / name, seed=100 * count + i)
            lines.append(f"{name} {('cat', 'dog')[i % 2]}")
        sources[part] = (write_index(folder, lines, f"{part}.txt"),)
    return DatasetSpec(train=sources["train"], test=sources["test"], **settings)  # type: ignore[arg-type]
