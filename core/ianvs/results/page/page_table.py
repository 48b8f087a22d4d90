"""The leaderboard as the page's tables: cells with what they sort by, and columns with what they mean."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from markupsafe import Markup

from ianvs.exam.metrics.metric import Metric
from ianvs.results.page.point_charts import rank_bar
from ianvs.results.report import Leaderboard, LeaderboardRow
from ianvs.results.report.columns import Column
from ianvs.results.report.constant_columns import TOLD_ONCE
from ianvs.results.report.layout import TextColumn, text_columns, varied

__all__ = ["PageTable", "TableCell", "TableColumn", "page_table"]

_HIDDEN_WHEN_CONSTANT = (*TOLD_ONCE, "testenv")
_ON_PAPER = ("rank", "tier", "algorithm", "metric", "published", "agrees", "adopted")  # paper doesn't scroll


@dataclass(frozen=True)
class TableColumn:
    """about: lines that say what it means. classes: by which the style sheet knows it.

    hidden: every row says the same, which stands above the table.
    """

    title: str
    id: str
    about: tuple[str, ...]
    classes: str
    hidden: bool


@dataclass(frozen=True)
class TableCell:
    """sort: a number or a text by which its column sorts; None: it stands last, whatever the direction."""

    text: str
    sort: float | str | None
    picture: Markup | None = None


@dataclass(frozen=True)
class PageTable:
    """One exam's ranking. rows: (id, how the row is marked, cells)."""

    exam: str
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[str, str, tuple[TableCell, ...]], ...]
    same: tuple[tuple[str, str], ...]  # title and value of what is the same in every row


def page_table(leaderboard: Leaderboard, exam: str, number: int) -> PageTable:
    """number: of the exam, which makes ids unique."""
    every = [n for n, row in enumerate(leaderboard.rows) if row.testenv == exam]
    rows = [leaderboard.rows[n] for n in every]
    board = replace(leaderboard, rows=tuple(rows))
    shown = text_columns(board)
    metrics = dict(zip([c.key for c in leaderboard.columns if c.kind == "metric"], leaderboard.metrics, strict=True))
    columns: list[TableColumn] = []
    cells: list[list[TableCell]] = []
    telling = varied(leaderboard)
    for place, column in enumerate(shown):
        kind = column.column.kind
        blank = not any(column.cells)
        hidden = blank or (column.constant and len(rows) > 1 and kind in _HIDDEN_WHEN_CONSTANT)
        told = {
            "right": column.right and kind != "rank",
            "constant": hidden,
            "row-name": kind == "algorithm",  # it stays in sight
            "minor": kind not in _ON_PAPER and column.column.key not in telling,
        }
        classes = " ".join(name for name, holds in told.items() if holds)
        about = (*_about(column.column), *_definition(metrics.get(column.column.key) if kind == "metric" else None))
        columns.append(TableColumn(column.title, f"t{number}c{place}", about, classes, hidden))
        cells.append(_cells(board, column))
    same = tuple((c.title, cells[n][0].text) for n, c in enumerate(columns) if c.hidden and cells[n][0].text)
    marked = tuple(
        (f"r{n}", _mark(row), tuple(column[place] for column in cells))
        for place, (n, row) in enumerate(zip(every, rows, strict=True))
    )
    return PageTable(exam, tuple(columns), marked, same)


def _about(column: Column) -> Iterable[str]:
    if column.meaning:
        yield f"{column.meaning[:1].upper()}{column.meaning[1:].rstrip('.')}."
    if column.higher_is_better is not None:
        yield "Higher is better." if column.higher_is_better else "Lower is better."


def _definition(metric: Metric | None) -> Iterable[str]:
    if metric is not None and metric.formula:
        yield f"Formula: {metric.formula}"
    if metric is not None and metric.source and metric.source not in metric.summary:
        yield f"Source: {metric.source}"


def _cells(board: Leaderboard, column: TextColumn) -> list[TableCell]:
    values = [board.cell(row, column.column) for row in board.rows]
    ranked = sum(row.rank is not None for row in board.rows)
    found = []
    for place, (row, value, text) in enumerate(zip(board.rows, values, column.cells, strict=True)):
        sort: float | str | None = value
        picture = None
        if column.column.kind == "rank":
            # What takes no rank keeps its place among the others.
            sort = float(place)
            if row.standing is not None and row.rank is not None:
                picture = rank_bar(row.standing.low, row.standing.high, row.rank, ranked)
        elif isinstance(value, float) and math.isinf(value):
            sort = math.copysign(1e308, value)  # which html has a number for
        elif value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
            sort = None
        elif isinstance(value, bool):
            sort = str(value)
        found.append(TableCell(text, sort, picture))
    return found


def _mark(row: LeaderboardRow) -> str:
    if row.failures or not row.complete:
        return "lacking"
    return "bound" if row.bound else "over" if row.over_budget else "best" if row.rank == 1 else ""
