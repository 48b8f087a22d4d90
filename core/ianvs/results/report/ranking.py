"""The order of rows and its certainty: ranks, standings, differences to the best and to a baseline, several exams,
and the Pareto front of score, training time and memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from ianvs.results.report.aggregate_cases import RowCases
from ianvs.results.report.leaderboard_row import LeaderboardRow, RowKey
from ianvs.results.report.values import differing_settings
from ianvs.results.stats import Difference, OverExams, Pairs, RankInterval, Standings, over_exams, rank, standings
from ianvs.results.stats.standing import outlier_seeds, pareto_front
from ianvs.results.stats.summary import Array

_TIME = ("train_cpu_seconds", "train_seconds")  # the first known one
_MEMORY = "peak_memory_mb"
SAME_COST = MappingProxyType({**dict.fromkeys(_TIME, 0.1), _MEMORY: 0.02})
"""Relative tolerance by cost, if repetitions have not measured the machine's noise."""
_SMALL_MEMORY = 50.0  # MB; smaller differences come from the allocator, not from the method


@dataclass(frozen=True)
class ExamSignificance:
    """The ranking of one exam by its first metric.

    Attributes:
        rows: Names of the compared methods, in ranked order.
        keys: Their ids and algorithms.
        scores: (seeds, rows), nan if a method lacks a seed.
        pairs: Comparisons of the rows, a higher score being better, over the variance of seeds and, unless groups is 0,
            of `samples` test samples in so many groups.
        fixed_pairs: The same on this test set.
        outliers: For a row, the seeds whose score is no draw of a normal distribution.
    """

    testenv: str
    metric: str
    rows: tuple[str, ...]
    keys: tuple[RowKey, ...]
    scores: Array
    samples: int  # 0: not known
    groups: int
    pairs: Pairs
    fixed_pairs: Pairs
    outliers: Mapping[int, Sequence[int]]

    @property
    def counts(self) -> tuple[int, int]:
        """The lowest and highest number of seeds of a method."""
        n = (~np.isnan(self.scores)).sum(axis=0)
        return int(n.min()), int(n.max())


def ranked_by_testenv(
    rows: list[LeaderboardRow],
    sort_by: Sequence[tuple[str, bool]],
    baseline: str | None,
    tolerance: Mapping[str, float] = SAME_COST,
) -> tuple[tuple[LeaderboardRow, ...], tuple[ExamSignificance, ...]]:
    """Return the ranking of each exam, in the order of the exams, and its certainty. tolerance: see cost_tolerance."""
    ordered: list[LeaderboardRow] = []
    significance = []
    for exam in dict.fromkeys(row.testenv for row in rows):
        ranked: Sequence[LeaderboardRow] = _ranked(_mark_bounds([row for row in rows if row.testenv == exam]), sort_by)
        if sort_by:
            ranked, exam_significance = _with_significance(ranked, *sort_by[0], baseline, tolerance)
            significance += [exam_significance] if exam_significance else []
        ordered += ranked
    return tuple(ordered), tuple(significance)


def _mark_bounds(rows: list[LeaderboardRow]) -> list[LeaderboardRow]:
    """Mark rows that learned in one round what others of their exam learn in several as upper bounds.

    A row without finished cases is not judged by its rounds: its cases may have ended in the first of them.
    """
    several = any(row.rounds > 1 for row in rows)
    return [replace(row, bound=row.bound or (several and row.rounds == 1 and bool(row.seeds))) for row in rows]


def _ranked(rows: list[LeaderboardRow], sort_by: Sequence[tuple[str, bool]]) -> tuple[LeaderboardRow, ...]:
    """Return complete rows by `sort_by`, then those without a value to rank by, then those that lack a case."""
    descending = [each for _, each in sort_by]

    def keys(row: LeaderboardRow) -> list[float | None]:
        return [row.mean(name) for name, _ in sort_by]

    def ranked(row: LeaderboardRow) -> bool:
        return row.complete and any(value is not None for value in keys(row))

    placed = [row for row in rows if ranked(row)]
    placed = [placed[i] for i in rank([keys(row) for row in placed], descending).order]
    competing = [row for row in placed if row.competes]
    ranks = iter(rank([keys(row) for row in competing], descending).ranks)
    placed = [replace(row, rank=next(ranks)) if row.competes else row for row in placed]
    unranked = [row for row in rows if row.complete and not ranked(row)]
    return (*placed, *unranked, *(row for row in rows if not row.complete))


