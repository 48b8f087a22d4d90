"""Mixing the samples of tasks across blurred boundaries. Pure functions of labels and a generator.

Recipes of METHODS F.1 (BBCL): blurry-M (Bang et al. 2021), i-Blurry-N-M (Koh et al. 2022), Dirichlet shares, and a
Gaussian schedule (Shanahan et al. 2021). In all of them every sample is used once.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.scenarios.request import positions_by_class

Positions = NDArray[np.int64]

_NIL = 1e-6  # tolerance of numbers of samples that are computed in floating point
_ATTEMPTS = 100


def blurry(
    labels: NDArray[np.int64], homes: Sequence[Positions], share: float, rng: np.random.Generator
) -> list[Positions]:
    """Return rounds of the same sizes as `homes`, of which `share` is from other homes, evenly (see `exchange`).

    labels: (N,) of all samples. homes: positions of each task's own samples. The samples that leave a home have its mix
    of classes, to within a sample. The positions of a round are ascending.
    """
    counts = exchange([len(home) for home in homes], share)
    arriving: list[list[Positions]] = [[] for _ in homes]
    for home, row in zip(homes, counts, strict=True):
        mixed = home[_interleaved(labels[home], rng)]
        for j, chunk in enumerate(np.split(mixed, np.cumsum(row)[:-1])):
            arriving[j].append(chunk)
    return [np.sort(np.concatenate(chunks)) for chunks in arriving]


def exchange(sizes: Sequence[int], share: float) -> NDArray[np.int64]:
    """Return (K, K): the number of samples of home k that go to round j. sizes: of the homes and of the rounds.

    round(share * size) leave each home, and as many come in: rows and columns sum to `sizes`. With K equal sizes n, n *
    share / (K - 1) go to each other round, rounded up or down where that is not whole. Unequal sizes exchange as evenly
    as possible (least squares). A home that is larger than all others together gives as many as those can take.
    """
    whole = np.asarray(sizes, dtype=np.int64)
    leaving = np.floor(whole * share + 0.5).astype(np.int64)
    leaving = np.minimum(leaving, leaving.sum() - leaving)
    counts = np.diag(whole - leaving)
    trading = np.flatnonzero(leaving)
    if len(trading):
        counts[np.ix_(trading, trading)] += _whole(_even_trade(leaving[trading].astype(np.float64)))
    return counts


def i_blurry(
    labels: NDArray[np.int64],
    groups: Sequence[Sequence[int]],
    disjoint: Sequence[int],
    share: float,
    rng: np.random.Generator,
) -> list[Positions]:
    """Return rounds in which round(share * n) of the n samples of each class that is not `disjoint` are in other
    rounds.

    groups: the classes whose home each round is. The other rounds get equally many samples of a class, to within one
    sample; the round that gets one more changes from class to class. The positions of a round are ascending.
    """
    arriving: list[list[Positions]] = [[] for _ in groups]
    by_class = positions_by_class(labels)
    turn = 0
    for home, classes in enumerate(groups):
        others = [(home + step) % len(groups) for step in range(1, len(groups))]
        for name in classes:
            mixed = rng.permutation(by_class.get(name, np.empty(0, np.int64)))
            leaving = 0 if name in disjoint or not others else int(len(mixed) * share + 0.5)
            start = 0
            for place, other in enumerate(others):
                more = (place - turn) % len(others) < leaving % len(others)
                end = start + leaving // len(others) + more
                arriving[other].append(mixed[start:end])
                start = end
            arriving[home].append(mixed[start:])
            turn += leaving % len(others) if others else 0
    return [np.sort(np.concatenate(chunks)) for chunks in arriving]


def disjoint_classes(groups: Sequence[Sequence[int]], share: float, rng: np.random.Generator) -> tuple[int, ...]:
    """Return round(share * C) of the C classes, drawn such that each round gets its share of them."""
    classes = np.array([name for group in groups for name in group], dtype=np.int64)
    homes = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    count = int(len(classes) * share + 0.5)
    return tuple(sorted(classes[_interleaved(homes, rng)[:count]].tolist()))


def dirichlet(
    labels: NDArray[np.int64], rounds: int, alpha: float, generator_of: Callable[[int], np.random.Generator]
) -> list[Positions] | None:
    """Return rounds in which the shares of each class are drawn from Dir(alpha, ..., alpha), for each class separately.

    Drawn again, with generator_of(1), generator_of(2), ..., while a round is empty; None if that does not end.
    """
    by_class = positions_by_class(labels)
    for attempt in range(_ATTEMPTS):
        rng = generator_of(attempt)
        arriving: list[list[Positions]] = [[] for _ in range(rounds)]
        for positions in by_class.values():
            exact = rng.dirichlet(np.full(rounds, alpha)) * len(positions)
            counts = np.floor(exact).astype(np.int64)
            # The largest remainders get the rest, so every sample is used.
            counts[np.argsort(counts - exact, kind="stable")[: len(positions) - counts.sum()]] += 1
            for j, chunk in enumerate(np.split(rng.permutation(positions), np.cumsum(counts)[:-1])):
                arriving[j].append(chunk)
        parts = [np.sort(np.concatenate(chunks)) for chunks in arriving]
        if all(len(part) for part in parts):
            return parts
    return None


def gaussian_order(
    labels: NDArray[np.int64], order: Sequence[int], sigma: float, rng: np.random.Generator
) -> Positions:
    """Return all positions in the order of a stream in which class c is active around its centre.

    A sample of the class that is the c-th of C in `order` comes at the time N((c + 1/2) / C, sigma), so the centres lie
    between 0 and 1; the stream is the samples by time.
    """
    centre = np.empty(max(order) + 1)
    centre[list(order)] = (np.arange(len(order)) + 0.5) / len(order)
    times = centre[labels] + sigma * rng.standard_normal(len(labels))
    return np.argsort(times, kind="stable").astype(np.int64)


def _interleaved(labels: NDArray[np.int64], rng: np.random.Generator) -> Positions:
    """Return a random order in which every stretch has the overall mix of classes, to within a sample of each class."""
    keys = np.empty(len(labels))
    for positions in positions_by_class(labels).values():
        count = len(positions)
        keys[positions] = (rng.permutation(count) + rng.random(count)) / count
    return np.argsort(keys, kind="stable").astype(np.int64)


def _even_trade(leaving: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (K, K), symmetric, 0 on the diagonal, not negative, rows sum to `leaving` > 0, with the least sum of
    squares.

    By its optimality conditions a cell is max(0, a_k + a_j); which cells are 0 is found by trial.
    """
    count = len(leaving)
    others = ~np.eye(count, dtype=bool)
    largest = int(np.argmax(leaving))
    rest = leaving.sum() - leaving[largest]
    if leaving[largest] >= rest:  # the others exchange only with the largest one
        star = np.zeros((count, count))
        star[largest], star[:, largest] = leaving, leaving
        star[largest, largest] = 0
        return star
    used = others
    for _ in range(_ATTEMPTS):
        a = np.linalg.lstsq(np.diag(used.sum(axis=1)) + used, leaving, rcond=None)[0]
        pairs = np.add.outer(a, a)
        positive = others & (pairs > _NIL)
        if np.array_equal(positive, used) or np.allclose(np.where(positive, pairs, 0).sum(axis=1), leaving, atol=_NIL):
            return np.where(positive, pairs, 0)
        used = positive
    raise AssertionError("no even trade was found")


