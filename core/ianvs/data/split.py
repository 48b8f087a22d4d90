"""Seeded, stratified splitting."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["stratified_deal", "stratified_split"]


def stratified_split(
    labels: NDArray[Any] | None, count: int, share: float, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(kept, taken) positions 0..count-1, both ascending; `taken` are about `share` of them.

    labels: (count,) classes whose shares are kept to the nearest sample, or None to draw from all alike. Every class
    keeps at least one sample. round(share * count) are taken, less where classes are too small to give that many.
    """
    groups = [np.arange(count)] if labels is None else [np.flatnonzero(labels == name) for name in np.unique(labels)]
    sizes = np.array([len(group) for group in groups])
    exact = share * sizes
    quota = np.minimum(np.floor(exact).astype(np.int64), sizes - 1)
    # Largest remainders first, so that the total is right too; ties go to the class that is listed first.
    for i in np.argsort(-(exact - np.floor(exact)), kind="stable"):
        if quota.sum() >= round(share * count):
            break
        quota[i] = min(quota[i] + 1, int(np.ceil(exact[i])), sizes[i] - 1)
    taken = [generator.permutation(group)[:number] for group, number in zip(groups, quota, strict=True)]
    chosen = np.zeros(count, dtype=bool)
    chosen[np.concatenate(taken)] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def stratified_deal(
    labels: NDArray[Any] | None, count: int, parts: int, generator: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Positions 0..count-1 dealt to `parts` hands, class by class: sizes and class counts differ by one at most."""
    order = generator.permutation(count)
    if labels is not None:
        order = order[np.argsort(labels[order], kind="stable")]
    return [generator.permutation(order[part::parts]) for part in range(parts)]
