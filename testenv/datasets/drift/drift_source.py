"""The source `clear_drift`: generated images that drift over ten buckets, a stand-in for CLEAR."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from ianvs.testenv.datasets.array_source import Arrays, GeneratedSource
from ianvs.testenv.datasets.drift import BUCKETS, DRIFT_CLASSES, make_drift
from ianvs.testenv.datasets.drift.make_drift import VERSION, flickr_id


class ClearDrift(GeneratedSource):
    """train, test: images of each class in each bucket. size: height and width in pixels."""

    summary: ClassVar[str] = (
        "generated images of 8 classes that drift over 10 buckets, a stand-in for CLEAR; made in seconds"
    )
    generator: ClassVar[int] = VERSION
    classes: ClassVar[tuple[str, ...] | None] = DRIFT_CLASSES
    domains: ClassVar[tuple[str, ...]] = tuple(str(bucket) for bucket in range(1, BUCKETS + 1))

    train: int = Field(30, ge=1)
    test: int = Field(15, ge=1)
    size: int = Field(32, ge=8)
    seed: int = Field(0, ge=0)

    def made(self, domain: str, part: str, domains: Sequence[str]) -> Arrays:
        """Return x uint8 (N, size, size, 3), y (N,) int64 of a domain, which is a bucket."""
        bucket, count = int(domain), self.train if part == "train" else self.test
        x, y = make_drift(bucket, count, self.size, self.seed, part)
        names = [
            f"{bucket}/{name}/{flickr_id(bucket, index, part, number)}"
            for index, name in enumerate(DRIFT_CLASSES)
            for number in range(count)
        ]
        return {"x": x, "y": y, "ids": np.array(names)}
