"""Rankings of a document as the page shows them: every column tells what it means, sorts, and can be hidden."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from ianvs.results.report.charts.points import rank_bar
from ianvs.results.report.document import Cell, Document, Table, TableColumn
from ianvs.results.report.ranking_table import TOLD_ONCE

_HIDDEN_WHEN_CONSTANT = (*TOLD_ONCE, "testenv")
_ON_PAPER = ("rank", "tier", "algorithm", "metric", "published", "agrees", "adopted")  # paper doesn't scroll


@dataclass(frozen=True)
class PageColumn:
    """about: lines that say what it means. classes: by which the style sheet knows it.

    hidden: every row says the same, which stands above the table.
    """

    title: str
    id: str
    about: tuple[str, ...]
    classes: str
    hidden: bool


@dataclass(frozen=True)
class PageCell:
    """sort: a number or a text by which its column sorts; None: it stands last, whatever the direction."""

    text: str
    sort: float | str | None
    picture: Markup | None = None


@dataclass(frozen=True)
class PageTable:
    """One exam's ranking. rows: (how the row is marked, cells). same: title and value of what is alike in every row."""

    exam: str
    columns: tuple[PageColumn, ...]
    rows: tuple[tuple[str, tuple[PageCell, ...]], ...]
    same: tuple[tuple[str, str], ...]


def page_tables(document: Document) -> list[PageTable]:
    """One for each exam."""
    found = document.tables_of("exam ranking") or [document.ranking]
    return [_page_table(table, number) for number, table in enumerate(found) if table.rows]


def _page_table(table: Table, number: int) -> PageTable:
    """number: of the exam, which makes ids unique."""
    columns, cells = [], []
    for place, column in enumerate(table.columns):
        hidden = column.blank or (column.constant and len(table.rows) > 1 and column.kind in _HIDDEN_WHEN_CONSTANT)
        told = {
            "right": column.align == "right" and column.kind != "rank",
            "constant": hidden,
            "row-name": column.kind == "algorithm",  # it stays in sight
            "minor": column.kind not in _ON_PAPER and not column.telling,
        }
        classes = " ".join(name for name, holds in told.items() if holds)
        columns.append(PageColumn(column.title, f"t{number}c{place}", column.about, classes, hidden))
        cells.append(list(_cells(column)))
    same = tuple((c.title, told[0].text) for c, told in zip(columns, cells, strict=True) if c.hidden and told[0].text)
    marks = ("lacking" if row.mark in ("failed", "unfinished") else row.mark for row in table.rows)
    return PageTable(table.rows[0].exam, tuple(columns), tuple(zip(marks, zip(*cells, strict=True), strict=True)), same)


def _cells(column: TableColumn) -> Iterator[PageCell]:
    for place, cell in enumerate(column.cells):
        # What takes no rank keeps its place among the others.
        sort = float(place) if column.kind == "rank" else _sort(cell)
        yield PageCell(cell.text, sort, rank_bar(*cell.ranks) if cell.ranks else None)


def _sort(cell: Cell) -> float | str | None:
    value = cell.value
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and math.isinf(value):
        return math.copysign(1e308, value)  # which html has a number for
    return None if value == "" or value != value else value
