"""The methods of a job with several exams: what each reached in each, and all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.stats import OverExams, RankInterval, Source, over_exams, standings

__all__ = ["MethodsOverExams", "methods_over_exams"]


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
    scores = np.array([[_mean(row, metric) for row in line] for line in table], dtype=float).reshape(len(exams), -1)
    sign = 1.0 if higher else -1.0
    together = over_exams(sign * scores)
    if all(row is None for row in together.rows):
        return None
    return MethodsOverExams(metric, higher, exams, names, scores, together, _standing(table, metric, sign, together))


def _standing(
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


def _mean(row: LeaderboardRow | None, metric: str) -> float:
    mean = None if row is None or metric not in row.metrics else row.metrics[metric].mean
    return float("nan") if mean is None else mean