def _with_significance(
    rows: Sequence[LeaderboardRow], metric: str, higher: bool, baseline: str | None, tolerance: Mapping[str, float]
) -> tuple[list[LeaderboardRow], ExamSignificance | None]:
    """Return the rows of one exam, in ranked order, with their standing.

    Only rows that compete have one, if at least two of them have two seeds in common. A bound and a row over the budget
    have a difference, by the intervals of a family that includes them. baseline: an algorithm of the job; its best row
    is used.
    """
    able = [i for i, row in enumerate(rows) if _values(row, metric)]
    compared = [i for i in able if rows[i].competes]
    scores = _scores([rows[i] for i in compared], metric)
    if len(compared) < 2 or (np.sum(~np.isnan(scores), axis=0) > 1).sum() < 2:
        return with_pareto(rows, metric, higher, None, compared, tolerance), None
    standing, parts = _standings([rows[i] for i in compared], metric, higher)
    fixed = standings(scores if higher else -scores, parts, fixed_test_set=True)
    ordered = with_pareto(rows, metric, higher, standing.pairs, compared, tolerance)
    together = standing.pairs if able == compared else _standings([rows[i] for i in able], metric, higher)[0].pairs
    base = next((i for i in able if rows[i].algorithm == baseline), None)

    def minus(i: int, other: int | None) -> Difference | None:
        if other is None or other == i:
            return None
        indices, pairs = (compared, standing.pairs) if i in compared and other in compared else (able, together)
        ends = indices.index(i), indices.index(other)
        return pairs.between(*(ends if higher else ends[::-1]))

    for i in able:
        ordered[i] = replace(ordered[i], to_best=minus(i, compared[0]), to_baseline=minus(i, base))
    for at, i in enumerate(compared):
        ordered[i] = replace(ordered[i], standing=standing.rows[at], standing_here=fixed.rows[at] if parts else None)
    best = rows[compared[0]]
    significance = ExamSignificance(
        best.testenv,
        metric,
        _names([rows[i] for i in compared]),
        tuple((rows[i].id, rows[i].algorithm) for i in compared),
        scores,
        best.test_samples,
        parts[0].shape[2] if parts else 0,
        standing.pairs,
        fixed.pairs,
        outlier_seeds(scores),
    )
    return ordered, significance


def _standings(rows: Sequence[LeaderboardRow], metric: str, higher: bool) -> tuple[Standings, list[Array]]:
    """Return the standings of rows, with the groups of test samples if all rows have them."""
    sign = 1.0 if higher else -1.0
    parts = _parts(rows, metric, sign)
    return standings(sign * _scores(rows, metric), parts), parts


def _names(rows: Sequence[LeaderboardRow]) -> tuple[str, ...]:
    """Return the name of a row with the hyperparameters in which rows of its algorithm differ."""
    alike: dict[str, list[Mapping[str, object]]] = {}
    for row in rows:
        alike.setdefault(row.algorithm, []).append(row.hyperparameters)
    differing = {algorithm: differing_settings(settings) for algorithm, settings in alike.items()}
    return tuple(row.named(name for name in row.hyperparameters if name in differing[row.algorithm]) for row in rows)


def _scores(rows: Sequence[LeaderboardRow], metric: str) -> Array:
    """Return (seeds, rows), nan where a row lacks a seed."""
    seeds = sorted({seed for row in rows for seed in row.seeds})
    by_seed = [dict(zip(row.seeds, _values(row, metric), strict=True)) for row in rows]
    return np.array([[scores.get(seed, np.nan) for scores in by_seed] for seed in seeds]).reshape(len(seeds), len(rows))


def _parts(rows: Sequence[LeaderboardRow], metric: str, sign: float) -> list[Array]:
    """Return [(seeds, rows, G)], nan if a row lacks a seed; [] if not all rows have compatible groups."""
    samples = [row.samples.get(metric) for row in rows]
    fewest = min((0 if groups is None else groups.shape[1] for groups in samples), default=0)
    seeds = sorted({seed for row in rows for seed in row.seeds})
    parts = np.full((len(seeds), len(rows), fewest), np.nan)
    for at, (row, groups) in enumerate(zip(rows, samples, strict=True)):
        if groups is None or fewest < 2 or groups.shape[1] % fewest:
            return []
        # A sample in group g of 100 is in group g % 20 of 20.
        parts[[seeds.index(seed) for seed in row.seeds], at] = groups.reshape(len(groups), -1, fewest).mean(axis=1)
    return [sign * parts]


def _values(row: LeaderboardRow, metric: str) -> tuple[float, ...]:
    """Return values by seed; () if one is missing."""
    by_seed = row.by_seed.get(metric, ())
    values = tuple(value for value in by_seed if value is not None and np.isfinite(value))
    return values if row.complete and len(values) == len(by_seed) else ()


@dataclass(frozen=True)
class MethodsOverExams:
    """Methods over several exams.

    Attributes:
        names: Of the methods, one for each algorithm and choice of hyperparameters.
        scores: (exams, methods) means over seeds, nan if one is missing or did not compete.
        standing: By the mean over exams, for methods that have all exams.
        samples: Whether it includes the variance of test samples; otherwise only that of seeds.
    """

    metric: str
    higher: bool
    exams: tuple[str, ...]
    names: tuple[str, ...]
    scores: Array
    together: OverExams
    standing: tuple[RankInterval | None, ...]
    samples: bool


