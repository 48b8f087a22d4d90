"""The built-in source `streets`: generated street scenes in the domains CS, SYN and CR, labelled pixel by pixel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ianvs.config.spec import DatasetSpec
from ianvs.data.options import Options

__all__ = ["StreetsOptions", "read_streets", "streets_classes", "streets_version"]


class StreetsOptions(Options):
    """train, test: pictures of each domain. size: height and width in pixels."""

    train: int = Field(120, ge=1)
    test: int = Field(40, ge=1)
    size: list[int] = Field([64, 128], min_length=2, max_length=2)
    seed: int = Field(0, ge=0)


def streets_classes() -> Mapping[str, tuple[str, ...]]:
    """Class names of each domain, in the order of its ids."""
    from ianvs.datasets.streets import STREETS_CLASSES

    return STREETS_CLASSES


def streets_version() -> str:
    """Changes when the same options make other pictures."""
    from ianvs.datasets.streets.make_streets import VERSION

    return str(VERSION)


def read_streets(spec: DatasetSpec, options: StreetsOptions) -> dict[str, NDArray[Any]]:
    """x uint8 (N, height, width, 3); y uint8 (N, height, width): ids in the union of the domains' classes, or 255."""
    from ianvs.datasets.streets import make_streets

    lists = streets_classes()
    domains = spec.using or tuple(lists)
    union = list(dict.fromkeys(name for domain in domains for name in lists[domain]))
    height, width = options.size
    arrays: dict[str, NDArray[Any]] = {"classes": np.array(union, dtype=str)}
    for part, count in (("train", options.train), ("test", options.test)):
        pictures, labels = [], []
        for domain in domains:
            to_union = np.full(256, 255, dtype=np.uint8)
            to_union[: len(lists[domain])] = [union.index(name) for name in lists[domain]]
            x, y = make_streets(domain, count, (height, width), options.seed, part)
            pictures.append(x)
            labels.append(to_union[y])
        arrays[f"x_{part}"], arrays[f"y_{part}"] = np.concatenate(pictures), np.concatenate(labels)
        arrays[f"ids_{part}"] = np.array([f"{domain}/{part}/{i:05d}" for domain in domains for i in range(count)])
        arrays[f"domains_{part}"] = np.repeat(np.array(domains, dtype=str), count)
    return arrays
