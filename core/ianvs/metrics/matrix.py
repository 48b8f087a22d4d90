"""All metrics over a score matrix, and the report that checks the numbers of a paper.

The formulas are in `ianvs.metrics.survey` (the field's), `online` (of a curve), `suites` (those that one paper proposes
together) and `benchmarks` (those of one benchmark).
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from ianvs.metrics.benchmarks import BENCHMARKS, IANVS
from ianvs.metrics.definition import MatrixMetric
from ianvs.metrics.online import ONLINE
from ianvs.metrics.scorefile import read_scores
from ianvs.metrics.suites import SUITES
from ianvs.metrics.survey import SURVEY
from ianvs.types import ScoreMatrix

__all__ = ["MATRIX_METRICS", "compute_file", "matrix_report"]

Report = dict[str, float | dict[str, list[float | None]] | None]

MATRIX_METRICS: tuple[MatrixMetric, ...] = (*SURVEY, *ONLINE, *SUITES, *BENCHMARKS)


def matrix_report(inputs: ScoreMatrix) -> Report:
    """Every metric over a score matrix under each of its names (`BWT` and `GEM_BWT`); None where it is undefined.

    "by_round" holds, for the metrics that are defined after every round, their T values.
    """
    by_round = {
        name: [_or_none(value) for value in metric.series(inputs)]
        for metric in MATRIX_METRICS
        if metric.series is not None
        for name in (metric.name, *metric.aliases)
    }
    return {**_final(inputs, MATRIX_METRICS), "by_round": by_round}


def compute_file(path: str | Path) -> Report:
    """`matrix_report` of a score matrix in a json or csv file; the format is that of `read_scores`.

    A row `R0` takes the place of `untrained` in Ianvs's two. Raises DataError, which names the file and the entry.
    """
    inputs, first_row = read_scores(Path(path))
    report = matrix_report(inputs)
    if first_row is not None:
        report |= _final(replace(inputs, values=np.vstack([first_row, inputs.R])), IANVS)
    return report


def _final(inputs: ScoreMatrix, metrics: tuple[MatrixMetric, ...]) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for metric in metrics:
        assert metric.function is not None
        value = metric.function(inputs)
        assert isinstance(value, float)
        values |= dict.fromkeys((metric.name, *metric.aliases), _or_none(value))
    return values


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
