"""What pictures show of each row: the mean score matrix over its seeds, and how it learned, with the spread."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import CaseResult, ScoreMatrix
from ianvs.results.report.gather import common_name
from ianvs.results.report.leaderboard_row import LeaderboardRow, RowKey

__all__ = ["MatrixMeans", "RowScore", "taught_means"]


@dataclass(frozen=True)
class RowScore:
    """One score of one row, over its seeds.

    values: (T + 1, J) mean score matrix; row 0 is the untrained model. nan: not evaluated, or not finite, in some seed.
    learned, spread: (T,) mean and sample standard deviation over seeds of `taught_means`; spread is 0 for one seed.
    """

    score: str
    values: NDArray[np.float64]
    learned: NDArray[np.float64]
    spread: NDArray[np.float64]
    rounds: tuple[str, ...]
    tests: tuple[str, ...]
    higher_is_better: bool = True

    @property
    def per_round(self) -> bool:
        """Whether each round has a test set of its own."""
        return len(self.tests) == len(self.rounds)

    @property
    def just_learned(self) -> float:
        """Mean score on each test set just after its round; nan where rounds have none."""
        return float(np.diagonal(self.values[1:]).mean()) if self.per_round else float("nan")

    @property
    def kept(self) -> float:
        """Mean score after the last round on what was taught in earlier ones; nan where there is none."""
        return float(self.values[-1, :-1].mean()) if self.per_round and len(self.tests) > 1 else float("nan")

    @property
    def lost(self) -> float:
        """By how much the score on earlier rounds' test sets got worse: just after their rounds, to after the last one.

        It is -BWT (Lopez-Paz & Ranzato 2017) of a score of which higher is better.
        """
        if not self.per_round or len(self.tests) < 2:
            return float("nan")
        change = np.diagonal(self.values[1:])[:-1] - self.values[-1, :-1]
        return float(change.mean() if self.higher_is_better else -change.mean())


def taught_means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(T,) after each round the mean score over the test sets of the rounds so far; over all asked ones where test sets
    belong to no round, or where none of the rounds so far is ever asked. nan where nothing was asked.

    values: (T + 1, J), row 0 is the untrained model.
    """
    rounds = len(values) - 1
    asked = values[1:].copy()
    so_far = np.tri(rounds, dtype=bool)
    if values.shape[1] == rounds and not np.isnan(asked[so_far]).all():
        asked[~so_far] = np.nan
    means = np.full(rounds, np.nan)
    for k, row in enumerate(asked):
        known = row[~np.isnan(row)]
        if known.size:
            means[k] = np.add.reduce(known) / known.size  # as mean() does, without what that looks at before
    return means


class MatrixMeans:
    """Takes results one after the other; keeps a row's matrices only until its last seed has come."""

    def __init__(self, rows: Mapping[RowKey, LeaderboardRow]) -> None:
        self._rows = rows
        self._waiting = defaultdict[RowKey, list[Mapping[str, ScoreMatrix]]](list)
        self.of_scores: dict[str, dict[RowKey, RowScore]] = {}

    def add(self, key: RowKey, result: CaseResult) -> None:
        self._waiting[key].append(result.matrices)
        if len(self._waiting[key]) < self._rows[key].expected:
            return
        seeds = self._waiting.pop(key)
        for score in seeds[0]:
            found = [of_seed[score] for of_seed in seeds if score in of_seed]
            same = len({one.values.shape for one in found}) == 1
            if len(found) == len(seeds) and same and (mean := _mean(found)) is not None:
                self.of_scores.setdefault(score, {})[key] = mean

    def in_order(self, score: str, exam: str) -> dict[RowKey, RowScore]:
        """Those of an exam's rows that have the score, in the order of the leaderboard."""
        found = self.of_scores.get(score, {})
        return {key: found[key] for key, row in self._rows.items() if row.testenv == exam and key in found}


def _mean(found: list[ScoreMatrix]) -> RowScore | None:
    # What grew without bounds can't be drawn: it is as unknown as what was not evaluated.
    seeds = [np.where(np.isfinite(one.values), one.values, np.nan) for one in found]
    values = np.mean(seeds, axis=0)
    if np.isnan(values).all():
        return None  # a score of several parts: its bars say more
    curves = np.array([taught_means(one) for one in seeds])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # nan - nan
        spread = curves.std(axis=0, ddof=1) if len(curves) > 1 else np.zeros(curves.shape[1])
    return RowScore(
        found[0].metric,
        values,
        curves.mean(axis=0),
        spread,
        _common("round", [one.rounds for one in found]),
        _common("test set", [one.tests for one in found]),
        found[0].higher_is_better,
    )


def _common(kind: str, of_seeds: list[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(common_name(names, kind, k) for k, names in enumerate(zip(*of_seeds, strict=True)))
