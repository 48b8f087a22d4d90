"""What repetitions of the same case say: how much of a score is noise of the machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ianvs.results.report.gather import RowCases
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.values import shown_hyperparameters

__all__ = ["noise_statement"]


def noise_statement(rows: Iterable[LeaderboardRow], repeated: Sequence[RowCases], metric: str) -> str:
    """ "" where nothing was repeated, or not to its end."""
    known = {(row.testenv, row.algorithm, str(dict(row.hyperparameters))): row for row in rows}
    widest, where, count = 0.0, "", 0
    for group in repeated:
        case = group.case
        row = known.get((case.testenv, case.algorithm, str(shown_hyperparameters(case.hyperparameters))))
        if row is None:
            continue
        first = dict(zip(row.seeds, row.by_seed.get(metric, ()), strict=False)).get(case.seed)
        for value in group.metrics.get(metric, ()):
            if value is None or first is None:
                continue
            count += 1
            if abs(value - first) > widest:
                widest, where = abs(value - first), row.algorithm
    if not count:
        return ""
    if not widest:
        return f"Repeated with the same seed, every case gave the same {metric} ({count} repetitions)."
    return f"Repeated with the same seed, {metric} differs by up to {widest:.2g} ({where}; {count} repetitions)."
