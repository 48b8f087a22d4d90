"""Scores of several parts, such as one for each class: their means over the seeds of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ianvs.base.types import CaseResult
from ianvs.results.report.gather import common_name
from ianvs.results.report.leaderboard_row import LeaderboardRow, RowKey

__all__ = ["ClassScores"]

_BROKEN_DOWN = ("topic ", "turn_")  # how names of parts begin that scores of texts break a score down to


class ClassScores:
    """Takes results one after the other; keeps what their scores say of parts after the last round."""

    def __init__(self, rows: Mapping[RowKey, LeaderboardRow]) -> None:
        self._rows = rows
        self._found: dict[tuple[RowKey, str, int], list[Mapping[str, float | None]]] = {}
        self._names: dict[tuple[RowKey, str, int], dict[str, None]] = {}

    def add(self, key: RowKey, result: CaseResult) -> None:
        for score, details in result.details.items():
            tests = next(iter(result.matrices.values())).tests if result.matrices else ()
            for j, (test, found) in enumerate(zip(tests, details[-1], strict=False)):
                found = _of_one_scale(score, found or {})
                if len(found) > 1:
                    self._found.setdefault((key, score, j), []).append(found)
                    self._names.setdefault((key, score, j), {})[test] = None

    def means(self) -> dict[tuple[str, str, str], dict[RowKey, dict[str, float]]]:
        """By (exam, score, test set): the mean over seeds of each part of each row."""
        parts: dict[tuple[str, str, str], dict[RowKey, dict[str, float]]] = {}
        for (key, score, j), found in self._found.items():
            test = common_name(self._names[key, score, j], "test set", j)
            if means := _means(found):
                parts.setdefault((self._rows[key].testenv, score, test), {})[key] = means
        return parts


def _of_one_scale(score: str, parts: Mapping[str, float | None]) -> Mapping[str, float | None]:
    """The parts that are the score itself on a part of the samples, such as a topic; without counts beside them."""
    told = {name: value for name, value in parts.items() if name == score or name.startswith(_BROKEN_DOWN)}
    return told if score in parts else parts


def _means(found: Sequence[Mapping[str, float | None]]) -> dict[str, float]:
    """Mean over seeds of each part that all of them have."""
    means = {}
    for part in found[0]:
        values = [parts.get(part) for parts in found]
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            means[part] = float(np.mean(known))
    return means
