"""The order of rows and how sure it is: ranks, standings, differences to the best and to a baseline; several exams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.values import telling
from ianvs.results.stats import (
    Difference,
    OverExams,
    Pairs,
    RankInterval,
    Source,
    compare_all,
    holm,
    over_exams,
    pareto_front,
    rank,
    standings,
)

_TIME = ("train_cpu_seconds", "train_seconds")  # the first that all rows have
_MEMORY = "peak_memory_mb"


@dataclass(frozen=True)
class ExamSignificance:
    """Of one exam, by the metric that it is ranked by.

    rows: names of the methods that are compared, in ranked order; pairs: all their pairs, in that order.
    seeds: how many each has. samples: into how many groups the test samples were cut; 0: their chance is not known.
    """

    testenv: str
    metric: str
    rows: tuple[str, ...]
    seeds: int
    samples: int
    pairs: Pairs


def ranked_by_testenv(
    rows: list[LeaderboardRow], sort_by: Sequence[tuple[str, bool]], baseline: str | None
) -> tuple[tuple[LeaderboardRow, ...], tuple[ExamSignificance, ...]]:
    """The ranking of each exam, in the order of the exams, and how sure it is."""
    found: list[LeaderboardRow] = []
    significance = []
    for exam in dict.fromkeys(row.testenv for row in rows):
        ranked: Sequence[LeaderboardRow] = _ranked(_bounded([row for row in rows if row.testenv == exam]), sort_by)
        if sort_by:
            ranked, told = _with_significance(ranked, *sort_by[0], baseline)
            significance += [told] if told else []
        found += ranked
    return tuple(found), tuple(significance)


def _bounded(rows: list[LeaderboardRow]) -> list[LeaderboardRow]:
    """A row that learned in one round what others of its exam learn in several is a bound; among its like it is not.

    One of which nothing has finished tells nothing by its rounds: its cases may have ended in the first of them.
    """
    several = any(row.rounds > 1 for row in rows)
    return [replace(row, bound=row.bound or (several and row.rounds == 1 and bool(row.seeds))) for row in rows]


def _ranked(rows: list[LeaderboardRow], sort_by: Sequence[tuple[str, bool]]) -> tuple[LeaderboardRow, ...]:
    """Complete rows by `sort_by`, then those with nothing to rank them by, then those that lack a case."""
    descending = [falls for _, falls in sort_by]

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
    rows: Sequence[LeaderboardRow], metric: str, higher: bool, baseline: str | None
) -> tuple[list[LeaderboardRow], ExamSignificance | None]:
    """The rows of one exam, in ranked order, with what is known of their standing.

    Only rows that compete have one, where there are two of them or more with the same seeds, two or more.
    baseline: an algorithm of the job; the best of its rows counts.
    """
    found = _with_pareto(rows, metric, higher)
    able = [i for i, row in enumerate(rows) if _values(row, metric) is not None]
    compared = [i for i in able if rows[i].competes]
    if len(compared) < 2 or len({rows[i].seeds for i in able}) > 1:
        return found, None
    sign = 1.0 if higher else -1.0
    values = np.array([_values(rows[i], metric) for i in compared]).T  # (seeds, rows)
    sources = _sources(values, [rows[i].samples.get(metric) for i in compared], sign)
    standing = standings(sign * values.mean(axis=0), sources)
    best = compared[0]
    for at, i in enumerate(compared):
        to_best = None if i == best else standing.pairs.between(*((at, 0) if higher else (0, at)))
        found[i] = replace(found[i], standing=standing.rows[at], to_best=to_best)
    for i in able:
        if i not in compared:
            found[i] = replace(found[i], to_best=_pair(rows[i], rows[best], metric))
    found = _to_baseline(found, able, metric, baseline)
    groups = next((len(source.draws) for source in sources if source.name == "samples"), 0)
    names = _names([rows[i] for i in compared])
    return found, ExamSignificance(rows[best].testenv, metric, names, len(values), groups, standing.pairs)


def _with_pareto(rows: Sequence[LeaderboardRow], metric: str, higher: bool) -> list[LeaderboardRow]:
    found = list(rows)
    ranked = [i for i, row in enumerate(rows) if row.competes and row.mean(metric) is not None]
    if len(ranked) > 1:
        for at in pareto_front([_point(rows[i], metric, higher) for i in ranked]):
            found[ranked[at]] = replace(found[ranked[at]], pareto=True)
    return found


def _names(rows: Sequence[LeaderboardRow]) -> tuple[str, ...]:
    """Of an algorithm with several rows, with those of its hyperparameters in which these differ."""
    alike: dict[str, list[Mapping[str, object]]] = {}
    for row in rows:
        alike.setdefault(row.algorithm, []).append(row.hyperparameters)
    differing = {algorithm: telling(settings) for algorithm, settings in alike.items()}
    return tuple(row.named(name for name in row.hyperparameters if name in differing[row.algorithm]) for row in rows)


def _to_baseline(
    rows: list[LeaderboardRow], able: Sequence[int], metric: str, baseline: str | None
) -> list[LeaderboardRow]:
    """Each row minus the best row of `baseline`; p by Holm's steps over these pairs."""
    base = next((rows[i] for i in able if rows[i].algorithm == baseline), None)
    if base is None:
        return rows
    others = [i for i in able if rows[i] is not base]
    pairs = [_pair(rows[i], base, metric) for i in others]
    adjusted = holm(np.array([pair.p for pair in pairs]))
    for i, pair, p in zip(others, pairs, adjusted.tolist(), strict=True):
        rows[i] = replace(rows[i], to_baseline=replace(pair, p=p, separated=p <= 0.05))
    return rows


