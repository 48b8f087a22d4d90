"""Methods over several exams: aggregates, and tests if there are enough exams."""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ianvs.results.stats.pairs import DRAWS
from ianvs.results.stats.summary import Array

ENOUGH_EXAMS = 4
"""The number of exams from which there are an interquartile mean and a bootstrap over exams."""
_SEED = 20_240_904


@dataclass(frozen=True)
class Aggregate:
    """One method over E exams, with 95 % bootstrap intervals over exams.

    `iqm` and the intervals are None below ENOUGH_EXAMS.

    Attributes:
        mean_rank: 1 is the best. Equal methods share their mean rank.
        win_rate: Wins and half of the ties, as a share of all comparisons with other methods.
        mean: Mean of the scores.
        iqm: Interquartile mean of scores that are normalised to 0 (the worst) and 1 (the best method) in each exam.
        mean_rank_interval: (low, high).
        mean_interval: (low, high).
        iqm_interval: (low, high).
    """

    mean_rank: float
    win_rate: float
    mean: float
    iqm: float | None = None
    mean_rank_interval: tuple[float, float] | None = None
    mean_interval: tuple[float, float] | None = None
    iqm_interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class OverExams:
    """All methods over the exams.

    Attributes:
        rows: [i] of method i; None if it lacks an exam.
        exams: Number of exams.
        friedman: p of the hypothesis that all methods are equal; None: too few exams.
        pairs: (m, m) p of Wilcoxon's signed-rank test with Holm's correction, for methods that have all exams; None:
            too few exams.
    """

    rows: tuple[Aggregate | None, ...]
    exams: int
    friedman: float | None
    pairs: Array | None


def over_exams(scores: Array) -> OverExams:
    """Aggregate and test. scores: (E, m) means over seeds, more is better; nan where a method was not examined."""
    exams, m = scores.shape
    whole = np.flatnonzero(~np.isnan(scores).any(axis=0))
    rows: list[Aggregate | None] = [None] * m
    if len(whole) < 2 or exams < 2:
        return OverExams(tuple(rows), exams, None, None)
    full = scores[:, whole]
    draws = np.random.default_rng(_SEED).integers(exams, size=(DRAWS, exams))
    beaten = _wins(full)
    ranks, wins = len(whole) - beaten, beaten / (len(whole) - 1)
    width = np.ptp(full, axis=1, keepdims=True)
    unit = np.divide(full - full.min(axis=1, keepdims=True), width, out=np.full_like(full, 0.5), where=width > 0)
    for at, i in enumerate(whole.tolist()):
        rows[i] = row = Aggregate(float(ranks[:, at].mean()), float(wins[:, at].mean()), float(full[:, at].mean()))
        if exams >= ENOUGH_EXAMS:
            rows[i] = replace(
                row,
                iqm=float(_iqm(unit[:, at])),
                mean_rank_interval=_interval(ranks[draws, at].mean(axis=1)),
                mean_interval=_interval(full[draws, at].mean(axis=1)),
                iqm_interval=_interval(_iqm(unit[draws, at])),
            )
    if exams < exams_needed(len(whole)):
        return OverExams(tuple(rows), exams, None, None)
    return OverExams(tuple(rows), exams, _friedman(full), _wilcoxon(scores, whole))


def exams_needed(methods: int) -> int:
    """Return how many exams the pairwise tests of this many methods need to be significant at all.

    The smallest two-sided p of Wilcoxon's test on n exams is 2^(1 - n). Holm's first step requires .05 over the number
    of pairs.
    """
    pairs = methods * (methods - 1) // 2
    return next(n for n in range(1, 64) if 2.0 ** (1 - n) <= 0.05 / pairs)


def holm(p: Array) -> Array:
    """Return (P,) adjusted p values (Holm 1979). If those <= alpha are rejected, any error has chance alpha at most."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def _wins(scores: Array) -> Array:
    """Return (E, m), the number of other methods that each method beats in each exam; a tie counts half."""
    ahead = (scores[:, :, None] > scores[:, None, :]).sum(axis=2)
    level = (scores[:, :, None] == scores[:, None, :]).sum(axis=2) - 1
    return np.asarray(ahead + level / 2)


def _iqm(values: Array) -> Array:
    """Return the interquartile mean over the last axis, (..., E) -> (...)."""
    n = values.shape[-1]
    edges = np.arange(n + 1)
    weights = np.clip(np.minimum(edges[1:], 0.75 * n) - np.maximum(edges[:-1], 0.25 * n), 0, None)
    return np.asarray(np.sort(values, axis=-1) @ weights / weights.sum())


def _interval(values: Array) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _friedman(scores: Array) -> float | None:
    if scores.shape[1] < 3 or (np.ptp(scores, axis=1) == 0).all():
        return None
    from scipy.stats import friedmanchisquare

    return float(friedmanchisquare(*scores.T).pvalue)


def _wilcoxon(scores: Array, whole: NDArray[np.int64]) -> Array:
    from scipy.stats import wilcoxon

    m = scores.shape[1]
    index = list(combinations(whole.tolist(), 2))
    p = [
        1.0 if np.array_equal(scores[:, i], scores[:, j]) else float(wilcoxon(scores[:, i], scores[:, j]).pvalue)
        for i, j in index
    ]
    p_values = np.full((m, m), np.nan)
    for (i, j), adjusted in zip(index, holm(np.array(p)).tolist(), strict=True):
        p_values[i, j] = p_values[j, i] = adjusted
    return p_values
