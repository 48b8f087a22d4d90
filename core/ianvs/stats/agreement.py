"""Whether our mean over seeds agrees with a published one."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

__all__ = ["SINGLE_RUN", "Agreement", "compare"]

SINGLE_RUN = 2.0
"""How many published standard deviations may lie between, where nobody says how many runs they are of."""


@dataclass(frozen=True)
class Agreement:
    """Ours against theirs. agrees: None where nothing is known of their spread."""

    difference: float  # ours - theirs
    in_stds: float | None  # the same in published standard deviations
    agrees: bool | None
    runs_known: bool  # else `agrees` is by SINGLE_RUN


def compare(ours: float, seeds: int, theirs: float, std: float | None, n: int | None) -> Agreement:
    """`ours`, a mean over `seeds` runs, against the mean `theirs` of `n` runs with sample standard deviation `std` > 0.

    They agree where the mean of `seeds` more runs of theirs would lie 19 times of 20, by the prediction interval for
    the mean of further samples of a normal distribution whose mean and spread are estimated from n:
    |ours - theirs| <= t(.975, n - 1) * std * sqrt(1 / n + 1 / seeds).
    """
    difference = ours - theirs
    if std is None:
        return Agreement(difference, None, None, runs_known=False)
    allowed = SINGLE_RUN * std
    if n is not None:
        from scipy.stats import t  # takes a second to import

        allowed = float(t.ppf(0.975, n - 1)) * std * sqrt(1 / n + 1 / seeds)
    return Agreement(difference, difference / std, abs(difference) <= allowed, runs_known=n is not None)
