"""Chooses one configuration of each algorithm on a part of the results, and reports it on the rest.

A choice on what is reported is inflated: the best of ten looks 1.6 standard deviations of a seed better than it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ianvs.config.spec import SelectSpec
from ianvs.metrics.metric_columns import MetricColumn, columns_named
from ianvs.report import Chosen
from ianvs.results.case_results import numbers_of
from ianvs.stats import summarise
from ianvs.types import CaseResult, ScoreMatrix, TestCase

__all__ = ["SHARE", "select"]

SHARE = 0.25  # of the samples of every test set, where `by: validation` does not say

Columns = Mapping[str, Sequence[MetricColumn]]
Part = Callable[[CaseResult], CaseResult | None]  # what of a case counts; None: nothing


@dataclass(frozen=True)
class _Halves:
    """What of a case a choice is made on, and what is reported of it."""

    choosing: Part
    reporting: Part
    said: str
    saw_the_future: bool = True
    another_exam: bool = False  # then the choice holds for all others


def select(
    results: Iterable[CaseResult],
    cases: Sequence[TestCase],
    spec: SelectSpec,
    sort_by: Sequence[tuple[str, bool]],
    columns: Columns,
    seeds: int,
) -> Chosen:
    """The results of the best configuration of each algorithm in each exam, by the first metric of `sort_by`.

    results: of `cases`; read once here, and again each time that what is chosen is read. A configuration that lacks a
    case can't be chosen; where all do, all stay, and say so.
    """
    name, falls = sort_by[0]
    metric = columns_named(name, [column.name for of_exam in columns.values() for column in of_exam])[0]
    known = sorted({case.seed for case in cases})
    halves = _halves(spec, metric, columns, known)
    scores: dict[tuple[str, str], dict[str, list[float | None]]] = {}
    for result in results:
        if result.case.role or (part := halves.choosing(result)) is None:
            continue
        group = "" if halves.another_exam else part.case.testenv, part.case.algorithm
        value = part.metrics.get(metric) if part.status == "finished" else None
        scores.setdefault(group, {}).setdefault(_configuration(result), []).append(value)
    best = {group: _best(found, falls) for group, found in scores.items()}

    def stays(result: CaseResult) -> bool:
        group = "" if halves.another_exam else result.case.testenv, result.case.algorithm
        return bool(result.case.role) or best.get(group) in (None, _configuration(result))

    def reported() -> Iterator[CaseResult]:
        for result in results:
            if stays(result) and (part := halves.reporting(result)) is not None:
                yield part

    exams = {case.testenv for case in cases}
    tried = {
        (exam, algorithm): len(found)
        for (of, algorithm), found in scores.items()
        for exam in (exams if halves.another_exam else {of})
    }
    left = seeds - (len(_first_half(known)) if spec.by == "seeds" else 0)
    future = " The choice has seen all rounds, the future of the first included." if halves.saw_the_future else ""
    said = f"Each algorithm's configuration is chosen by {metric} {halves.said}.{future}"
    return Chosen(_Again(reported), left, tried, (said,))


class _Again:
    """Results that can be read more than once, as those of a job can."""

    def __init__(self, read: Callable[[], Iterator[CaseResult]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[CaseResult]:
        return self._read()


def _halves(spec: SelectSpec, metric: str, columns: Columns, seeds: Sequence[int]) -> _Halves:
    match spec.by:
        case "seeds":
            first = _first_half(seeds)
            said = f"on seeds {', '.join(map(str, sorted(first)))} and reported on the others"
            return _Halves(_of_seeds(first), _of_seeds(set(seeds) - first), said)
        case "exam":
            said = f"on {spec.exam} and reported on the other exams"
            return _Halves(
                lambda result: result if result.case.testenv == spec.exam else None,
                lambda result: None if result.case.testenv == spec.exam else result,
                said,
                another_exam=True,
            )
        case "validation":
            share = spec.share or SHARE
            said = f"on {100 * share:g} % of the samples of every test set, and {metric} is reported on the others"
            return _Halves(_of_samples(metric, share, chosen=True), _of_samples(metric, share, chosen=False), said)
        case "first_rounds":
            k = spec.rounds or 0
            said = f"on the first {k} rounds and reported on the test sets of the rounds after them"
            return _Halves(
                _of_rounds(lambda matrix: _first(matrix, k), columns),
                _of_rounds(lambda matrix: _rest(matrix, k), columns),
                said,
                saw_the_future=False,
            )


def _first_half(seeds: Sequence[int]) -> set[int]:
    """At least one, and the smaller half of an odd number: what is reported needs more of them."""
    return set(seeds[: max(len(seeds) // 2, 1)])


def _of_seeds(seeds: set[int]) -> Part:
    return lambda result: result if result.case.seed in seeds else None


def _of_samples(metric: str, share: float, *, chosen: bool) -> Part:
    """By groups of samples: a group's pseudo-value is what its samples say (CaseResult.samples)."""

    def part(result: CaseResult) -> CaseResult:
        groups = result.samples.get(metric)
        if groups is None:
            return replace(result, metrics={**result.metrics, metric: None})
        cut = min(max(round(share * len(groups)), 1), len(groups) - 1)
        kept = groups[:cut] if chosen else groups[cut:]
        samples = {**result.samples, metric: kept} if len(kept) > 1 else {}
        return replace(result, metrics={**result.metrics, metric: float(np.mean(kept))}, samples=samples)

    return part


def _of_rounds(cut: Callable[[ScoreMatrix], ScoreMatrix], columns: Columns) -> Part:
    def part(result: CaseResult) -> CaseResult:
        matrices = {name: cut(matrix) for name, matrix in result.matrices.items()}
        kept = next(iter(matrices.values()), None)
        return replace(
            result,
            matrices=matrices,
            round_names=result.round_names if kept is None else kept.rounds,
            metrics=numbers_of(columns.get(result.case.testenv, ()), matrices, result.metrics),
            samples={},
            details={},
        )

    return part


def _first(matrix: ScoreMatrix, k: int) -> ScoreMatrix:
    """The exam of the first k rounds and their test sets."""
    return _cut(matrix, list(range(k + 1)), slice(None, k))


def _rest(matrix: ScoreMatrix, k: int) -> ScoreMatrix:
    """The exam of the rounds after the first k and their test sets; the untrained model stays."""
    return _cut(matrix, [0, *range(k + 1, len(matrix.values))], slice(k, None))


def _cut(matrix: ScoreMatrix, rows: Sequence[int], tests: slice) -> ScoreMatrix:
    def of(vector: Any) -> Any:
        return None if vector is None else vector[tests]

    return replace(
        matrix,
        values=matrix.values[list(rows)][:, tests],
        rounds=matrix.rounds[tests],
        tests=matrix.tests[tests],
        curve=None,
        joint=of(matrix.joint),
        single_task=of(matrix.single_task),
    )


def _configuration(result: CaseResult) -> str:
    """The same in every exam of a job."""
    return repr(sorted((name, repr(value)) for name, value in result.case.hyperparameters.items()))


def _best(found: Mapping[str, Sequence[float | None]], falls: bool) -> str | None:
    means = {name: summarise(values).mean for name, values in found.items()}
    known = {name: mean if falls else -mean for name, mean in means.items() if mean is not None}
    return max(known, key=known.__getitem__) if known else None
