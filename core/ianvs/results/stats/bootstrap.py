"""The bootstrap: resampled means, in the units of their own standard error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DRAWS = 10_000
_SEED = 20_240_901  # the same table twice is the same table
_AT_ONCE = 4_000_000  # numbers of one kind in memory


def stepdown(sources: Sequence[Array], index: NDArray[np.int64], t: Array) -> Array:
    """(P,) adjusted p values of the pairs `index`, (P, 2), whose statistics are `t`, (P,), all >= 0.

    sources: (n, m) draws each, resampled one by one, the same draws for all methods. Of each resample and pair, the
    deviation of the sum of means is divided by the resample's own standard error; the k-th largest t is held against
    the largest of these among the pairs that are not larger than it (Romano & Wolf 2005, algorithm 4.2).
    """
    order = np.argsort(t, kind="stable")  # ascending: the largest over what is left is a running maximum
    exceeded = np.zeros(len(t))
    done = 0
    for deviation, variance in _batches(sources, index[order]):
        with np.errstate(invalid="ignore", divide="ignore"):
            seen = np.where(variance > 0, np.abs(deviation) / np.sqrt(variance), 0.0)
        exceeded += (np.maximum.accumulate(seen, axis=1) >= t[order]).sum(axis=0)
        done += len(seen)
    p = np.empty(len(t))
    p[order] = np.maximum.accumulate(((1 + exceeded) / (1 + done))[::-1])[::-1]
    return p


def _batches(sources: Sequence[Array], index: NDArray[np.int64]) -> Iterator[tuple[Array, Array]]:
    """(deviations, variances), (B, P) each, of DRAWS resamples, some at a time."""
    generator = np.random.default_rng(_SEED)
    paired = []
    for source in sources:
        pairs = source[:, index[:, 0]] - source[:, index[:, 1]]
        paired.append(pairs - pairs.mean(axis=0))
    at_once = max(_AT_ONCE // max(len(index), 1), 1)
    for begin in range(0, DRAWS, at_once):
        size = min(at_once, DRAWS - begin)
        deviation = np.zeros((size, len(index)))
        variance = np.zeros((size, len(index)))
        for pairs in paired:
            n = len(pairs)
            weights = generator.multinomial(n, np.full(n, 1 / n), size=size) / n
            means = weights @ pairs
            deviation += means
            variance += np.maximum(weights @ pairs**2 - means**2, 0) / (len(pairs) - 1)
        yield deviation, variance