def methods_over_exams(rows: Sequence[LeaderboardRow], metric: str, higher: bool) -> MethodsOverExams | None:
    """Compare methods over exams; None for a job with one exam, or if fewer than two methods have all exams."""
    exams = tuple(dict.fromkeys(row.testenv for row in rows))
    if len(exams) < 2:
        return None
    # A method has the same name in all exams: rows differ in their hyperparameters.
    competing = {(row.testenv, row.named()): row for row in rows if row.competes}
    names = tuple(dict.fromkeys(name for _, name in competing))
    table = [[competing.get((exam, name)) for name in names] for exam in exams]
    means = [[None if row is None else row.mean(metric) for row in line] for line in table]
    scores = np.array(means, dtype=float).reshape(len(exams), -1)  # None becomes nan
    sign = 1.0 if higher else -1.0
    together = over_exams(sign * scores)
    if all(row is None for row in together.rows):
        return None
    return MethodsOverExams(
        metric, higher, exams, names, scores, together, *_standing_over_exams(table, metric, sign, together)
    )


def _standing_over_exams(
    table: Sequence[Sequence[LeaderboardRow | None]], metric: str, sign: float, together: OverExams
) -> tuple[tuple[RankInterval | None, ...], bool]:
    """Return means over exams by seed, and whether their intervals include the variance of test samples."""
    whole = [i for i, row in enumerate(together.rows) if row is not None]
    lines = [[row for i in whole if (row := line[i]) is not None] for line in table]
    intervals: list[RankInterval | None] = [None] * len(together.rows)
    common = sorted(set.intersection(*({seed for row in line for seed in row.seeds} for line in lines)))
    if len(common) < 2 or any(not _values(row, metric) for line in lines for row in line):
        return tuple(intervals), False
    every = [[sorted({seed for row in line for seed in row.seeds}).index(seed) for seed in common] for line in lines]
    scores = np.mean([_scores(line, metric)[at] for line, at in zip(lines, every, strict=True)], axis=0)
    parts = [part[at] for line, at in zip(lines, every, strict=True) for part in _parts(line, metric, sign)]
    parts = parts if len(parts) == len(lines) else []
    for i, standing in zip(whole, standings(sign * scores, parts).rows, strict=True):
        intervals[i] = standing
    return tuple(intervals), bool(parts)


def cost_tolerance(groups: Sequence[RowCases], repeated: Sequence[RowCases]) -> dict[str, float]:
    """Return relative tolerances by cost: the defaults, or twice the spread over repetitions."""
    tolerance = dict(SAME_COST)
    by_row = {(row_cases.case.row, row_cases.case.algorithm): row_cases for row_cases in groups}
    for group in repeated:
        first = by_row.get((group.case.row, group.case.algorithm))
        for key in tolerance if first is not None and group.case.seed in first.seeds else ():
            both = [first.costs[key][first.seeds.index(group.case.seed)], *group.costs[key]] if first else []
            values = [value for value in both if value]
            if len(values) > 1:
                tolerance[key] = max(tolerance[key], 2 * float(np.std(values, ddof=1) / np.mean(values)))
    return tolerance


def with_pareto(
    rows: Sequence[LeaderboardRow],
    metric: str,
    higher: bool,
    pairs: Pairs | None,
    compared: Sequence[int],
    tolerance: Mapping[str, float],
) -> list[LeaderboardRow]:
    """Mark rows on the Pareto front.

    A score is better if the two are separated; without a spread, by any difference.
    """
    marked = list(rows)
    ranked = [i for i, row in enumerate(rows) if row.competes and row.mean(metric) is not None]
    if len(ranked) < 2:
        return marked
    scores = np.array([rows[i].mean(metric) for i in ranked], dtype=float) * (1 if higher else -1)
    better = scores[:, None] > scores
    if pairs is not None:
        place = {i: at for at, i in enumerate(ranked)}
        positions = np.array([place[i] for i in compared])
        better[np.ix_(positions, positions)] = False
        first, second = positions[pairs.first[pairs.apart]], positions[pairs.second[pairs.apart]]
        better[first, second], better[second, first] = scores[first] > scores[second], scores[second] > scores[first]
    costs = np.array([_costs(rows[i]) for i in ranked])
    for at in pareto_front(scores, better, costs, [max(map(tolerance.__getitem__, _TIME)), tolerance[_MEMORY]]):
        marked[ranked[at]] = replace(marked[ranked[at]], pareto=True)
    return marked


def _costs(row: LeaderboardRow) -> list[float]:
    """Return costs, of which less is better; an unknown one counts the same for all."""
    time = next((mean for name in _TIME if (mean := row.cost(name)) is not None), 0.0)
    return [time, max(row.cost(_MEMORY) or 0.0, _SMALL_MEMORY)]
