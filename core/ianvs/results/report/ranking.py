"""The order of rows: within each exam by its metrics, bounds where they belong, what lacks a case last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.significance import ExamSignificance, with_significance
from ianvs.results.stats import rank

__all__ = ["ranked_by_testenv"]


def ranked_by_testenv(
    rows: list[LeaderboardRow], sort_by: Sequence[tuple[str, bool]], baseline: str | None
) -> tuple[tuple[LeaderboardRow, ...], tuple[ExamSignificance, ...]]:
    """The ranking of each exam, in the order of the exams, and how sure it is."""
    found: list[LeaderboardRow] = []
    significance = []
    for exam in dict.fromkeys(row.testenv for row in rows):
        ranked: Sequence[LeaderboardRow] = _ranked(_bounded([row for row in rows if row.testenv == exam]), sort_by)
        if sort_by:
            ranked, told = with_significance(ranked, *sort_by[0], baseline)
            significance += [told] if told else []
        found += ranked
    return tuple(found), tuple(significance)


def _bounded(rows: list[LeaderboardRow]) -> list[LeaderboardRow]:
    """A row that learned in one round what others of its exam learn in several is a bound; among its like it is not."""
    several = any(row.rounds > 1 for row in rows)
    return [replace(row, bound=row.bound or (several and row.rounds == 1)) for row in rows]


def _ranked(rows: list[LeaderboardRow], sort_by: Sequence[tuple[str, bool]]) -> tuple[LeaderboardRow, ...]:
    """Complete rows by `sort_by`, then those with nothing to rank them by, then those that lack a case."""
    descending = [falls for _, falls in sort_by]

    def keys(row: LeaderboardRow) -> list[float | None]:
        return [row.metrics[name].mean if name in row.metrics else None for name, _ in sort_by]

    def ranked(row: LeaderboardRow) -> bool:
        return row.complete and any(value is not None for value in keys(row))

    placed = [row for row in rows if ranked(row)]
    placed = [placed[i] for i in rank([keys(row) for row in placed], descending).order]
    competing = [row for row in placed if row.competes]
    ranks = iter(rank([keys(row) for row in competing], descending).ranks)
    placed = [replace(row, rank=next(ranks)) if row.competes else row for row in placed]
    unranked = [row for row in rows if row.complete and not ranked(row)]
    return (*placed, *unranked, *(row for row in rows if not row.complete))
