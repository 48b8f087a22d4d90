"""The result of a paradigm for a case."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Outcome:
    """The result for the metrics, and the recorded facts for Ianvs's system metrics.

    system: the mapping that Ianvs passes to system metrics, as far as a paradigm has it. "samples_transfer_ratio":
    (inferred, transferred) of each pass. "MATRIX": for "all", tasks and "task_avg" rows 0..n of {score: number} or "".
    "task_avg_acc": {"accuracy": number}. "forget_rate": a number for each task.
    """

    result: object = None
    system: Mapping[str, Any] = field(default_factory=dict)
    R: list[list[float | None]] | None = None  # [k][j]: score on test set j after round k + 1
    untrained: list[float | None] | None = None  # the same before round 1
    handed_test_labels: bool = False
    labels_file: str | None = None  # file with the true labels, if not the given test file
    measures: Mapping[str, object] = field(default_factory=dict)  # further numbers, by name

    def numbers(self) -> dict[str, object]:
        """Return all numbers as a JSON value; samples as their number. None: this paradigm does not have it."""
        passes = self.system.get("samples_transfer_ratio")
        facts = {
            "samples_transfer_ratio": passes and [[len(inferred), len(moved)] for inferred, moved in passes],
            **{name: self.system.get(name) for name in ("MATRIX", "task_avg_acc", "forget_rate")},
            "R": self.R,
            "untrained": self.untrained,
            "handed_test_labels": self.handed_test_labels,
            "measures": self.measures,
        }
        return {name: _plain(value) for name, value in facts.items()}


def number(value: Any) -> float | None:
    """Return a finite number, also from numpy or torch; None for anything else."""
    if isinstance(value, str | bytes):
        return None
    try:
        converted = float(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    return converted if math.isfinite(converted) else None


def numbers_of(rows: Iterable[Iterable[object]] | None) -> list[list[float | None]]:
    """Return the number of each cell {score: number}, accuracy if there are several; None for an empty cell."""
    return [[_cell(cell) for cell in row] for row in rows or []]


def _cell(cell: object) -> float | None:
    if not isinstance(cell, Mapping) or not cell:
        return None
    return number(cell.get("accuracy", next(iter(cell.values()))))


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value if isinstance(value, str | int) else number(value)
