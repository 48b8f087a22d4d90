"""Where methods stand: ranks with intervals, tiers, chance of being best; who is not beaten in everything at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, product
from math import sqrt
from string import ascii_uppercase

import numpy as np
from numpy.typing import NDArray

from ianvs.results.stats.bootstrap import DRAWS, Array, resampled
from ianvs.results.stats.pairs import ENOUGH_FOR_BOOTSTRAP, Pairs, Source, compare_all

_SEED = 20_240_902
_MOST = 10_000  # seeds that anybody would run


@dataclass(frozen=True)
class RankInterval:
    """low, high: the ranks that a method may have, counted from 1. tier: "A" is the best, and no two of one tier are
    separated. p_best: how probable it is that the method is the best.
    """

    low: int
    high: int
    tier: str
    p_best: float


@dataclass(frozen=True)
class Standings:
    """[i] of method i. pairs: what they come from, a higher estimate being better."""

    rows: tuple[RankInterval, ...]
    pairs: Pairs


def standings(estimates: Array, sources: Sequence[Source], level: float = 0.95) -> Standings:
    """Of m methods with `estimates`, (m,), more is better; `sources` as in compare_all.

    The interval of a rank is from 1 + the number of methods that are surely above to m - the number that are surely
    below: all true ranks lie in their intervals at once with probability `level` (Mogstad, Romano, Shaikh & Wilhelm
    2024, Review of Economic Studies 91).
    """
    pairs = compare_all(estimates, sources, level)
    above = pairs.separated & (estimates[:, None] > estimates[None, :])
    low, high = 1 + above.sum(axis=0), len(estimates) - above.sum(axis=1)
    tiers = _tiers(estimates, pairs.separated)
    best = _chance_of_best(estimates, sources)
    rows = (RankInterval(int(low[i]), int(high[i]), tiers[i], float(best[i])) for i in range(len(estimates)))
    return Standings(tuple(rows), pairs)


def seeds_to_separate(difference: float, std: float, pairs: int, floor: float = 0.0, level: float = 0.95) -> int | None:
    """About how many seeds would separate two methods in Holm's first step over so many `pairs`.

    difference, std: of their paired differences. floor: variance that no seed takes away, that of the test samples.
    None: more than anybody would run.
    """
    from scipy.special import stdtrit

    n = np.arange(2, _MOST + 1)
    error = np.sqrt(std**2 / n + floor)
    enough = (error > 0) & (stdtrit(n - 1.0, 1 - (1 - level) / (2 * pairs)) * error <= abs(difference))
    return int(n[np.argmax(enough)]) if enough.any() else None


def _tiers(estimates: Array, separated: NDArray[np.bool_]) -> dict[int, str]:
    """By method. From the best down, a new tier begins where a method is separated from any of the present one."""
    found: dict[int, str] = {}
    members: list[int] = []
    names = ("".join(letters) for size in count(1) for letters in product(ascii_uppercase, repeat=size))  # Z, AA, AB
    tier = next(names)
    for i in np.argsort(-estimates, kind="stable").tolist():
        if separated[i, members].any():
            tier, members = next(names), []
        members.append(i)
        found[i] = tier
    return found


def _chance_of_best(estimates: Array, sources: Sequence[Source]) -> Array:
    """(m,) shares of DRAWS possible worlds in which a method has the highest score; equals share a world.

    With few seeds a world adds to the estimates, for each source, a normal deviation with the covariance of its mean
    over a chi of its degrees of freedom (multivariate t); with many, that of a resample.
    """
    generator = np.random.default_rng(_SEED)
    worlds = np.tile(estimates, (DRAWS, 1))
    few = sum(len(source.draws) for source in sources if source.name == "seeds") < ENOUGH_FOR_BOOTSTRAP
    for source in sources:
        n = len(source.draws)
        centred = source.draws - source.draws.mean(axis=0)
        if few:
            scale = np.sqrt((n - 1) / generator.chisquare(n - 1, size=(DRAWS, 1)))
            worlds += scale * generator.standard_normal((DRAWS, n)) @ centred / sqrt(n * (n - 1))
        else:
            worlds += sqrt(n / (n - 1)) * resampled(centred, DRAWS, generator) @ centred
    best = worlds >= worlds.max(axis=1, keepdims=True) - 1e-12
    return np.asarray((best / best.sum(axis=1, keepdims=True)).mean(axis=0))


def pareto_front(points: Sequence[Sequence[float]]) -> list[int]:
    """Positions of the (m, k) points, less being better, that no other matches in all and beats in one."""
    if not len(points):
        return []
    found = np.asarray(points, dtype=float)
    no_worse = (found[:, None, :] <= found[None, :, :]).all(axis=2)  # [i, j]: i is nowhere worse than j
    better = (found[:, None, :] < found[None, :, :]).any(axis=2)
    return np.flatnonzero(~(no_worse & better).any(axis=0)).tolist()
