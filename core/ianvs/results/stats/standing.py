"""Ranks of methods with intervals and tiers, what would separate two methods, and the Pareto front."""

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

_MOST = 1_000  # maximum number of seeds that are suggested
_POWER = 0.84  # standard errors: the 80 % quantile of the normal distribution
_OUTLIER = 10.0
_UNSTEADY, _UNSTEADY_ALONE = 0.1, 0.25  # relative to the largest score


@dataclass(frozen=True)
class RankInterval:
    """The ranks that a method may have.

    Attributes:
        low: The best, counted from 1.
        high: The worst.
        tier: "A" is the best. No two methods of one tier are separated. None for a method that shares no two seeds with
            any other.
    """

    low: int
    high: int
    tier: str | None


@dataclass(frozen=True)
class Standings:
    """The ranks of all methods.

    Attributes:
        rows: [i] of method i.
        pairs: The comparisons that they are derived from.
    """

    rows: tuple[RankInterval, ...]
    pairs: Pairs


def standings(scores: Array, parts: Sequence[Array] = (), *, fixed_test_set: bool = False) -> Standings:
    """Return the ranks of m methods, with the arguments of compare_all.

    The interval of a rank extends from 1 + the number of methods that are certainly better to m - the number that are
    certainly worse. All true ranks lie in their intervals at once with a probability of 95 % (Mogstad, Romano, Shaikh &
    Wilhelm 2024, Review of Economic Studies 91).
    """
    pairs = compare_all(scores, parts, fixed_test_set=fixed_test_set)
    m = pairs.methods
    ahead = np.where(pairs.difference > 0, pairs.first, pairs.second)[pairs.apart]
    behind = np.where(pairs.difference > 0, pairs.second, pairs.first)[pairs.apart]
    low, high = 1 + np.bincount(behind, minlength=m), m - np.bincount(ahead, minlength=m)
    tiers = _tiers(scores, pairs)
    return Standings(tuple(RankInterval(int(low[i]), int(high[i]), tiers.get(i)) for i in range(m)), pairs)


def _tiers(scores: Array, pairs: Pairs) -> dict[int, str]:
    """Return tiers by method.

    From the best down, a new tier begins where a method is separated from any of the present one.
    """
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
    """Return the fewest seeds that would separate two methods with 80 % chance, if everything else stays the same.

    None: more than anybody would run, or no number would do, since the variance over test samples is too large (see
    samples_to_separate).

    Args:
        difference: The difference of their means.
        spread: Variance over seeds, as in Pairs.
        samples: Variance over test samples, as in Pairs.
        methods: Number of methods.
        groups: Groups of test samples.
        family: Which pairs are compared.
    """
    n = np.arange(2, _MOST + 1)
    c1 = critical_value("seeds", methods, n, family)
    of_samples = critical_value("samples", methods, groups, family) ** 2 * samples if samples else 0.0
    reach = np.sqrt(c1**2 * spread / n + of_samples) + _POWER * np.sqrt(spread / n + samples)
    enough = (reach > 0) & (reach <= abs(difference))
    return int(n[np.argmax(enough)]) if enough.any() else None


def samples_to_separate(difference: float, samples: float, methods: int, groups: int, family: Family = "all") -> float:
    """Return how many times as many test samples would be needed, where `samples` alone hides a difference."""
    return float(2 * critical_value("samples", methods, groups, family) ** 2 * samples / difference**2)


def unseen_failure(seeds: int, level: float = 0.95) -> float:
    """Return the upper confidence limit of the probability of a failure that did not occur in this many seeds."""
    return float(1 - (1 - level) ** (1 / seeds))


def expected_largest(n: int) -> float:
    """Return the expected largest of n standard normal draws (Blom 1958).

    The best of n equal configurations looks better by this many standard errors.
    """
    from scipy.special import ndtri

    return float(ndtri((n - 0.375) / (n + 0.25)))


def outlier_seeds(scores: Array) -> dict[int, list[int]]:
    """Return for each method the seeds with outlying scores. These are no draws of a normal distribution.

    A score is an outlier if its distance from the median of the method is more than ten times the median spread of the
    other methods, and ten times the median distance of the method's other scores. The second condition protects a
    method among much steadier ones.

    Args:
        scores: (seeds, m).
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
    """Return the positions of methods whose training succeeds with some seeds and fails with others.

    A spread counts if it is more than a tenth of the largest score of the exam and ten times the median spread of the
    other methods; without others, if it is more than a quarter of the score.

    Args:
        means: (m,) mean over seeds of each method's score; nan: unknown.
        spreads: (m,) sample standard deviation over seeds; nan: unknown.
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
    """Return the positions of rows that no marked row dominates, from the best score down.

    i dominates j if its score is no worse, its costs are no worse beyond the tolerance, and it is better in one by more
    than that. Only rows of the result dominate others, since dominance with a tolerance can be circular.

    Args:
        scores: (m,), more is better.
        better: (m, m), whether the score of row i is better than that of row j by more than chance explains.
        costs: (m, k), less is better.
        tolerance: For each cost, the share within which two are the same.
    """
    room = 1 + np.array(tolerance or [0.0] * costs.shape[1])
    front, count = np.empty(len(scores), dtype=np.intp), 0
    spent, allowed = np.empty((2, *costs.shape))  # rows of the result so far
    for j in np.lexsort([*costs.T[::-1], -scores]).tolist():
        no_worse = (spent[:count] <= costs[j] * room).all(axis=1)
        able = front[:count][no_worse]
        if not (better[able, j] | (allowed[:count][no_worse] < costs[j]).any(axis=1)).any():
            front[count], spent[count], allowed[count] = j, costs[j], costs[j] * room
            count += 1
    return sorted(front[:count].tolist())
