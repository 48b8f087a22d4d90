"""All pairs of methods, compared on the same draws: differences, simultaneous intervals, and bars that show them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ianvs.results.stats.critical_values import MOST_COMPARED, Family, critical_value
from ianvs.results.stats.summary import Array

ENOUGH_FOR_BOOTSTRAP = 20
"""The number of seeds from which the studentised bootstrap has to agree before two methods are separated."""

DRAWS = 10_000  # number of resamples of the bootstrap
_SEED = 20_240_901  # fixed: equal tables give equal results
_AT_ONCE = 4_000_000  # limit of numbers of an array in memory
_ROUNDING = 1e-12  # relative to the largest score
_MOST_BARS = 20  # maximum number of methods: with more, no overlap would be visible
_GAP = 1e-3  # minimum gap between bars that must not touch, relative to the largest difference


@dataclass(frozen=True)
class Difference:
    """The difference of two methods.

    Attributes:
        mean: The difference.
        low: Lower end of the 95 % interval; None: the spread is unknown.
        high: Upper end.
        separated: Whether the interval excludes 0, or the difference is certain.
        p: For two methods alone, by the t distribution of the interval.
    """

    mean: float
    low: float | None
    high: float | None
    separated: bool
    p: float | None = None


@dataclass(frozen=True)
class Pairs:
    """Pairs of m methods, (P,) arrays: all in the order of itertools.combinations, or those with the best.

    Attributes:
        methods: m.
        distinct: How many of the methods are not equal to another one in all draws.
        first: The first method of each pair.
        second: The second one.
        difference: First minus second, over the `seeds` that both have.
        seeds: Number of these seeds.
        spread: Variance of the difference for one seed, shrunk half-way towards that of the other pairs.
        samples: Variance of the difference over test samples; 0 if it is not used.
        margin: Half of the interval. All intervals hold at once with a probability of 95 %. nan: the spread is unknown.
        apart: Which pairs are separated.
        family: Which pairs are compared.
    """

    methods: int
    distinct: int
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    difference: Array
    seeds: NDArray[np.int64]
    spread: Array
    samples: Array
    margin: Array
    apart: NDArray[np.bool_]
    family: Family

    def between(self, i: int, j: int) -> Difference | None:
        """Return method i minus method j, i != j; None for a pair that is not compared."""
        at = self._places.get((min(i, j), max(i, j)))
        if at is None:
            return None
        sign = 1 if self.first[at] == i else -1
        mean, margin = sign * float(self.difference[at]), float(self.margin[at])
        if np.isnan(margin):
            return Difference(mean, None, None, separated=False)
        return Difference(mean, mean - margin, mean + margin, separated=bool(self.apart[at]))

    @cached_property
    def _places(self) -> dict[tuple[int, int], int]:
        ends = zip(self.first.tolist(), self.second.tolist(), strict=True)
        return {(min(i, j), max(i, j)): at for at, (i, j) in enumerate(ends)}


def compare_all(scores: Array, parts: Sequence[Array] = (), *, fixed_test_set: bool = False) -> Pairs:
    """Compare all pairs of m methods.

    The margin of a difference is sqrt(c1² V1 + c2² V2): V1 over seeds, shrunk half-way towards that of all pairs, V2
    over test samples, c1 and c2 the critical values for the number of distinct methods. Methods without any spread
    differ for certain. docs/statistics.md lists the assumptions.

    Args:
        scores: (seeds, m), more is better, nan where a method lacks a seed.
        parts: For each exam over which the scores are averaged, (seeds, m, G): the scores without each of G groups of
            test samples. Then other test samples are a source of chance, too.
        fixed_test_set: Ignore `parts`, for conclusions on this test set alone.
    """
    m = scores.shape[1]
    twin_of = _first_equal(scores, parts)
    distinct = int((twin_of == np.arange(m)).sum())
    family: Family = "all" if distinct <= MOST_COMPARED else "best"
    i, j = np.triu_indices(m, 1) if family == "all" else _with_best(scores)
    paired = scores[:, i] - scores[:, j]
    rounding = _ROUNDING * np.nanmax(np.abs(scores), initial=0.0)
    n, difference, s2 = _moments(paired, rounding)
    own_n, _, variances = _moments(scores, rounding)
    still = (own_n > 1) & (variances == 0)
    certain, twins = still[i] & still[j], twin_of[i] == twin_of[j]
    counted = (twin_of[i] == i) & (twin_of[j] == j) & (s2 > 0) & (n > 1)
    spread = np.where(certain, 0.0, shrink_variances(s2, n, counted) if distinct > 2 else s2)
    samples = np.zeros(len(i))
    margin2 = critical_value("seeds", distinct, n, family) ** 2 * spread / np.maximum(n, 1) if distinct > 1 else samples
    parts = () if fixed_test_set else parts
    if parts and distinct > 1:
        groups = min(part.shape[2] for part in parts)
        samples = np.sum([_group_variance(part, i, j) for part in parts], axis=0) / len(parts) ** 2
        margin2 = margin2 + critical_value("samples", distinct, groups, family) ** 2 * samples
    margin = np.where(twins | (n < 2), np.nan, np.sqrt(margin2))
    apart = (np.abs(difference) > np.maximum(margin, rounding)) & ((margin > 0) | certain)
    total = np.sqrt(s2 / np.maximum(n, 1) + samples)
    t = np.divide(np.abs(difference), total, out=np.zeros(len(i)), where=total > 0)
    apart &= _bootstrap_agrees(scores, parts, np.column_stack([i, j]), t) | certain
    margin = np.where((margin > 0) & ~apart, np.fmax(margin, np.abs(difference)), margin)
    return Pairs(m, distinct, i, j, difference, n, spread, samples, margin, apart, family)


def shrink_variances(s2: Array, n: NDArray[np.int64], counted: NDArray[np.bool_]) -> Array:
    """Shrink variances half-way towards a common one, where that is larger.

    The common one is the mean up to four seeds. From five on it is the median over that of a chi-squared variable,
    which a single outlier does not change.

    Args:
        s2: (..., P) variances.
        n: (P,) seeds of each pair.
        counted: (P,) the pairs whose variances make the common one.
    """
    from scipy.special import gammaincinv  # scipy.stats takes a second to import

    if not counted.any():
        return s2
    several = np.maximum(n, 2) - 1
    of_five = np.median(s2[..., counted], axis=-1, keepdims=True) * several / (2 * gammaincinv(several / 2, 0.5))
    pool = np.where(n >= 5, of_five, s2[..., counted].mean(axis=-1, keepdims=True))
    return np.asarray(np.maximum(s2, (s2 + pool) / 2))


def _first_equal(scores: Array, parts: Sequence[Array]) -> NDArray[np.int64]:
    """Return (m,) the first method with the same scores, of all seeds and groups, up to rounding."""
    scale = np.nanmax(np.abs(scores), initial=0.0) or 1.0
    every = np.concatenate([scores, *(np.moveaxis(part, 1, 2).reshape(-1, scores.shape[1]) for part in parts)])
    first_index: dict[bytes, int] = {}
    columns = np.ascontiguousarray(np.round(every / scale, 12).T + 0.0)  # + 0.0: no -0
    return np.array([first_index.setdefault(column.tobytes(), i) for i, column in enumerate(columns)], dtype=np.int64)


def _with_best(scores: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    means = _moments(scores, 0.0)[1]
    best = int(np.nanargmax(means))
    others = np.delete(np.arange(scores.shape[1]), best)
    return np.full(len(others), best), others


def _moments(draws: Array, rounding: float) -> tuple[NDArray[np.int64], Array, Array]:
    """Return (k,) number, mean (nan of none) and variance (0 of one) of (n, k) draws, ignoring nan."""
    present = ~np.isnan(draws)
    n = present.sum(axis=0)
    mean = np.divide(np.where(present, draws, 0.0).sum(axis=0), n, out=np.full(len(n), np.nan), where=n > 0)
    deviation = np.where(present, draws - mean, 0.0)
    even = np.abs(deviation).max(axis=0, initial=0.0) <= rounding
    return n, mean, np.where(even, 0.0, (deviation**2).sum(axis=0) / np.maximum(n - 1, 1))


def _group_variance(part: Array, i: NDArray[np.int64], j: NDArray[np.int64]) -> Array:
    """Return (P,) variance of the mean of the groups' differences (seeds, m, G), over the seeds that both have."""
    whole = not np.isnan(part).any()
    groups = part.mean(axis=0, keepdims=True) if whole else part
    variances = np.empty(len(i))
    for at in range(0, len(i), 1024):  # in batches: there may be a thousand pairs with a hundred groups
        pair = groups[:, i[at : at + 1024]] - groups[:, j[at : at + 1024]]
        present = ~np.isnan(pair)
        mean = np.where(present, pair, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
        variances[at : at + 1024] = mean.var(axis=1, ddof=1) / mean.shape[1]
    return variances


def _bootstrap_agrees(scores: Array, parts: Sequence[Array], index: NDArray[np.int64], t: Array) -> NDArray[np.bool_]:
    """Return (P,) whether the bootstrap over the seeds that all methods have agrees; True if there are too few."""
    whole = scores[~np.isnan(scores).any(axis=1)]
    if len(whole) < ENOUGH_FOR_BOOTSTRAP:
        return np.ones(len(t), dtype=bool)
    groups = [np.nanmean(part, axis=0).T / len(parts) for part in parts]
    return np.asarray(_stepdown([whole, *groups], index, t) <= 0.05)


def _stepdown(sources: Sequence[Array], index: NDArray[np.int64], t: Array) -> Array:
    """Return (P,) bootstrap-adjusted p values of the pairs `index` (P, 2), whose statistics are `t` (P,) >= 0.

    sources: (n, m) draws each, resampled one by one, the same draws for all methods. Of each resample and pair, the
    deviation of the sum of means is divided by the resample's own standard error; the k-th largest t is held against
    the largest of these among the pairs that are not larger than it (Romano & Wolf 2005, algorithm 4.2).
    """
    order = np.argsort(t, kind="stable")  # ascending: the largest of the remaining ones is a running maximum
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
    """Yield (deviations, variances), (B, P) each, of DRAWS resamples in batches."""
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


def paired_difference(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> Difference:
    """Return a minus b of n paired values by Student's t, from these two alone. One pair has no spread."""
    values = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    mean = float(values.mean())
    rounding = _ROUNDING * max(float(np.abs(values).max()), 1e-3)
    variance = float(_moments(values[:, None], rounding)[2][0])
    if len(values) < 2 or not variance > 0:
        return Difference(mean, None, None, separated=False, p=1.0)
    return by_t(mean, float(np.sqrt(variance / len(values))), len(values) - 1.0, level)


def by_t(mean: float, error: float, freedom: float, level: float) -> Difference:
    """Return a difference with its standard error by Student's t. Interval, verdict and p agree."""
    from scipy.special import stdtr, stdtrit

    half = float(stdtrit(freedom, 0.5 + level / 2)) * error
    p = float(2 * stdtr(freedom, -abs(mean) / error))
    return Difference(mean, mean - half, mean + half, separated=abs(mean) > half, p=p)


def comparison_bars(pairs: Pairs) -> Array | None:
    """Return bars around means that overlap exactly where two methods are not separated.

    A linear program: the least sum of |h_i + h_j - margin|, with h_i + h_j below the difference of separated methods,
    and not below that of others.

    Returns:
        (m,) half-lengths h, with h_i + h_j as near as possible to the margin; None if no lengths agree with all pairs,
        or there are many.
    """
    from scipy.optimize import linprog  # slow to import

    m, count = pairs.methods, len(pairs.first)
    twins = pairs.difference == 0
    if m > _MOST_BARS or np.isnan(pairs.margin[~twins]).any():
        return None
    margin, distance = np.nan_to_num(pairs.margin), np.abs(pairs.difference)
    sums = np.zeros((count, m))
    sums[np.arange(count), pairs.first] = sums[np.arange(count), pairs.second] = 1
    sign = np.where(pairs.apart, 1.0, -1.0)
    bound = sign * distance - np.where(pairs.apart, _GAP * distance.max(initial=0.0), 0.0)
    none, slack = np.zeros((count, count)), np.eye(count)
    rows = [[sums, -slack], [-sums, -slack], [sign[:, None] * sums, none]]
    solution = linprog(
        np.concatenate([np.zeros(m), np.where(np.isnan(pairs.margin), 0.0, 1.0)]),
        A_ub=np.block(rows),
        b_ub=np.concatenate([margin, -margin, bound]),
    )
    return np.asarray(solution.x[:m]) if solution.success else None
