"""What the result of a case says that its contract has run: numbers and texts that its metrics told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ianvs.base.types import CaseResult, RoundResult, ScoreMatrix
from ianvs.exam.metrics.metric_columns import MetricColumn
from ianvs.store import as_record

__all__ = ["told_result"]


def told_result(result: CaseResult, told: Mapping[str, Any], columns: Sequence[MetricColumn], file: Path) -> CaseResult:
    """`result` of a finished case with what its record, in `file`, says under "handed". Raises DamagedError."""
    values = {column.name: told["scores"].get(column.key) for column in columns if not column.metric.mapping}
    rounds = tuple(as_record(RoundResult, stored, file) for stored in told["rounds"])
    marks = [f"contract {told.get('contract', 'ianvs')}, unsealed"]  # which was the only one once
    if told["test_labels"]:
        marks.append("was handed the test labels")
    return replace(
        result,
        dataset=told["dataset"],
        rounds=rounds,
        round_names=tuple(round_.name for round_ in rounds[1:]),
        metrics={name: value if isinstance(value, int | float) else None for name, value in values.items()},
        texts={name: value for name, value in values.items() if isinstance(value, str)},
        matrices=_matrices(told),
        warnings=(*result.warnings, *marks, *told["warnings"], *told["notes"]),
    )


def _matrices(told: Mapping[str, Any]) -> dict[str, ScoreMatrix]:
    """R of the model's metric, if the paradigm examines it on every part; a cell that was not examined is nan."""
    if not told["R"]:
        return {}
    width = max(map(len, told["R"]))
    first = told["untrained"] or [None] * width
    rows = np.array([[*row, *[None] * (width - len(row))] for row in (first, *told["R"])], dtype=float)
    rounds, tests = (tuple(str(k + 1) for k in range(count)) for count in (len(rows) - 1, width))
    return {told["metric"]: ScoreMatrix(rows, told["metric"], rounds, tests)}
