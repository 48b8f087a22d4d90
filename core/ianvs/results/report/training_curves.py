"""What learners told of themselves while they were trained, such as their loss: lines over the rounds, of each row."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import CaseResult
from ianvs.results.report.leaderboard_row import RowKey

_MOST = 400  # points of a line


@dataclass
class _Sums:
    """Over seeds: `at` are (E,) rounds so far, in parts of one."""

    at: NDArray[np.float64]
    count: int
    total: NDArray[np.float64]
    squares: NDArray[np.float64]


class TrainingCurves:
    """Takes results one after the other. Seeds that told at other places than the first are left out."""

    def __init__(self) -> None:
        self._found: dict[str, dict[RowKey, _Sums]] = {}

    def add(self, key: RowKey, result: CaseResult) -> None:
        for name in dict.fromkeys(name for round_ in result.rounds for name in round_.curves):
            both = [(r.index - 1 + share, value) for r in result.rounds for share, value in r.curves.get(name, ())]
            step = -(-len(both) // _MOST)
            at, values = np.array(both[step - 1 :: step]).T
            sums = self._found.setdefault(name, {}).setdefault(key, _Sums(at, 0, 0 * values, 0 * values))
            if np.array_equal(sums.at, at):
                sums.count, sums.total, sums.squares = sums.count + 1, sums.total + values, sums.squares + values**2

    @property
    def names(self) -> list[str]:
        return list(self._found)

    def of(self, name: str) -> dict[RowKey, tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]]:
        """Of each row: (E,) rounds so far, mean over seeds, standard deviation."""
        lines = {}
        for key, sums in self._found[name].items():
            mean = sums.total / sums.count
            variance = np.maximum(0, sums.squares / sums.count - mean**2) * sums.count / max(1, sums.count - 1)
            lines[key] = (sums.at, mean, np.sqrt(variance))
        return lines
