"""Where methods stand: ranks with intervals and tiers; what would separate them; who is not beaten in everything."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, product
from string import ascii_uppercase

import numpy as np
from numpy.typing import NDArray

from ianvs.results.stats.critical_values import Family, critical_value
from ianvs.results.stats.pairs import Pairs, compare_all
from ianvs.results.stats.summary import Array

_MOST = 1_000  # seeds that anybody would run
_POWER = 0.84  # standard errors: the 80 % quantile of the normal distribution
_OUTLIER = 10.0
_UNSTEADY, _UNSTEADY_ALONE = 0.1, 0.25  # of the largest score


@dataclass(frozen=True)
class RankInterval:
    """low, high: the ranks that a method may have, counted from 1. tier: "A" is the best, and no two of one tier are
    separated; None for a method that shares no two seeds with any other.
    """

    low: int
    high: int
    tier: str | None


@dataclass(frozen=True)
class Standings:
    """[i] of method i. pairs: what they come from."""

    rows: tuple[RankInterval, ...]
    pairs: Pairs


def standings(scores: Array, parts: Sequence[Array] = (), *, fixed_test_set: bool = False) -> Standings:
    """Of m methods; what it takes is as in compare_all.

    The interval of a rank is from 1 + the number of methods that are surely above to m - the number that are surely
    below: all true ranks lie in their intervals at once with a probability of 95 % (Mogstad, Romano, Shaikh & Wilhelm
    2024, Review of Economic Studies 91).
    """
    pairs = compare_all(scores, parts, fixed_test_set=fixed_test_set)
    m = pairs.methods
    ahead = np.where(pairs.difference > 0, pairs.first, pairs.second)[pairs.apart]
    behind = np.where(pairs.difference > 0, pairs.second, pairs.first)[pairs.apart]
    low, high = 1 + np.bincount(behind, minlength=m), m - np.bincount(ahead, minlength=m)
    tiers = _tiers(scores, pairs)
    return Standings(tuple(RankInterval(int(low[i]), int(high[i]), tiers.get(i)) for i in range(m)), pairs)


def _tiers(scores: Array, pairs: Pairs) -> dict[int, str]:
    """By method. From the best down, a new tier begins where a method is separated from any of the present one."""
    judged = {*pairs.first[pairs.seeds > 1].tolist(), *pairs.second[pairs.seeds > 1].tolist()}
    apart = defaultdict[int, set[int]](set)
    for method, other in zip(pairs.first[pairs.apart].tolist(), pairs.second[pairs.apart].tolist(), strict=True):
        apart[method].add(other)
        apart[other].add(method)
    tiers: dict[int, str] = {}
    separated: set[int] = set()  # from any of the present tier
    names = ("".join(letters) for size in count(1) for letters in product(ascii_uppercase, repeat=size))  # Z, AA, AB
    tier = next(names)
    for i in sorted(judged, key=lambda i: -float(np.nanmean(scores[:, i]))):
        if i in separated:
            tier, separated = next(names), set()
        separated |= apart[i]
        tiers[i] = tier
    return tiers


def seeds_to_separate(
    difference: float, spread: float, samples: float, methods: int, groups: int, family: Family = "all"
) -> int | None:
    """The fewest seeds with which two methods would be separated with 80 % chance, were all to stay as it is.

    spread, samples: variances, as in Pairs. None: more than anybody would run, or no number would do: that of the test
    samples is too large, see samples_to_separate.
    """
    n = np.arange(2, _MOST + 1)
    c1 = critical_value("seeds", methods, n, family)
    of_samples = critical_value("samples", methods, groups, family) ** 2 * samples if samples else 0.0
    reach = np.sqrt(c1**2 * spread / n + of_samples) + _POWER * np.sqrt(spread / n + samples)
    enough = (reach > 0) & (reach <= abs(difference))
    return int(n[np.argmax(enough)]) if enough.any() else None


def samples_to_separate(difference: float, samples: float, methods: int, groups: int, family: Family = "all") -> float:
    """How many times as many test samples would leave room for the seeds, where `samples` alone hides a difference."""
    return float(2 * critical_value("samples", methods, groups, family) ** 2 * samples / difference**2)


def unseen_failure(seeds: int, level: float = 0.95) -> float:
    """How probable a failure may be that none of so many seeds has shown."""
    return float(1 - (1 - level) ** (1 / seeds))


def expected_largest(n: int) -> float:
    """Of n standard normal draws (Blom 1958): so many errors the best of n equal configurations looks better by."""
    from scipy.special import ndtri

    return float(ndtri((n - 0.375) / (n + 0.25)))


def outlier_seeds(scores: Array) -> dict[int, list[int]]:
    """By method, the seeds of (seeds, m) `scores` whose score is further from the median of the method than ten times
    the median spread of the other methods, and ten times the median distance of its own other scores (so that a method
    among much steadier ones is not taken for wild): such scores are no draws of a normal distribution.
    """
    away = np.abs(scores - np.nanmedian(scores, axis=0))
    several = (~np.isnan(scores)).sum(axis=0) > 1
    spread = np.array([np.nanstd(scores[:, i], ddof=1) if several[i] else np.nan for i in range(scores.shape[1])])
    seeds: dict[int, list[int]] = {}
    for i in np.flatnonzero(several).tolist():
        others = np.delete(spread, i)
        if np.isnan(others).all():
            continue
        for seed in np.flatnonzero(away[:, i] > _OUTLIER * np.nanmedian(others)).tolist():
            if away[seed, i] > _OUTLIER * np.nanmedian(np.delete(away[:, i], seed)):
                seeds.setdefault(i, []).append(seed)
    return seeds


def unsteady_methods(means: Array, spreads: Array) -> list[int]:
    """Positions of the m methods whose training goes well with some seeds and badly with others.

    means, spreads: (m,) mean and sample standard deviation over seeds of each method's score; nan where not known.
    A spread counts if it is more than a tenth of the largest score of the exam, and ten times the median spread of the
    other methods; without others, if it is more than a quarter of the score.
    """
    size, methods = float(np.nanmax(np.abs(means), initial=0.0)), []
    for i, spread in enumerate(spreads.tolist()):
        others = np.delete(spreads, i)
        others = others[~np.isnan(others)]
        limit = max(_UNSTEADY * size, _OUTLIER * float(np.median(others))) if len(others) else _UNSTEADY_ALONE * size
        if spread > limit:
            methods.append(i)
    return methods


def pareto_front(scores: Array, better: NDArray[np.bool_], costs: Array, tolerance: Sequence[float] = ()) -> list[int]:
    """Positions of the m rows that no marked one removes, from the best score down.

    scores: (m,), more is better. better: (m, m), whether the score of row i is better than that of row j by more than
    chance explains. costs: (m, k), less is better; tolerance: of each, the share within which two are the same.
    i removes j if its score is no worse, its costs are no worse beyond the tolerance, and it is better in one by more
    than that. Only rows that are marked remove others: tolerant dominance can go round in circles.
    """
    room = 1 + np.array(tolerance or [0.0] * costs.shape[1])
    front, count = np.empty(len(scores), dtype=np.intp), 0
    spent, allowed = np.empty((2, *costs.shape))  # of those that are kept
    for j in np.lexsort([*costs.T[::-1], -scores]).tolist():
        no_worse = (spent[:count] <= costs[j] * room).all(axis=1)
        able = front[:count][no_worse]
        if not (better[able, j] | (allowed[:count][no_worse] < costs[j]).any(axis=1)).any():
            front[count], spent[count], allowed[count] = j, costs[j], costs[j] * room
            count += 1
    return sorted(front[:count].tolist())
