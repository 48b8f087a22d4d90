"""The source `clear_drift`: generated pictures that drift over ten buckets, a stand-in for CLEAR."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from ianvs.config.spec import DatasetSpec
from ianvs.testenv.datasets.array_source import Arrays, GeneratedSource
from ianvs.testenv.datasets.drift import BUCKETS, DRIFT_CLASSES, make_drift
from ianvs.testenv.datasets.drift.make_drift import VERSION, flickr_id


class ClearDrift(GeneratedSource):
    """train, test: pictures of each class in each bucket. size: height and width in pixels."""

    summary: ClassVar[str] = (
        "generated pictures of 8 classes that drift over 10 buckets, a stand-in for CLEAR; made in seconds"
    )
    generator: ClassVar[int] = VERSION
    domains: ClassVar[tuple[str, ...]] = tuple(str(bucket) for bucket in range(1, BUCKETS + 1))

    train: int = Field(30, ge=1)
    test: int = Field(15, ge=1)
    size: int = Field(32, ge=8)
    seed: int = Field(0, ge=0)

    def read(self, spec: DatasetSpec) -> Arrays:
        """x uint8 (N, size, size, 3), y (N,) int64, bucket by bucket in the order of `using`; a domain is a bucket."""
        buckets = spec.using or self.domains
        arrays: Arrays = {"classes": np.array(DRIFT_CLASSES)}
        for part, count in (("train", self.train), ("test", self.test)):
            made = [make_drift(int(bucket), count, self.size, self.seed, part) for bucket in buckets]
            arrays[f"x_{part}"] = np.concatenate([x for x, _ in made])
            arrays[f"y_{part}"] = np.concatenate([y for _, y in made])
            arrays[f"domains_{part}"] = np.repeat(np.array(buckets), len(DRIFT_CLASSES) * count)
            arrays[f"ids_{part}"] = np.array(
                [
                    f"{bucket}/{name}/{flickr_id(int(bucket), index, part, number)}"
                    for bucket in buckets
                    for index, name in enumerate(DRIFT_CLASSES)
                    for number in range(count)
                ]
            )
        return arrays
