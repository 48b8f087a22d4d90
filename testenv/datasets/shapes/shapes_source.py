"""The sources `shapes` and `shapes_multilabel`: generated scenes, with boxes or with the classes that they hold."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ianvs.config.spec import DatasetSpec
from ianvs.exam.data import Dataset, Progress, Samples
from ianvs.exam.data.cache import cached_arrays
from ianvs.exam.data.listing import column
from ianvs.testenv.datasets.array_source import Arrays, GeneratedSource
from ianvs.testenv.datasets.shapes.make_shapes import TEXTURES, VERSION, make_shapes, multi_hot
from ianvs.testenv.datasets.shapes.outlines import OUTLINES


class Shapes(GeneratedSource):
    """train, test: pictures on each texture, of which each is a domain. size: height and width in pixels.

    frequencies: how often each class is drawn for training, relative to the others; equally by default, as in testing.
    """

    summary: ClassVar[str] = "generated scenes of 1 to 4 shapes on 4 textures, with their boxes; made in seconds"
    kind: ClassVar[str] = "detection"
    generator: ClassVar[int] = VERSION
    domains: ClassVar[tuple[str, ...]] = TEXTURES
    classes: ClassVar[tuple[str, ...] | None] = tuple(OUTLINES)

    train: int = Field(200, ge=1)
    test: int = Field(75, ge=1)
    size: int = Field(64, ge=32)
    seed: int = Field(0, ge=0)
    frequencies: list[int] = Field([], max_length=len(OUTLINES))

    def read(self, spec: DatasetSpec) -> Arrays:
        """x uint8 (N, size, size, 3); boxes (M, 4) and y (M,) of the shapes in all pictures, counts (N,) in each."""
        textures = spec.using or self.domains
        arrays: Arrays = {}
        for part, count in (("train", self.train), ("test", self.test)):
            often = self.frequencies if part == "train" else ()
            made = [make_shapes(texture, count, self.size, self.seed, part, often) for texture in textures]
            targets = [target for _, y in made for target in y]
            arrays[f"x_{part}"] = np.concatenate([x for x, _ in made])
            arrays[f"boxes_{part}"] = np.concatenate([target["boxes"] for target in targets])
            arrays[f"y_{part}"] = np.concatenate([target["labels"] for target in targets])
            arrays[f"counts_{part}"] = np.array([len(target["labels"]) for target in targets])
            arrays[f"domains_{part}"] = np.repeat(np.array(textures), count)
            arrays[f"ids_{part}"] = np.array([f"{t}/{part}/{i:05d}" for t in textures for i in range(count)])
        return arrays

    def load(self, spec: DatasetSpec, cache_dir: Path, progress: Progress | None = None) -> Dataset:
        """x is a memory map."""
        fingerprint = self.fingerprint(spec, cache_dir)
        arrays = cached_arrays(cache_dir, f"{spec.name}-{fingerprint[:32]}", lambda: self.read(spec))
        train, test = (
            Samples(
                x=arrays[f"x_{part}"],
                y=self.labels(arrays, part),
                ids=np.array([f"{spec.name}/{name}" for name in arrays[f"ids_{part}"].tolist()]),
                domains=arrays[f"domains_{part}"],
            )
            for part in ("train", "test")
        )
        return Dataset(str(spec.name), self.kind, train, test, tuple(OUTLINES), fingerprint)

    def labels(self, arrays: Arrays, part: str) -> NDArray[Any]:
        """(N,) objects: of each picture a mapping of lists, boxes (n, 4) and labels (n,)."""
        ends = np.cumsum(arrays[f"counts_{part}"])[:-1]
        boxes, labels = (np.split(np.array(arrays[f"{name}_{part}"]), ends) for name in ("boxes", "y"))
        return column([{"boxes": b.tolist(), "labels": c.tolist()} for b, c in zip(boxes, labels, strict=True)])


class ShapesMultilabel(Shapes):
    """As `shapes`, the same pictures, with the classes that each holds."""

    summary: ClassVar[str] = "generated scenes of 1 to 4 shapes on 4 textures, with their classes; made in seconds"
    kind: ClassVar[str] = "multilabel"

    def labels(self, arrays: Arrays, part: str) -> NDArray[Any]:
        """(N, 8) uint8: whether a picture holds a shape of the class."""
        return multi_hot(super().labels(arrays, part))
