"""Bars around means that overlap exactly where two methods are not apart."""

from __future__ import annotations

import numpy as np

from ianvs.results.stats.bootstrap import Array
from ianvs.results.stats.pairs import Pairs

_MOST = 20  # methods: of more a picture shows no overlap that anybody could see
_GAP = 1e-3  # of the largest difference, between bars that must not touch


def comparison_bars(pairs: Pairs) -> Array | None:
    """(m,) half-lengths h, as near as can be to h_i + h_j = margin; None where none agree with all pairs, or of many.

    A linear program: the least sum of |h_i + h_j - margin| with h_i + h_j below the difference of two methods that are
    apart, and not below that of two that are not.
    """
    from scipy.optimize import linprog  # takes a while to import

    m, count = pairs.methods, len(pairs.first)
    twins = pairs.difference == 0
    if m > _MOST or np.isnan(pairs.margin[~twins]).any():
        return None
    margin, distance = np.nan_to_num(pairs.margin), np.abs(pairs.difference)
    sums = np.zeros((count, m))
    sums[np.arange(count), pairs.first] = sums[np.arange(count), pairs.second] = 1
    sign = np.where(pairs.apart, 1.0, -1.0)
    bound = sign * distance - np.where(pairs.apart, _GAP * distance.max(initial=0.0), 0.0)
    none, slack = np.zeros((count, count)), np.eye(count)
    rows = [[sums, -slack], [-sums, -slack], [sign[:, None] * sums, none]]
    found = linprog(
        np.concatenate([np.zeros(m), np.where(np.isnan(pairs.margin), 0.0, 1.0)]),
        A_ub=np.block(rows),
        b_ub=np.concatenate([margin, -margin, bound]),
    )
    return np.asarray(found.x[:m]) if found.success else None
