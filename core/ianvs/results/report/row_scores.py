"""Scores of each row over its seeds for charts: matrices, learning curves, and scores of parts such as classes.

Collectors take results one after the other and keep little of each.
"""

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import CaseResult, Curve, ScoreMatrix
from ianvs.results.report.aggregate_cases import common_name
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import LeaderboardRow, RowKey
from ianvs.results.report.training_curves import TrainingCurves

BY_PART = "by part: "  # prefix of a score in `MatrixMeans` whose matrix has a column for each part
_BROKEN_DOWN = ("topic ", "turn_")  # prefixes of the parts of scores of texts


def complete_rows(leaderboard: Leaderboard) -> dict[RowKey, LeaderboardRow]:
    """Return the rows with all cases, which charts show."""
    return {(row.id, row.algorithm): row for row in leaderboard.rows if row.complete}


def reported_results(
    rows: Mapping[RowKey, LeaderboardRow], results: Iterable[CaseResult]
) -> Iterator[tuple[RowKey, CaseResult]]:
    """Yield the results that `rows` report, each with the key of its row, without seeds that only selected a
    configuration.
    """
    for result in results:
        key = (result.case.row, result.case.algorithm)
        if key in rows and result.status == "finished" and result.case.seed in rows[key].seeds:
            yield key, result


@dataclass(frozen=True)
class RowScore:
    """A score of a row over its seeds.

    Attributes:
        values: (T + 1, J) mean score matrix; row 0 is the untrained model. nan: not evaluated, or not finite, for some
            seed.
        learned: (T,) mean over seeds of `taught_means`.
        spread: (T,) its sample standard deviation; 0 for one seed.
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
    def lost(self) -> float:
        """The decrease of scores on earlier test sets from the end of their round to the end of the last one.

        It equals -BWT (Lopez-Paz & Ranzato 2017) for a score of which higher is better.
        """
        if not self.per_round or len(self.tests) < 2:
            return float("nan")
        change = np.diagonal(self.values[1:])[:-1] - self.values[-1, :-1]
        return float(change.mean() if self.higher_is_better else -change.mean())


def taught_means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (T,) the mean score after each round over the test sets of the rounds so far.

    Nan where none was evaluated.

    It is the mean over all evaluated test sets if they belong to no round, or if those of the rounds so far are never
    evaluated. values: (T + 1, J), row 0 is the untrained model.
    """
    rounds = len(values) - 1
    evaluated = values[1:].copy()
    so_far = np.tri(rounds, dtype=bool)
    if values.shape[1] == rounds and not np.isnan(evaluated[so_far]).all():
        evaluated[~so_far] = np.nan
    return _means_of_known(evaluated)


