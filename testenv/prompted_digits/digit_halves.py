"""Handwritten digits in two halves: 6 to 9 to train a transformer on, 0 to 5 for an exam on what is new to it."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pictures = tuple[NDArray[np.uint8], NDArray[np.int64]]


def low_digits() -> dict[str, Any]:
    """The digits 0 to 5 of scikit-learn, a quarter of them for testing; uint8 (N, 8, 8)."""
    x, y = _digits(range(6))
    cut = len(y) // 4
    return {"train": (x[cut:], y[cut:]), "test": (x[:cut], y[:cut]), "classes": list("012345")}


def high_digits() -> Pictures:
    """(x (N, 8, 8, 1), y (N,)): 6 to 9, each in its four quarter turns as classes of their own, 16 in all."""
    x, y = _digits(range(6, 10))
    turned = [np.rot90(x, quarter, (1, 2)) for quarter in range(4)]
    return np.concatenate(turned)[..., None], np.concatenate([4 * (y - 6) + quarter for quarter in range(4)])


def _digits(wanted: Iterable[int]) -> Pictures:
    from sklearn.datasets import load_digits

    source = load_digits()
    chosen = np.isin(source.target, list(wanted))
    order = np.random.default_rng(0).permutation(int(chosen.sum()))
    x = (source.images[chosen] * 255 / 16).astype(np.uint8)
    return x[order], source.target[chosen][order].astype(np.int64)
