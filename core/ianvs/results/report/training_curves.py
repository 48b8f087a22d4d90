"""Curves of quantities that learners report during training, such as their loss, and of prequential scores, by row."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import CaseResult
from ianvs.exam.metrics.stream_record import running
from ianvs.results.report.leaderboard_row import RowKey

_MOST = 400  # points of a line
OF_STREAM = {"scores": "online accuracy so far", "gains": "gain so far"}
Array = NDArray[np.float64]


class TrainingCurves:
    """Accumulates results one after the other as sums.

    Seeds that reported at other points than the first are left out.
    """

    def __init__(self) -> None:
        self._sums: dict[str, dict[RowKey, tuple[Array, int, Array, Array]]] = {}

    def add(self, key: RowKey, result: CaseResult) -> None:
        for name, values in result.stream.items():
            if count := len(values):
                at = np.arange(1, count + 1) / count * len(result.round_names)
                self._add(OF_STREAM[name], key, np.column_stack([at, running(values)]))
        for name in dict.fromkeys(name for round_ in result.rounds for name in round_.curves):
            both = [(r.index - 1 + share, value) for r in result.rounds for share, value in r.curves.get(name, ())]
            self._add(name, key, np.array(both))

    def _add(self, name: str, key: RowKey, both: Array) -> None:
        step = -(-len(both) // _MOST)
        at, new = both[step - 1 :: step].T
        rows = self._sums.setdefault(name, {})
        first, count, total, squares = rows.get(key, (at, 0, 0 * new, 0 * new))
        if np.array_equal(first, at):
            rows[key] = (first, count + 1, total + new, squares + new**2)

    def lines(self) -> Iterator[tuple[str, dict[RowKey, tuple[Array, Array, Array]]]]:
        """Yield each name with (E,) rounds so far, mean over seeds and standard deviation of each row."""
        for name, rows in self._sums.items():
            lines = {}
            for key, (at, count, total, squares) in rows.items():
                variance = np.maximum(0, squares - total**2 / count) / max(1, count - 1)
                lines[key] = (at, total / count, np.sqrt(variance))
            yield name, lines