def _means_of_known(rows: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the mean of each row, ignoring nan; nan if a row has only nan."""
    finite = (row[~np.isnan(row)] for row in rows)
    # The same as mean(), without its argument checks.
    return np.array([np.add.reduce(row) / row.size if row.size else np.nan for row in finite], dtype=np.float64)


class MatrixMeans:
    """Accumulates results one after the other; keeps a row's matrices only until its last seed.

    seeds: number of cases of a row.
    """

    def __init__(self, seeds: int) -> None:
        self._seeds = seeds
        self._waiting = defaultdict[RowKey, list[Mapping[str, ScoreMatrix]]](list)
        self.of_scores: dict[str, dict[RowKey, RowScore]] = {}

    def add(self, key: RowKey, result: CaseResult) -> None:
        self._waiting[key].append({**result.matrices, **_part_matrices(result)})
        if len(self._waiting[key]) < self._seeds:
            return
        seeds = self._waiting.pop(key)
        for score in seeds[0]:
            matrices = [of_seed[score] for of_seed in seeds if score in of_seed]
            same = len({matrix.values.shape for matrix in matrices}) == 1
            if len(matrices) == len(seeds) and same and (mean := _mean(matrices)) is not None:
                self.of_scores.setdefault(score, {})[key] = mean

    def of_exam(self, rows: Mapping[RowKey, LeaderboardRow], exam: str) -> dict[str, dict[RowKey, RowScore]]:
        """Return by score those of an exam's `rows` that have it, in their order."""
        rows = {key: row for key, row in rows.items() if row.testenv == exam}
        every = {score: {key: means[key] for key in rows if key in means} for score, means in self.of_scores.items()}
        return {score: by_row for score, by_row in every.items() if by_row}


def _part_matrices(result: CaseResult) -> dict[str, ScoreMatrix]:
    """Return matrices with a column for each part of scores with several parts (classes) that one test set has
    alone.
    """
    matrices = {}
    for score, details in result.details.items():
        whole = result.matrices.get(score)
        owners = [(part, j) for j, of_test in enumerate(details[-1]) for part in of_test or ()]
        if whole is not None and np.isnan(whole.values).all() and len(owners) == len(dict(owners)) > 1:
            values = np.array([[(row[j] or {}).get(part) for part, j in owners] for row in details], np.float64)
            matrices[BY_PART + score] = replace(whole, values=values, tests=tuple(dict(owners)))
    return matrices


def _mean(matrices: list[ScoreMatrix]) -> RowScore | None:
    # Infinite values can't be drawn: they are treated like missing ones.
    seeds = [np.where(np.isfinite(matrix.values), matrix.values, np.nan) for matrix in matrices]
    values = np.mean(seeds, axis=0)
    if np.isnan(values).all():
        return None  # a score of several parts, which bars show better
    curves = np.array([taught_means(matrix) for matrix in seeds])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # nan - nan
        spread = curves.std(axis=0, ddof=1) if len(curves) > 1 else np.zeros(curves.shape[1])
    return RowScore(
        matrices[0].metric,
        values,
        curves.mean(axis=0),
        spread,
        _common("round", [matrix.rounds for matrix in matrices]),
        _common("test set", [matrix.tests for matrix in matrices]),
        matrices[0].higher_is_better,
    )


def _common(kind: str, of_seeds: list[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(common_name(names, kind, k) for k, names in enumerate(zip(*of_seeds, strict=True)))


class ClassScores:
    """Keeps scores of several parts, such as one for each class, after the last round."""

    def __init__(self) -> None:
        # By row, score and position of the test set: its names, and the parts of each seed.
        self._parts: dict[tuple[RowKey, str, int], tuple[set[str], list[Mapping[str, float | None]]]] = {}

    def add(self, key: RowKey, result: CaseResult) -> None:
        for score, details in result.details.items():
            tests = next(iter(result.matrices.values())).tests if result.matrices else ()
            for j, (test, parts) in enumerate(zip(tests, details[-1], strict=False)):
                parts = _parts_on_scale(score, parts or {})
                if len(parts) > 1:
                    names, of_seeds = self._parts.setdefault((key, score, j), (set(), []))
                    names.add(test)
                    of_seeds.append(parts)

    def means(
        self, rows: Mapping[RowKey, LeaderboardRow]
    ) -> dict[tuple[str, str, str], dict[RowKey, dict[str, float]]]:
        """Return by (exam, score, test set) the mean over seeds of each part for each of `rows`."""
        parts: dict[tuple[str, str, str], dict[RowKey, dict[str, float]]] = {}
        for (key, score, j), (names, of_seeds) in self._parts.items():
            test = common_name(names, "test set", j)
            if key in rows and (means := _part_means(of_seeds)):
                parts.setdefault((rows[key].testenv, score, test), {})[key] = means
        return parts


def _parts_on_scale(score: str, parts: Mapping[str, float | None]) -> Mapping[str, float | None]:
    """Return the parts that are the score on a subset of the samples, such as a topic, without counts beside them."""
    comparable = {name: value for name, value in parts.items() if name == score or name.startswith(_BROKEN_DOWN)}
    return comparable if score in parts else parts


def _part_means(of_seeds: Sequence[Mapping[str, float | None]]) -> dict[str, float]:
    """Return the mean over seeds of each part that all of them have."""
    means = {}
    for part in of_seeds[0]:
        values = [parts.get(part) for parts in of_seeds]
        defined = [value for value in values if value is not None]
        if len(defined) == len(values):
            means[part] = float(np.mean(defined))
    return means


class PassedScores:
    """Collects scores of rows for charts while the leaderboard iterates over results, so that these are read once.

    Attributes:
        seeds: Number of cases of a row.
        examples: The folder of a finished result for each exam.
        training: Quantities that learners reported.
    """

    def __init__(self, seeds: int) -> None:
        self.matrices, self.parts, self.training = MatrixMeans(seeds), ClassScores(), TrainingCurves()
        self.examples: dict[str, Path] = {}

    def watch(self, results: Iterable[CaseResult]) -> Iterator[CaseResult]:
        """Yield the same results, collecting scores of finished cases."""
        for result in results:
            case = result.case
            if result.status == "finished" and not case.role:
                self.examples.setdefault(case.testenv, result.directory)
                self.matrices.add((case.row, case.algorithm), result)
                self.parts.add((case.row, case.algorithm), result)
                self.training.add((case.row, case.algorithm), result)
            yield result


@dataclass(frozen=True)
class StreamLine:
    """The score of a row on what has begun to arrive: (E,) training samples so far, mean over seeds, standard
    deviation.
    """

    samples: NDArray[np.int64] | NDArray[np.float64]
    mean: NDArray[np.float64]
    spread: NDArray[np.float64]


class StreamCurves:
    """Keeps the curves of the first score."""

    def __init__(self, rows: Mapping[RowKey, LeaderboardRow]) -> None:
        self._rows = rows
        self._curves: dict[RowKey, list[tuple[NDArray[np.int64], NDArray[np.float64]]]] = {}
        self._ends: dict[str, NDArray[np.int64]] = {}
        self.score = ""

    def add(self, key: RowKey, result: CaseResult) -> None:
        first = next(iter(result.matrices.values()), None)
        if first is None or first.curve is None:
            return
        self.score, curve = first.metric, first.curve
        self._curves.setdefault(key, []).append((curve.samples, curve_means(curve)))
        if not self._rows[key].bound:  # an upper bound repeats earlier rounds
            ends = curve.samples[np.flatnonzero(np.diff(curve.ended, prepend=0))]
            self._ends.setdefault(self._rows[key].testenv, ends)

    def ends(self, exam: str) -> NDArray[np.int64]:
        """Return samples so far at the end of each round."""
        return self._ends.get(exam, np.empty(0, dtype=np.int64))

    def lines(self, exam: str) -> dict[RowKey, StreamLine]:
        """Return the curves of an exam's rows in the order of the leaderboard.

        Not of rows whose seeds differ in evaluation points.

        The samples of an upper bound are counted repeatedly, so it is drawn at the ends of the others' rounds.
        """
        lines, ends = {}, self.ends(exam)
        for key in (key for key, row in self._rows.items() if row.testenv == exam and key in self._curves):
            samples = self._curves[key][0][0]
            if any(not np.array_equal(samples, other) for other, _ in self._curves[key]):
                continue
            values = np.stack([means for _, means in self._curves[key]])
            spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
            at = ends if self._rows[key].bound and len(ends) == len(samples) else samples
            lines[key] = StreamLine(at, values.mean(axis=0), spread)
        return lines


def curve_means(curve: Curve) -> NDArray[np.float64]:
    """Return (E,) mean score over the test sets of rounds begun by then.

    Over all evaluated ones if they belong to none.
    """
    rounds = int(curve.ended.max(initial=0))
    both = zip(curve.scores, curve.begun, strict=True)
    return _means_of_known(row[:begun] if len(row) == rounds else row for row, begun in both)
