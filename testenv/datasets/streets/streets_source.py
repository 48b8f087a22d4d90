"""The source `streets`: generated street scenes in the domains CS, SYN and CR, labelled pixel by pixel."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.labels import IGNORED
from ianvs.testenv.datasets.array_source import Arrays, GeneratedSource, numbered
from ianvs.testenv.datasets.streets import STREETS_CLASSES, make_streets
from ianvs.testenv.datasets.streets.make_streets import VERSION


class Streets(GeneratedSource):
    """train, test: images of each domain. size: height and width in pixels."""

    summary: ClassVar[str] = (
        "generated street scenes in the domains CS, SYN and CR, labelled pixel by pixel; made in seconds"
    )
    kind: ClassVar[str] = "segmentation"
    generator: ClassVar[int] = VERSION
    domains: ClassVar[tuple[str, ...]] = tuple(STREETS_CLASSES)

    train: int = Field(120, ge=1)
    test: int = Field(40, ge=1)
    size: list[int] = Field([64, 128], min_length=2, max_length=2)
    seed: int = Field(0, ge=0)

    def class_lists(self) -> Mapping[str, tuple[str, ...]]:
        """Return the class names of each domain, in the order of their ids."""
        return STREETS_CLASSES

    def made(self, domain: str, part: str, domains: Sequence[str]) -> Arrays:
        """Return x uint8 (N, height, width, 3); y uint8 (N, height, width): ids in the union of the classes, or 255."""
        names, union, (height, width) = STREETS_CLASSES[domain], _union(domains), self.size
        count = self.train if part == "train" else self.test
        to_union = np.full(256, IGNORED, dtype=np.uint8)
        to_union[: len(names)] = [union.index(name) for name in names]
        x, y = make_streets(domain, count, (height, width), self.seed, part)
        return {"x": x, "y": to_union[y], "ids": numbered(f"{domain}/{part}/", np.arange(count), 5)}

    def read(self, spec: DatasetSpec) -> Arrays:
        """Return the samples, and the classes of all domains that are used."""
        return super().read(spec) | {"classes": np.array(_union(spec.using or self.domains))}


def _union(domains: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name for domain in domains for name in STREETS_CLASSES[domain]))
