"""How many standard errors simultaneous 95 % intervals reach: core/ianvs/results/stats/critical_values.json.

    python benchmarks/critical_values.py [--draws 40000] [--methods 3 8 20]    # beside those that are stored
    python benchmarks/critical_values.py --write                                # and stores those that are not

Methods are all equal in truth, and differ in their spread: by a few patterns, since no one knows it. Of each pattern
the 95 % quantile of the largest |difference| / error over the pairs; the largest of these is the critical value.
Variances of seeds are moved half-way to each other; with groups of test samples each pair has its own.
"all" is of all pairs; "best" of those with the best method, which are all that is compared where there are many.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from ianvs.results.stats.critical_values import MOST_COMPARED
from ianvs.results.stats.pairs import shrink_variances

Array = NDArray[np.float64]
SEEDS, GROUPS = (2, 3, 4, 5, 6, 8, 10, 15, 20), (2, 3, 5, 10, 20, 100)
METHODS = {"all": (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 30, 40, 50), "best": (50, 100, 200)}
_AT_ONCE = 2_000_000  # numbers of one kind in memory


def patterns(m: int) -> Iterator[tuple[str, Array]]:
    """Spreads of m methods."""
    place = np.arange(m)
    yield "equal", np.ones(m)
    for ratio in (3, 10, 100):
        yield f"one {ratio} times as wide", np.where(place < 1, ratio, 1.0)
        yield f"two {ratio} times as wide", np.where(place < 2, ratio, 1.0)
        yield f"half {ratio} times as wide", np.where(place < m // 2, ratio, 1.0)
        yield f"all but one {ratio} times as wide", np.where(place < 1, 1.0, ratio)
        yield f"evenly up to {ratio} times as wide", np.geomspace(1, ratio, m)
    yield "evenly up to 1000 times as wide", np.geomspace(1, 1000, m)
    yield "one 30 times as wide", np.where(place < 1, 30.0, 1.0)


def of_seeds(s2: Array, n: int) -> Array:
    counts = np.full(s2.shape[-1], n)
    return shrink_variances(s2, counts, np.ones(len(counts), bool)) if len(counts) > 1 else s2


def of_samples(s2: Array, n: int) -> Array:
    return s2


def largest(family: str, spreads: Array, n: int, draws: int, moved: Callable[[Array, int], Array], seed: int) -> float:
    """The 95 % quantile over `draws` of the largest |difference| / error over the pairs."""
    m, random, found = len(spreads), np.random.default_rng(seed), []
    i, j = np.triu_indices(m, 1)
    # A covariance of few draws is made of the draws, of many by Bartlett's triangle: the same distribution.
    pairs = len(i) if family == "all" else m
    at_once = max(1, int(_AT_ONCE / (pairs if family == "all" else m * n)))
    for begin in range(0, draws, at_once):
        size = min(at_once, draws - begin)
        if family == "best":
            scores = random.standard_normal((size, n, m)) * spreads
            mean = scores.mean(axis=1)
            best = mean.argmax(axis=1)[:, None]
            others = np.arange(1, m) - (np.arange(1, m) <= best)
            paired = np.take_along_axis(scores, best[:, None], 2) - np.take_along_axis(scores, others[:, None], 2)
            difference, s2 = paired.mean(axis=1), paired.var(axis=1, ddof=1)
        else:
            mean = random.standard_normal((size, m)) * spreads / np.sqrt(n)
            root = _root_of_covariance(random, size, n, m) * spreads[:, None]
            covariance = root @ root.swapaxes(1, 2) / (n - 1)
            own = np.einsum("bii->bi", covariance)
            difference, s2 = mean[:, i] - mean[:, j], own[:, i] + own[:, j] - 2 * covariance[:, i, j]
        found.append((np.abs(difference) / np.sqrt(moved(s2, n) / n)).max(axis=1))
    return float(np.quantile(np.concatenate(found), 0.95))


def _root_of_covariance(random: np.random.Generator, size: int, n: int, m: int) -> Array:
    """(size, m, k) A with A A' ~ Wishart of n - 1 degrees of freedom and unit scale."""
    if n - 1 <= m:
        return random.standard_normal((size, m, n - 1))
    root = np.tril(random.standard_normal((size, m, m)), -1)
    root[:, range(m), range(m)] = np.sqrt(random.chisquare(n - 1 - np.arange(m), (size, m)))
    return root


def _text(table: dict[str, dict[str, dict[str, dict[str, float]]]]) -> str:
    """A line for each number of methods."""
    return json.dumps(table).replace("}, ", "},\n") + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=40_000)
    parser.add_argument("--methods", type=int, nargs="*", help="only these numbers of methods")
    parser.add_argument("--write", action="store_true", help="store what the table lacks")
    asked = parser.parse_args()
    file = files("ianvs.results.stats") / "critical_values.json"
    table = json.loads(file.read_text(encoding="utf-8"))
    for family, counts in METHODS.items():
        draws = asked.draws if family == "all" else min(asked.draws, 8_000)
        for m in counts if asked.methods is None else [m for m in counts if m in asked.methods]:
            for name, numbers, moved in (("seeds", SEEDS, of_seeds), ("samples", GROUPS, of_samples)):
                row = table.setdefault(family, {}).setdefault(name, {}).setdefault(str(m), {})
                for n in numbers:
                    if asked.methods is None and str(n) in row:
                        continue
                    few = draws // 4 if family == "best" and n > 20 else draws
                    found = {
                        pattern: largest(family, spreads, n, few, moved, seed=1000 * m + n)
                        for pattern, spreads in (patterns(m) if m > 2 else [("equal", np.ones(2))])
                    }
                    widest = max(found, key=lambda pattern: found[pattern])
                    value = float(student.isf(0.025, n - 1)) if m == 2 else found[widest]
                    stored = row.setdefault(str(n), round(value, 2))
                    print(
                        f"{family} {name} {m} methods, {n} draws: {value:.2f} ({widest}); stored {stored}", flush=True
                    )
                table[family][name][str(m)] = dict(sorted(row.items(), key=lambda one: int(one[0])))
            if asked.write:
                Path(str(file)).write_text(_text(table), encoding="utf-8")


if __name__ == "__main__":
    assert MOST_COMPARED in METHODS["all"]
    main()
