"""What a paradigm brings back of a case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Outcome:
    """The result for the metrics, and what was recorded for those that Ianvs calls system metrics.

    None: this paradigm produces no such thing.
    """

    result: object = None
    record: list[tuple[Sized, Sized]] | None = None  # (inferred, transferred) of each pass
    matrix: Mapping[str, Sequence[object]] | None = None  # "all", tasks, "task_avg": rows 0..n of {score: number} or ""
    task_avg_acc: Mapping[str, float | None] | None = None  # {"accuracy": number}
    forget_rate: Sequence[float] | None = None  # of each task
    R: list[list[float | None]] | None = None  # [k][j]: score on test set j after round k + 1
    untrained: list[float | None] | None = None  # the same before round 1
    handed_test_labels: bool = False
    labels_file: str | None = None  # where the true labels stand, if not in the test file as it was given
    measures: Mapping[str, object] = field(default_factory=dict)  # further numbers, by name

    @property
    def _recorded(self) -> dict[str, object]:
        return {
            "samples_transfer_ratio": self.record,
            "MATRIX": self.matrix,
            "task_avg_acc": self.task_avg_acc,
            "forget_rate": self.forget_rate,
        }

    def system(self) -> dict[str, object]:
        """The mapping that Ianvs hands to system metrics, with the objects themselves."""
        return {name: value for name, value in self._recorded.items() if value is not None}

    def numbers(self) -> dict[str, object]:
        """All that is numbers, ready for json; the record as lengths."""
        record = None if self.record is None else [[len(inferred), len(moved)] for inferred, moved in self.record]
        facts = {
            **self._recorded,
            "samples_transfer_ratio": record,
            "R": self.R,
            "untrained": self.untrained,
            "handed_test_labels": self.handed_test_labels,
            "measures": self.measures,
        }
        return {name: _plain(value) for name, value in facts.items()}


def number(value: Any) -> float | None:
    """A finite number, also from numpy or torch; None for anything else."""
    if isinstance(value, str | bytes):
        return None
    try:
        converted = float(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    return converted if math.isfinite(converted) else None


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value if isinstance(value, str | int) else number(value)
