"""What a paradigm brings back of a case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Outcome", "number"]


@dataclass
class Outcome:
    """The result for the metrics, and what was recorded for those that Ianvs calls system metrics.

    None: this paradigm produces no such thing.
    """

    result: Any = None
    record: list[tuple[Any, Any]] | None = None  # (inferred, transferred) of each pass: both have a length
    matrix: Mapping[str, Sequence[Any]] | None = None  # "all", tasks, "task_avg": rows 0..n of {score: number} or ""
    task_avg_acc: Mapping[str, float | None] | None = None  # {"accuracy": number}
    forget_rate: Sequence[float] | None = None  # of each task
    R: list[list[float | None]] | None = None  # [k][j]: score on test set j after round k + 1
    untrained: list[float | None] | None = None  # the same before round 1
    handed_test_labels: bool = False
    labels_file: str | None = None  # where the true labels stand, if not in the test file as it was given
    measures: dict[str, Any] = field(default_factory=dict)  # further numbers, by name

    def system(self) -> dict[str, Any]:
        """The mapping that Ianvs hands to system metrics, with the objects themselves."""
        found = {
            "samples_transfer_ratio": self.record,
            "MATRIX": self.matrix,
            "task_avg_acc": self.task_avg_acc,
            "forget_rate": self.forget_rate,
        }
        return {name: value for name, value in found.items() if value is not None}

    def numbers(self) -> dict[str, Any]:
        """All that is numbers, ready for json; the record as lengths."""
        record = None if self.record is None else [[len(inferred), len(moved)] for inferred, moved in self.record]
        return {
            "samples_transfer_ratio": record,
            "MATRIX": _plain(self.matrix),
            "task_avg_acc": _plain(self.task_avg_acc),
            "forget_rate": _plain(self.forget_rate),
            "R": _plain(self.R),
            "untrained": _plain(self.untrained),
            "handed_test_labels": self.handed_test_labels,
            "measures": _plain(self.measures),
        }


def number(value: Any) -> float | None:
    """A finite number, also from numpy or torch; None for anything else."""
    if isinstance(value, str | bytes):
        return None
    try:
        told = float(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    return told if math.isfinite(told) else None


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, int):
        return value
    return number(value)
