"""The built-in source `clear_drift`: generated pictures that drift over ten buckets, a stand-in for CLEAR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ianvs.config.spec import DatasetSpec
from ianvs.data.options import Options

__all__ = ["DriftOptions", "drift_classes", "drift_version", "read_drift"]


class DriftOptions(Options):
    """train, test: pictures of each class in each bucket. size: height and width in pixels."""

    train: int = Field(30, ge=1)
    test: int = Field(15, ge=1)
    size: int = Field(32, ge=8)
    seed: int = Field(0, ge=0)


def drift_classes() -> Mapping[str, tuple[str, ...]]:
    """Class names of each bucket, the same of all."""
    from ianvs.datasets.drift import BUCKETS, DRIFT_CLASSES

    return {str(bucket): DRIFT_CLASSES for bucket in range(1, BUCKETS + 1)}


def drift_version() -> str:
    """Changes when the same options make other pictures."""
    from ianvs.datasets.drift.make_drift import VERSION

    return str(VERSION)


def read_drift(spec: DatasetSpec, options: DriftOptions) -> dict[str, NDArray[Any]]:
    """x uint8 (N, size, size, 3), y (N,) int64, bucket by bucket in the order of `using`; a domain is a bucket."""
    from ianvs.datasets.drift import DRIFT_CLASSES, make_drift
    from ianvs.datasets.drift.make_drift import flickr_id

    buckets = spec.using or tuple(drift_classes())
    arrays: dict[str, NDArray[Any]] = {"classes": np.array(DRIFT_CLASSES)}
    for part, count in (("train", options.train), ("test", options.test)):
        made = [make_drift(int(bucket), count, options.size, options.seed, part) for bucket in buckets]
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
