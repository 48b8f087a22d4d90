"""All metrics over a score matrix, and the report that recomputes the numbers of a paper."""

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from ianvs.base.types import ScoreMatrix
from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.registry import metrics
from ianvs.exam.metrics.scorefile import read_scores

Report = dict[str, float | dict[str, list[float | None]] | None]


def matrix_report(inputs: ScoreMatrix) -> Report:
    """Return all metrics over a score matrix under each of their names (`BWT` and `GEM_BWT`); None: undefined.

    "by_round" holds, for the metrics that are defined after every round, their T values.
    """
    every = _over_matrix()
    by_round = {
        name: [_or_none(value) for value in metric.series(inputs)]
        for metric in every
        if metric.series is not None
        for name in (metric.name, *metric.aliases)
    }
    return {**_final(inputs, every), "by_round": by_round}


def compute_file(path: str | Path) -> Report:
    """Return the `matrix_report` of a score matrix in a json or csv file; `read_scores` documents the format.

    A row `R0` is used in place of `untrained` in metrics that are defined by it. Raises DataError, which names the file
    and the entry.
    """
    inputs, first_row = read_scores(Path(path))
    report = matrix_report(inputs)
    if first_row is not None:
        from_untrained = [metric for metric in _over_matrix() if metric.first_row]
        report |= _final(replace(inputs, values=np.vstack([first_row, inputs.R])), from_untrained)
    return report


def _over_matrix() -> list[Metric]:
    return [metric for metric in metrics() if metric.level == "matrix"]


def _final(inputs: ScoreMatrix, over_matrix: Iterable[Metric]) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for metric in over_matrix:
        assert metric.function is not None
        value = metric.function(inputs)
        assert isinstance(value, float)
        values |= dict.fromkeys((metric.name, *metric.aliases), _or_none(value))
    return values


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
