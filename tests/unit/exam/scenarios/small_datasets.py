"""Datasets in memory, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from ianvs.exam.data.dataset import Dataset, Samples


def dataset_of(
    train_y: Any, test_y: Any, *, classes: int | None = None, shape: tuple[int, ...] = (3,), domains: Any = None
) -> Dataset:
    """A classification dataset whose sample i has the features i, i, ...; domains: (of train, of test) or None."""
    parts = []
    for part, labels in (("train", train_y), ("test", test_y)):
        y = np.asarray(labels, dtype=np.int64)
        x = np.broadcast_to(np.arange(len(y)).reshape(-1, *([1] * len(shape))), (len(y), *shape))
        own = None if domains is None else np.array(domains[part == "test"], dtype=str)
        dtype = np.uint8 if len(shape) == 3 else np.float32
        parts.append(Samples(x.astype(dtype), y, np.array([f"{part}/{i}" for i in range(len(y))], dtype=str), own))
    count = classes or int(max(parts[0].y.max(), parts[1].y.max())) + 1
    return Dataset("toy", "classification", *parts, tuple(f"c{i}" for i in range(count)), "f" * 64)


def texts() -> Dataset:
    """Four training and two test questions in two domains."""
    train = Samples(_objects("abcd"), _objects("ABCD"), np.array(list("1234")), np.array(["p", "q", "p", "q"]))
    test = Samples(_objects("ef"), _objects("EF"), np.array(list("56")), np.array(["p", "q"]))
    return Dataset("talk", "text", train, test, (), "f" * 64)


def streets() -> Dataset:
    """Six training and three test pictures of 4x5 pixels with label pictures of 3 classes, in two domains."""
    rng = np.random.default_rng(0)
    parts = [
        Samples(
            rng.integers(0, 256, (count, 4, 5, 3), dtype=np.uint8),
            rng.integers(0, 3, (count, 4, 5), dtype=np.uint8),
            np.array([f"{part}/{i}" for i in range(count)]),
            np.array([("day", "dusk")[i % 2] for i in range(count)]),
        )
        for part, count in (("train", 6), ("test", 3))
    ]
    return Dataset("streets", "segmentation", *parts, ("road", "car", "sky"), "f" * 64)


def _objects(values: str) -> np.ndarray:
    return np.array(list(values), dtype=object)
