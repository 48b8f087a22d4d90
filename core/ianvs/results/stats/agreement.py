"""Compares our mean over seeds with a published mean."""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from ianvs.results.stats.pairs import Difference, by_t
from ianvs.results.stats.summary import Summary

Verdict = Literal["equal", "differs", "can't tell"]


@dataclass(frozen=True)
class Agreement:
    """Our mean compared with a published one.

    Attributes:
        difference: Ours minus theirs.
        low: Lower end of the interval. If something of theirs is missing, it covers our seeds alone.
        high: Upper end.
        verdict: None if something is missing.
        missing: What is missing.
        seeds: For "can't tell", how many of our seeds would decide; None: no number would, theirs are too few.
    """

    difference: float
    low: float | None
    high: float | None
    verdict: Verdict | None
    missing: str = ""
    seeds: int | None = None


def compare(ours: Summary, theirs: Summary, margin: float, level: float = 0.95) -> Agreement:
    """Return whether two means are equal up to a margin.

    The interval of the difference is Welch's (1947), with both spreads. If it lies inside the margin, the verdict is
    "equal". Otherwise, if it excludes 0, the verdict is "differs", else "can't tell". A reader can check the verdict,
    since one interval decides. At level .95 "equal" is two one-sided tests at .025 each (Schuirmann 1987), stricter
    than the usual .05. "equal" also holds where the interval excludes 0: the difference is known to be smaller than the
    margin.

    Args:
        ours: Our mean.
        theirs: The published mean; n is 0 if unknown.
        margin: In the unit of the means, above 0.
        level: Of the interval.

    Raises:
        ValueError: A mean is missing.
    """
    delta = unpaired_difference(ours, theirs, level)
    if delta is None:
        raise ValueError("both sides need a mean")
    if delta.low is None or delta.high is None:
        if ours.std is None:
            return Agreement(delta.mean, None, None, None, _missing(ours, theirs))
        from scipy.special import stdtrit  # slow to import

        half = float(stdtrit(ours.n - 1.0, 0.5 + level / 2)) * ours.std / sqrt(ours.n)
        return Agreement(delta.mean, delta.mean - half, delta.mean + half, None, _missing(ours, theirs))
    if -margin < delta.low and delta.high < margin:
        return Agreement(delta.mean, delta.low, delta.high, "equal")
    if delta.low > 0 or delta.high < 0:
        return Agreement(delta.mean, delta.low, delta.high, "differs")
    half = max(margin - abs(delta.mean), abs(delta.mean))
    return Agreement(delta.mean, delta.low, delta.high, "can't tell", seeds=_seeds_for(half, ours, theirs, level))


def _missing(ours: Summary, theirs: Summary) -> str:
    if theirs.std is None:
        return "no spread published"
    if theirs.n < 2:
        return "number of runs not published"
    return "one seed has no spread" if ours.std is None else "no spread on either side"


def _seeds_for(half: float, ours: Summary, theirs: Summary, level: float) -> int | None:
    """Return the fewest seeds whose interval would be narrower than +- `half` with the present means and spreads.

    They are tried, since more seeds may widen it: its degrees of freedom fall to those of theirs. Up to 200 each number
    is, from there to 10^9 steps are of half a percent.
    """
    from scipy.special import stdtrit

    assert ours.std is not None
    assert theirs.std is not None
    counts = np.unique(np.geomspace(2, 1e9, 4_000).round())
    counts = counts[counts > ours.n]
    of_ours, of_theirs = ours.std**2 / counts, theirs.std**2 / theirs.n
    variances = of_ours + of_theirs
    freedom = variances**2 / (of_ours**2 / (counts - 1) + of_theirs**2 / (theirs.n - 1))
    enough = stdtrit(freedom, 0.5 + level / 2) * np.sqrt(variances) < half
    return int(counts[enough][0]) if enough.any() else None


def unpaired_difference(after: Summary, before: Summary, level: float = 0.95) -> Difference | None:
    """Return `after` minus `before` by Welch's t (Welch 1947), as scipy.stats.ttest_ind(equal_var=False) does.

    None if a mean is missing. Without a spread on both sides there is no interval, and p is 1.
    """
    if after.mean is None or before.mean is None:
        return None
    mean = after.mean - before.mean
    parts = [(side.std**2 / side.n, side.n) for side in (after, before) if side.std is not None and side.n > 1]
    variance = sum(part for part, _ in parts)
    if len(parts) < 2 or not variance > 0:
        return Difference(mean, None, None, separated=False, p=1.0)
    df = variance**2 / sum(part**2 / (n - 1) for part, n in parts)
    return by_t(mean, sqrt(variance), df, level)
