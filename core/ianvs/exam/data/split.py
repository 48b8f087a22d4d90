"""Seeded, stratified splitting."""

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ianvs.exam.data.dataset import Positions


def stratified_split(
    labels: NDArray[Any] | None, count: int, share: float, generator: Generator
) -> tuple[Positions, Positions]:
    """Return (kept, taken) positions 0..count-1, both ascending; `taken` are about `share` of them.

    labels: (count,) classes whose shares are preserved to the nearest sample, or None to draw from all alike. Every
    class keeps at least one sample. round(share * count) are taken, fewer if classes are too small.
    """
    groups = [np.arange(count)] if labels is None else [np.flatnonzero(labels == name) for name in np.unique(labels)]
    sizes = np.array([len(group) for group in groups])
    exact = share * sizes
    quota = np.minimum(np.floor(exact).astype(np.int64), sizes - 1)
    # Largest remainders first, so that the total is right too; ties go to the class listed first.
    for i in np.argsort(-(exact - np.floor(exact)), kind="stable"):
        if quota.sum() >= round(share * count):
            break
        quota[i] = min(quota[i] + 1, int(np.ceil(exact[i])), sizes[i] - 1)
    taken = [generator.permutation(group)[:number] for group, number in zip(groups, quota, strict=True)]
    chosen = np.zeros(count, dtype=bool)
    chosen[np.concatenate(taken)] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def stratified_deal(labels: NDArray[Any] | None, count: int, parts: int, generator: Generator) -> list[Positions]:
    """Distribute positions 0..count-1 over `parts`, class by class: sizes and class counts differ by one at most."""
    order = generator.permutation(count)
    if labels is not None:
        order = order[np.argsort(labels[order], kind="stable")]
    return [generator.permutation(order[part::parts]) for part in range(parts)]


def dirichlet_deal(
    labels: NDArray[Any] | None, count: int, parts: int, concentration: float, generator: Generator
) -> list[Positions]:
    """Distribute positions 0..count-1 over `parts` whose shares of each class are drawn from Dir(concentration).

    A small concentration gives each class to few parts, a large one to all alike (Li et al. 2022, arXiv 2102.02079,
    distribution-based label imbalance). labels: (count,) classes; None: all samples have one class. A part that would
    be empty gets a sample of the largest.
    """
    classes = np.zeros(count, np.int64) if labels is None else labels
    hands: list[list[int]] = [[] for _ in range(parts)]
    for name in np.unique(classes):
        group = generator.permutation(np.flatnonzero(classes == name))
        shares = generator.dirichlet(np.full(parts, concentration))
        ends = np.rint(np.cumsum(shares) * len(group)).astype(np.int64)[:-1]
        for hand, dealt in zip(hands, np.split(group, ends), strict=True):
            hand += dealt.tolist()
    for hand in hands:
        largest = max(hands, key=len)
        if not hand and len(largest) > 1:
            hand.append(largest.pop())
    return [generator.permutation(np.array(hand, np.int64)) for hand in hands]
