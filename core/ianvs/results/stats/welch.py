"""Two means of draws that don't belong together, as of other seeds or other exams."""

from __future__ import annotations

from math import sqrt

from ianvs.results.stats.pairs import Difference
from ianvs.results.stats.summary import Summary

__all__ = ["unpaired_difference"]


def unpaired_difference(after: Summary, before: Summary, level: float = 0.95) -> Difference | None:
    """`after` minus `before` by Welch's t (Welch 1947), as scipy.stats.ttest_ind(equal_var=False) has it.

    None where a mean is missing; without a spread on both sides there is no interval, and p is 1.
    """
    if after.mean is None or before.mean is None:
        return None
    mean = after.mean - before.mean
    known = [(one.std**2 / one.n, one.n) for one in (after, before) if one.std is not None and one.n > 1]
    variance = sum(part for part, _ in known)
    if len(known) < 2 or not variance > 0:
        return Difference(mean, None, None, 1.0, separated=False)
    from scipy.special import stdtr, stdtrit

    df = variance**2 / sum(part**2 / (n - 1) for part, n in known)
    half = float(stdtrit(df, 0.5 + level / 2)) * sqrt(variance)
    p = float(2 * stdtr(df, -abs(mean) / sqrt(variance)))
    return Difference(mean, mean - half, mean + half, p, separated=p <= 1 - level)
