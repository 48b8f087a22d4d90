"""How often simultaneous intervals of differences hold, and how often they separate: docs/statistics.md, by simulation.

    python benchmarks/coverage.py [--draws 10000]      # a minute or two of one core; prints a line for each cell

A draw is an exam: methods whose expected scores lie `gap` apart, seeds of them, and test samples in groups. A sample's
difficulty is shared by all methods, and partly by the seeds of one. Covered: all differences lie in their intervals,
over other seeds and test samples (ii), or over other seeds alone (i). Power: the share of the pairs told apart.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ianvs.results.stats.critical_values import critical_value
from ianvs.results.stats.pairs import compare_all, shrink_variances

Array = NDArray[np.float64]
_GROUPS = 100
_CORRECT = 0.8  # of the first method; a sample's variance is that of a coin that falls as often as its method is right
_SHARED, _OWN = 0.57, 0.07  # parts of that variance: all methods, all seeds of a method; the rest is of each run
_AT_ONCE = 8_000_000
LEAST = 0.935
"""What a cell has to cover, but those of rare collapse."""


@dataclass(frozen=True)
class Cell:
    """seeds, spreads: of each method. collapse: how probable it is that a seed of the first fails and loses .3."""

    name: str
    seeds: tuple[int, ...]
    spreads: tuple[float, ...]
    samples: int = 400
    gap: float = 0.0
    collapse: float = 0.0


@dataclass(frozen=True)
class Found:
    """Shares of the draws in which all intervals hold, and of the pairs that are apart: (ii) and (i)."""

    covered: tuple[float, float]
    power: tuple[float, float]


def patterns(m: int) -> dict[str, tuple[float, ...]]:
    place = np.arange(m)
    found = {
        "spread .002": np.full(m, 0.002),
        "spread .01": np.full(m, 0.01),
        "spread .05": np.full(m, 0.05),
        "one .05, others .005": np.where(place < 1, 0.05, 0.005),
        "evenly .002 to .05": np.geomspace(0.002, 0.05, m),
    }
    return {name: tuple(spreads.tolist()) for name, spreads in found.items()}


def cells() -> Iterator[Cell]:
    for m in (2, 4, 8):
        for n in (3, 5, 10):
            for name, spreads in patterns(m).items():
                yield Cell(name, (n,) * m, spreads)
    for m in (4, 8):
        for few, many in ((2, 3), (3, 5), (3, 10), (2, 10)):
            half = tuple(few if i % 2 else many for i in range(m))
            for name, spreads in patterns(m).items():
                yield Cell(f"{name}, mixed seeds", half, spreads)
    for samples in (100, 10_000):
        for n in (2, 3, 10):
            yield Cell("spread .01", (n,) * 8, (0.01,) * 8, samples)
    for n in (3, 5, 10):
        for gap, spread in ((0.02, 0.01), (0.05, 0.01), (0.02, 0.002)):
            yield Cell(f"spread {spread:g}".replace("0.", "."), (n,) * 8, (spread,) * 8, gap=gap)
        yield Cell("spread .01", (n,) * 8, (0.01,) * 8, samples=10_000, gap=0.02)
        yield Cell("rare collapse", (n,) * 8, (0.01,) * 8, gap=0.02, collapse=0.15)


def simulate(cell: Cell, draws: int, seed: int = 0, checked: int = 3) -> Found:
    """checked: how many draws ianvs.results.stats is asked about, too. Raises AssertionError where it differs."""
    random = np.random.default_rng(seed)
    m, longest = len(cell.seeds), max(cell.seeds)
    at_once = max(1, _AT_ONCE // (longest * m * _GROUPS))
    covered, apart = np.zeros(2), np.zeros(2)
    for begin in range(0, draws, at_once):
        size = min(at_once, draws - begin)
        scores, parts, truths = _exams(cell, size, random)
        for which, truth in enumerate(truths):
            difference, margin = intervals(cell.seeds, scores, parts if which == 0 else None)
            i, j = np.triu_indices(m, 1)
            covered[which] += (np.abs(difference - (truth[:, i] - truth[:, j])) <= margin).all(axis=1).sum()
            apart[which] += (np.abs(difference) > margin).mean(axis=1).sum()
            for k in range(checked if begin == 0 else 0):
                _same(cell, scores[k], parts[k], difference[k], margin[k], fixed=which == 1)
    return Found(tuple((covered / draws).tolist()), tuple((apart / draws).tolist()))


def _exams(cell: Cell, size: int, random: np.random.Generator) -> tuple[Array, Array, tuple[Array, Array]]:
    """(size, seeds, m) scores, (size, seeds, m, G) parts, and the true scores: of all samples, and of these."""
    m, longest = len(cell.seeds), max(cell.seeds)
    may = cell.collapse * (np.arange(m) == 0)
    expected = _CORRECT - cell.gap * np.arange(m)
    true = expected - 0.3 * may
    of_group = (expected * (1 - expected) * _GROUPS / cell.samples)[:, None]  # variances

    def normal(*shape: int, part: float) -> Array:
        return np.sqrt(part * of_group, dtype=np.float32) * random.standard_normal(shape, dtype=np.float32)

    difficulty = normal(size, 1, 1, _GROUPS, part=_SHARED) + normal(size, 1, m, _GROUPS, part=_OWN)
    lost = 0.3 * ((random.random((size, longest, m)) < may) - may)
    trained = random.standard_normal((size, longest, m)) * np.array(cell.spreads) - lost
    parts = normal(size, longest, m, _GROUPS, part=1 - _SHARED - _OWN) + difficulty
    parts = parts + (true + trained)[..., None].astype(np.float32)
    scores = parts.mean(axis=3, dtype=np.float64)
    here = true + difficulty[:, 0].mean(axis=2, dtype=np.float64)
    return scores, parts, (np.broadcast_to(true, here.shape), here)


def intervals(seeds: Sequence[int], scores: Array, parts: Array | None) -> tuple[Array, Array]:
    """(size, P) differences and margins of all pairs, as compare_all has them, of many exams at once.

    scores: (size, n, m), of which method i has the first seeds[i]. parts: (size, n, m, G).
    """
    m = len(seeds)
    i, j = np.triu_indices(m, 1)
    n = np.minimum(np.array(seeds)[i], np.array(seeds)[j])
    difference, s2, samples = (np.empty((len(scores), len(i))) for _ in range(3))
    for count in np.unique(n):
        these = n == count
        paired = scores[:, :count, i[these]] - scores[:, :count, j[these]]
        difference[:, these], s2[:, these] = paired.mean(axis=1), paired.var(axis=1, ddof=1)
        if parts is not None:
            groups = parts[:, :count].mean(axis=1)
            covariance = np.einsum("big,bjg->bij", *[groups - groups.mean(axis=2, keepdims=True)] * 2)
            covariance = covariance.astype(np.float64) / (groups.shape[2] - 1)
            own = np.einsum("bii->bi", covariance)
            of_pair = own[:, i[these]] + own[:, j[these]] - 2 * covariance[:, i[these], j[these]]
            samples[:, these] = of_pair / groups.shape[2]
    spread = shrink_variances(s2, n, np.ones(len(n), dtype=bool)) if m > 2 else s2
    margin2 = critical_value("seeds", m, n) ** 2 * spread / n
    if parts is not None:
        margin2 = margin2 + critical_value("samples", m, parts.shape[3]) ** 2 * samples
    return difference, np.sqrt(margin2)


def _same(cell: Cell, scores: Array, parts: Array, difference: Array, margin: Array, *, fixed: bool) -> None:
    missing = np.arange(len(scores))[:, None] >= np.array(cell.seeds)
    parts = np.where(missing[..., None], np.nan, parts.astype(np.float64))
    found = compare_all(np.where(missing, np.nan, scores), [parts], fixed_test_set=fixed)
    np.testing.assert_allclose(found.difference, difference, atol=1e-9)
    if max(cell.seeds) < 20:  # from there on the bootstrap may widen it
        np.testing.assert_allclose(found.margin, margin, rtol=1e-3)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=10_000)
    draws = parser.parse_args().draws
    lowest = {"(ii)": 1.0, "(i)": 1.0}
    print(f"{'methods, seeds, samples, gap':34}{'':36}covered (ii)   (i)  power (ii)   (i)")
    for k, cell in enumerate(cells()):
        found = simulate(cell, draws, seed=k)
        counts = "/".join(map(str, dict.fromkeys(cell.seeds)))
        where = f"{len(cell.seeds)} methods, {counts} seeds, {cell.samples}, {cell.gap:g}"
        print(
            f"{where:34}{cell.name:36}{found.covered[0]:12.3f} {found.covered[1]:.3f}"
            + (f"{found.power[0]:12.2f} {found.power[1]:5.2f}" if cell.gap else ""),
            flush=True,
        )
        if not cell.collapse:
            lowest = {of: min(low, one) for (of, low), one in zip(lowest.items(), found.covered, strict=True)}
    told = ", ".join(f"{low:.3f} {of}" for of, low in lowest.items())
    print(f"Lowest coverage but for rare collapse: {told}. Wanted: {LEAST}.")


if __name__ == "__main__":
    main()