def _whole(real: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return `real`, whose rows and columns have integer sums, with every cell rounded up or down such that sums are
    kept.

    Cells that are not integers form cycles along rows and columns; along a cycle, cells are alternately raised and
    lowered until one of them is an integer.
    """
    whole = np.floor(real + _NIL)
    part = real - whole
    part[part < _NIL] = 0
    while (part > 0).any():
        cycle = _cycle(part > 0)
        up, down = (tuple(np.array(cycle[start::2]).T) for start in (0, 1))
        step = min((1 - part[up]).min(), part[down].min())
        part[up] += step
        part[down] -= step
        full = part > 1 - _NIL
        whole[full] += 1
        part[full | (part < _NIL)] = 0
    return whole.astype(np.int64)


def _cycle(cells: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return a cycle of cells, alternately in the row and in the column of the cell before.

    The last is in line with the first.

    Every row and column with a cell has two.
    """
    row = int(np.flatnonzero(cells.any(axis=1))[0])
    path: list[tuple[int, int]] = []
    met: dict[tuple[str, int], int] = {("row", row): 0}
    column = -1
    while True:
        column = int(next(j for j in np.flatnonzero(cells[row]) if j != column))
        path.append((row, column))
        if ("column", column) in met:
            return path[met["column", column] :]
        met["column", column] = len(path)
        row = int(next(k for k in np.flatnonzero(cells[:, column]) if k != row))
        path.append((row, column))
        if ("row", row) in met:
            return path[met["row", row] :]
        met["row", row] = len(path)
