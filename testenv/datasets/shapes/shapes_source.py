"""The sources `shapes` and `shapes_multilabel`: generated scenes, labelled with boxes or with the classes in them."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ianvs.exam.data.listing import column
from ianvs.testenv.datasets.array_source import Arrays, GeneratedSource, numbered
from ianvs.testenv.datasets.shapes.make_shapes import TEXTURES, VERSION, make_shapes, multi_hot
from ianvs.testenv.datasets.shapes.outlines import OUTLINES


class Shapes(GeneratedSource):
    """train, test: images on each texture, of which each is a domain. size: height and width in pixels.

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

    def made(self, domain: str, part: str, domains: Sequence[str]) -> Arrays:
        """Return x uint8 (N, size, size, 3).

        Boxes (M, 4) and y (M,) of the shapes in all images, counts (N,) in each.
        """
        count, often = (self.train, self.frequencies) if part == "train" else (self.test, ())
        x, targets = make_shapes(domain, count, self.size, self.seed, part, often)
        return {
            "x": x,
            "boxes": np.concatenate([target["boxes"] for target in targets]),
            "y": np.concatenate([target["labels"] for target in targets]),
            "counts": np.array([len(target["labels"]) for target in targets]),
            "ids": numbered(f"{domain}/{part}/", np.arange(count), 5),
        }

    def labels(self, arrays: Arrays, part: str) -> NDArray[Any]:
        """Return (N,) objects: for each image a mapping of lists, boxes (n, 4) and labels (n,)."""
        ends = np.cumsum(arrays[f"counts_{part}"])[:-1]
        boxes, labels = (np.split(np.array(arrays[f"{name}_{part}"]), ends) for name in ("boxes", "y"))
        return column([{"boxes": b.tolist(), "labels": c.tolist()} for b, c in zip(boxes, labels, strict=True)])


class ShapesMultilabel(Shapes):
    """As `shapes`, the same images, with the classes that each holds."""

    summary: ClassVar[str] = "generated scenes of 1 to 4 shapes on 4 textures, with their classes; made in seconds"
    kind: ClassVar[str] = "multilabel"

    def labels(self, arrays: Arrays, part: str) -> NDArray[Any]:
        """Return (N, 8) uint8: whether an image holds a shape of the class."""
        return multi_hot(super().labels(arrays, part))
