"""The numbers behind pictures: tables beside them, and score matrices as compact json."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ianvs.results.page.shown_rows import ShownRow
from ianvs.results.report.leaderboard_row import RowKey
from ianvs.results.report.row_scores import RowScore
from ianvs.results.report.values import shown_number

__all__ = ["Matrices", "NumberTable", "curve_numbers", "kept_numbers", "part_numbers", "point_numbers"]

_MOST = 1_500_000  # cells of score matrices that a page holds: some 6 MB
_MOST_SHOWN = 8_000  # cells of a table beside a picture


@dataclass(frozen=True)
class NumberTable:
    """heads of the columns; rows: (name, cells). left_out: rows for which there is no room."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    left_out: int = 0


class Matrices:
    """Score matrices for the page's script:
    {"names": [[rounds, tests], ...], "of": {id: [which names, unit, numbers]}}.

    numbers: row by row in thousandths of `unit`, null where not evaluated.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
        self._of: dict[str, list[object]] = {}
        self._cells = 0

    def add(self, id_: str, score: RowScore) -> bool:
        """False where there is no room for it."""
        if self._cells + score.values.size > _MOST:
            return False
        self._cells += score.values.size
        which = self._names.setdefault((score.rounds, score.tests), len(self._names))
        largest = float(np.nanmax(np.abs(score.values)))
        unit = 10.0 ** max(0, math.floor(math.log10(largest)) - 2) if largest >= 1000 else 1.0
        thousandths = np.round(score.values.ravel() * 1000 / unit)
        numbers = [None if math.isnan(value) else int(value) for value in thousandths.tolist()]
        self._of[id_] = [which, unit, numbers]
        return True

    def as_data(self) -> dict[str, object]:
        names = [[list(rounds), list(tests)] for rounds, tests in self._names]
        return {"names": names, "of": self._of}


def curve_numbers(rows: Sequence[ShownRow], scores: Mapping[RowKey, RowScore]) -> NumberTable:
    """Mean and spread after each round."""
    known = [(one, scores[one.key]) for one in rows if one.key in scores]
    longest = max((score for _, score in known), key=lambda score: len(score.rounds))
    lines = [
        (one.label, tuple(_spread(*both) for both in zip(score.learned.tolist(), score.spread.tolist(), strict=True)))
        for one, score in known
    ]
    return _table(("Row", *(f"{k}. {name}" for k, name in enumerate(longest.rounds, 1))), lines)


def kept_numbers(rows: Sequence[ShownRow], scores: Mapping[RowKey, RowScore]) -> NumberTable:
    """Each test set's score just after its round, and at the end."""
    known = [(one, scores[one.key]) for one in rows if one.key in scores and scores[one.key].per_round]
    longest = max((score for _, score in known), key=lambda score: len(score.tests))
    lines = [
        (
            one.label,
            tuple(f"{_short(score.values[j + 1, j])} → {_short(score.values[-1, j])}" for j in range(len(score.tests))),
        )
        for one, score in known
    ]
    return _table(("Row", *longest.tests), lines)


def point_numbers(heads: Sequence[str], points: Sequence[tuple[str, Sequence[float]]]) -> NumberTable:
    """heads: of the columns after the first."""
    return _table(("Row", *heads), [(name, tuple(f"{value:.4g}" for value in values)) for name, values in points])


def part_numbers(rows: Sequence[ShownRow], bars: Mapping[str, Mapping[str, float]]) -> NumberTable:
    """bars: by id of the shown row, by part."""
    names = list(dict.fromkeys(part for parts in bars.values() for part in parts))
    lines = [
        (one.label, tuple(_short(bars[one.id].get(name, math.nan)) for name in names)) for one in rows if one.id in bars
    ]
    return _table(("Row", *names), lines)


def _table(heads: tuple[str, ...], lines: Sequence[tuple[str, tuple[str, ...]]]) -> NumberTable:
    room = max(1, _MOST_SHOWN // len(heads))
    return NumberTable(heads, tuple(lines[:room]), max(0, len(lines) - room))


def _spread(mean: float, spread: float) -> str:
    return f"{_short(mean)} ± {_short(spread)}" if spread else _short(mean)


def _short(value: float) -> str:
    if math.isnan(value):
        return "–"
    return shown_number(value, 3) if abs(value) < 1000 else f"{value:.4g}"
