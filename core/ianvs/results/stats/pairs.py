"""All pairs of methods, compared on the same draws: paired differences, their chance, and which pairs are separated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ianvs.results.stats.bootstrap import Array, stepdown

ENOUGH_FOR_BOOTSTRAP = 20
"""From so many seeds on, of all exams together, differences are judged by the bootstrap; below, by Student's t."""

_MANY = 1e9  # degrees of freedom of what has no variance
_HALVINGS = 40


@dataclass(frozen=True)
class Source:
    """One source of chance, whose draws are the same for all methods: seeds, or parts of the test sets.

    draws: (n, m), what each of n independent draws says of each of m methods; n >= 2. Its part of the variance of a
    difference is that of the mean of n paired differences.
    """

    name: str
    draws: Array


@dataclass(frozen=True)
class Difference:
    """A method minus another one. low, high: 95 % interval by Student's t, of this pair alone; None where the draws
    tell no spread. p: two-sided, for all pairs of the family together. separated: whether it holds for all at once."""

    mean: float
    low: float | None
    high: float | None
    p: float
    separated: bool


@dataclass(frozen=True)
class Pairs:
    """Every pair (i, j), i < j, of m methods, in the order of itertools.combinations; (P,) arrays.

    difference: of the estimates, i minus j. variances, df: of the sources of each name, and degrees of freedom.
    p: adjusted, so that all verdicts p <= 1 - level hold at once with probability `level`.
    """

    methods: int
    difference: Array
    variances: Mapping[str, Array]
    df: Mapping[str, Array]
    p: Array
    level: float

    @cached_property
    def separated(self) -> NDArray[np.bool_]:
        """(m, m) bool, symmetric."""
        found = np.zeros((self.methods, self.methods), dtype=bool)
        found[np.triu_indices(self.methods, 1)] = self.p <= 1 - self.level
        return found | found.T

    def between(self, i: int, j: int) -> Difference:
        """Method i minus method j, i != j."""
        first, second = min(i, j), max(i, j)
        at = first * self.methods - first * (first + 1) // 2 + second - first - 1
        mean, p = float(self.difference[at] * (1 if i < j else -1)), float(self.p[at])
        names = list(self.variances)
        variances, df = ([float(of[name][at]) for name in names] for of in (self.variances, self.df))
        return _difference(mean, variances, df, p, self.level)


def compare_all(estimates: Array, sources: Sequence[Source], level: float = 0.95) -> Pairs:
    """Every pair of the m methods whose scores are `estimates`, (m,).

    Sources of one name (the seeds of several exams) add up their variances; freedom is Welch and Satterthwaite's.
    The margin of a difference is sqrt(sum of V t^2) over names, V a variance and t Student's t for its freedom: the
    margins of seeds and of samples add up in squares. (One t for the sum of variances would be liberal, up to sevenfold
    with three seeds, since a variance of two degrees of freedom is often far too small by chance.) p is the level at
    which the margin reaches the difference, with Holm's steps over the pairs.

    From ENOUGH_FOR_BOOTSTRAP draws of "seeds" on the studentised bootstrap of all sources, with Romano and Wolf's
    steps, has to say the same, so that a skewed score is not taken for a normal one (alone it separates equal methods
    in 6 of 100 jobs with 30 seeds). A pair whose draws all differ by the same amount tells no spread: it is a tie.
    """
    m = len(estimates)
    i, j = np.triu_indices(m, 1)
    difference = estimates[i] - estimates[j]
    variances: dict[str, Array] = {}
    squares: dict[str, Array] = {}
    for source in sources:
        found = _spread(source.draws[:, i] - source.draws[:, j])
        variances[source.name] = variances.get(source.name, 0.0) + found
        squares[source.name] = squares.get(source.name, 0.0) + found**2 / (len(source.draws) - 1)
    df = {
        name: np.divide(found**2, squares[name], out=np.full(len(i), _MANY), where=found > 0)
        for name, found in variances.items()
    }
    total = np.sum(list(variances.values()), axis=0) if variances else np.zeros(len(i))
    p = holm(_two_sided(difference, list(variances.values()), list(df.values()), for_holm=True))
    if sum(len(source.draws) for source in sources if source.name == "seeds") >= ENOUGH_FOR_BOOTSTRAP:
        t = np.divide(np.abs(difference), np.sqrt(total), out=np.zeros(len(i)), where=total > 0)
        p = np.maximum(p, stepdown([source.draws for source in sources], np.column_stack([i, j]), t))
    p = np.where(total > 0, p, 1.0)
    return Pairs(m, difference, variances, df, p, level)