def _pair(row: LeaderboardRow, other: LeaderboardRow, metric: str) -> Difference:
    values = np.array([_values(row, metric), _values(other, metric)]).T
    sources = _sources(values, [row.samples.get(metric), other.samples.get(metric)])
    return compare_all(values.mean(axis=0), sources).between(0, 1)


def _sources(
    values: NDArray[np.float64], samples: Sequence[NDArray[np.float64] | None], sign: float = 1.0
) -> list[Source]:
    """values: (seeds, rows). samples: of each row what each group of test samples says, if that is known of all."""
    sources = [Source("seeds", sign * values)]
    known = [one for one in samples if one is not None]
    if len(known) == len(samples) and len({len(one) for one in known}) == 1:
        sources.append(Source("samples", sign * np.array(known).T))
    return sources


def _values(row: LeaderboardRow, metric: str) -> tuple[float, ...] | None:
    """By seed; None where a seed is missing, or there is only one."""
    found = row.by_seed.get(metric, ())
    values = [value for value in found if value is not None and np.isfinite(value)]
    return tuple(values) if row.complete and len(values) == len(found) >= 2 else None


def _point(row: LeaderboardRow, metric: str, higher: bool) -> list[float]:
    """What a row costs and brings, less being better in all; what is not known counts the same for all."""
    seconds = next((mean for name in _TIME if (mean := row.cost(name)) is not None), 0.0)
    score = row.mean(metric) or 0.0
    return [-score if higher else score, seconds, row.cost(_MEMORY) or 0.0]


@dataclass(frozen=True)
class MethodsOverExams:
    """names: of the methods, one for each algorithm and choice of hyperparameters. scores: (exams, methods) means over
    seeds, nan where one is missing or did not compete. standing: by the mean over exams, with the chance of the seeds
    alone, of methods that have all exams.
    """

    metric: str
    higher: bool
    exams: tuple[str, ...]
    names: tuple[str, ...]
    scores: NDArray[np.float64]
    together: OverExams
    standing: tuple[RankInterval | None, ...]


def methods_over_exams(rows: Sequence[LeaderboardRow], metric: str, higher: bool) -> MethodsOverExams | None:
    """None for a job with one exam, or where fewer than two methods have them all."""
    exams = tuple(dict.fromkeys(row.testenv for row in rows))
    if len(exams) < 2:
        return None
    # The same method in another exam has the same name: what rows differ in is in their hyperparameters.
    competing = {(row.testenv, row.named()): row for row in rows if row.competes}
    names = tuple(dict.fromkeys(name for _, name in competing))
    table = [[competing.get((exam, name)) for name in names] for exam in exams]
    scores = np.array([[_mean_or_nan(row, metric) for row in line] for line in table], dtype=float).reshape(
        len(exams), -1
    )
    sign = 1.0 if higher else -1.0
    together = over_exams(sign * scores)
    if all(row is None for row in together.rows):
        return None
    return MethodsOverExams(
        metric, higher, exams, names, scores, together, _standing_over_exams(table, metric, sign, together)
    )


def _standing_over_exams(
    table: Sequence[Sequence[LeaderboardRow | None]], metric: str, sign: float, together: OverExams
) -> tuple[RankInterval | None, ...]:
    whole = [i for i, row in enumerate(together.rows) if row is not None]
    found: list[RankInterval | None] = [None] * len(together.rows)
    sources = []
    for line in table:
        values = [row.by_seed[metric] for i in whole if (row := line[i]) is not None]
        if len({len(one) for one in values}) != 1 or len(values[0]) < 2:
            return tuple(found)
        sources.append(Source("seeds", sign * np.array(values, dtype=float).T / len(table)))
    estimates = np.sum([source.draws.mean(axis=0) for source in sources], axis=0)
    for i, standing in zip(whole, standings(estimates, sources).rows, strict=True):
        found[i] = standing
    return tuple(found)


def _mean_or_nan(row: LeaderboardRow | None, metric: str) -> float:
    mean = None if row is None else row.mean(metric)
    return float("nan") if mean is None else mean
