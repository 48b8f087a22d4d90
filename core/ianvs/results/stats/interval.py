"""The interval of a mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from ianvs.results.stats.bootstrap import studentised_interval
from ianvs.results.stats.pairs import ENOUGH_FOR_BOOTSTRAP

__all__ = ["Interval", "mean_interval"]


@dataclass(frozen=True)
class Interval:
    low: float
    high: float


def mean_interval(values: Sequence[float | None], level: float = 0.95) -> Interval | None:
    """Of the mean of n values: Student's t for n < 20, the studentised bootstrap from there on.

    None: fewer than two values, or one is missing or not finite. Equal values have an interval of no width.
    """
    found = np.array([np.nan if value is None else value for value in values], dtype=float)
    if len(found) < 2 or not np.isfinite(found).all():
        return None
    if np.ptp(found) == 0:
        return Interval(float(found[0]), float(found[0]))
    if len(found) >= ENOUGH_FOR_BOOTSTRAP:
        return Interval(*studentised_interval(np.sort(found), level))
    from scipy.special import stdtrit

    half = float(stdtrit(len(found) - 1.0, 0.5 + level / 2)) * float(found.std(ddof=1)) / sqrt(len(found))
    mean = float(found.mean())
    return Interval(mean - half, mean + half)