def paired_difference(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> Difference:
    """Of n paired values, a minus b, by Student's t; p is of this pair alone. One pair tells no spread."""
    values = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    mean = float(values.mean())
    if len(values) < 2:
        return Difference(mean, None, None, 1.0, separated=False)
    variance, df = _spread(values[:, None]), len(values) - 1.0
    p = float(_two_sided(np.array([mean]), [variance], [np.array([df])])[0])
    return _difference(mean, [float(variance[0])], [df], p, level)


def holm(p: Array) -> Array:
    """(P,) adjusted p values of Holm 1979: reject those <= alpha, and the chance of any error is at most alpha."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def _spread(draws: Array) -> Array:
    """(P,) variance of the mean of (n, P) draws. Draws that are equal but for rounding have none."""
    even = np.ptp(draws, axis=0) <= 1e-12 * np.maximum(np.abs(draws).max(axis=0), 1e-3)
    return np.where(even, 0.0, draws.var(axis=0, ddof=1) / len(draws))


def _two_sided(
    difference: Array,
    variances: Sequence[Array],
    df: Sequence[Array],
    for_holm: bool = False,
) -> Array:
    """(P,) the p at which the margin reaches the difference; 1 where no source has any spread.

    for_holm: a p that Holm's steps take to 1 in any case is not worked out; what is told is taken there as well.
    """
    from scipy.special import stdtr  # scipy.stats takes a second to import

    found = np.ones(len(difference))
    some = np.sum(variances, axis=0) > 0 if len(variances) else np.zeros(len(difference), dtype=bool)
    if not some.any():
        return found
    distance, parts, freedom = np.abs(difference[some]), [one[some] for one in variances], [one[some] for one in df]
    t = distance / np.sqrt(np.sum(parts, axis=0))
    # It lies between what the fewest and the most degrees of freedom say of the whole variance.
    high = 2 * stdtr(np.min(freedom, axis=0), -t)
    if len(parts) > 1:
        low = 2 * stdtr(np.max(freedom, axis=0), -t)
        asked = low < (_surely_one(low) if for_holm else np.inf)
        distance, low, upper = distance[asked], low[asked], high[asked]
        parts, freedom = [one[asked] for one in parts], [one[asked] for one in freedom]
        for _ in range(_HALVINGS):
            middle = np.sqrt(low * upper)
            beyond = _margin(parts, freedom, middle) > distance
            low, upper = np.where(beyond, middle, low), np.where(beyond, upper, middle)
        high[asked] = upper
    found[some] = high
    return found


def _surely_one(low: Array) -> float:
    """From which p on Holm's steps end at 1, where `low`, (P,), are bounds from below: so many are not smaller."""
    ascending = np.sort(low)
    enough = ascending * np.arange(len(low), 0, -1) > 1 + 1e-9
    return float(ascending[np.argmax(enough)]) if enough.any() else np.inf


def _margin(variances: Sequence[Array], df: Sequence[Array], p: Array | float) -> Array:
    """Half the width of the interval of level 1 - p."""
    from scipy.special import stdtrit

    tail = np.asarray(p) / 2
    parts = [variance * stdtrit(one, tail) ** 2 for variance, one in zip(variances, df, strict=True)]
    return np.asarray(np.sqrt(np.sum(parts, axis=0)))


def _difference(mean: float, variances: Sequence[float], df: Sequence[float], p: float, level: float) -> Difference:
    if not sum(variances) > 0:
        return Difference(mean, None, None, p, separated=False)
    half = float(_margin([np.array(one) for one in variances], [np.array(one) for one in df], 1 - level))
    return Difference(mean, mean - half, mean + half, p, separated=p <= 1 - level)
