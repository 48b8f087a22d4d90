"""A document on a terminal, fitted to its width; a plain table without a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ianvs.base.errors import shown_path
from ianvs.base.visible_text import visible
from ianvs.results.report.build_document import document_of
from ianvs.results.report.columns import Column
from ianvs.results.report.document import BELOW, FIRST, Cell, Document, FailureGroup, Table, TableColumn
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.markdown import aligned
from ianvs.results.report.ranking_table import constants_note, without_constants

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

_SETTINGS = Column("Hyperparameters", "hyperparameter", "", "the hyperparameters in which rows differ")
_SETTINGS_WIDTH = 44  # characters; longer texts are folded
_NARROWEST_SETTINGS = 20
_GAP = 2  # blanks between two columns
_MOST_FAILURES = 20
_MOST_LINES = 2  # lines of a kind
_PADDING = 2  # blanks that tabulate adds to titles
_PIPE = 120  # width of a line if it is not known
# In reverse order of removal.
_IMPORTANCE = (
    *("metric", "agrees", "published", "tried", "pareto", "cost", "module", "dataset", "round", "paradigm", "time"),
    "hyperparameter",
)
_EXPLAINED = ("metric", "hyperparameter")  # explained by a definition or by their name
_OUT_OF_RANK = ("bound", "over", "changed", "unsaved", "untrained")
_STYLES = {"failed": "red", "unfinished": "yellow", **dict.fromkeys(_OUT_OF_RANK, "dim")}
"""Explanations by marks of rows."""


def render(leaderboard: Leaderboard, console: Console | None = None, *, explain: bool = False) -> None:
    """Print the leaderboard and its most important notes.

    Explain: also its certainty and the meaning of each metric.
    """
    show(document_of(leaderboard), console, explain=explain)


def show(document: Document, console: Console | None = None, *, explain: bool = False) -> None:
    """Print a document.

    Columns that don't fit are left to the csv; distinguishing and ranking columns are dropped last.
    """
    from rich.console import Console
    from rich.text import Text

    console = console or Console()
    live = console.is_terminal

    def say(text: str, style: str) -> None:
        console.print(Text(visible(text), style=style if live else ""), soft_wrap=not live)

    ranking = document.ranking
    if not ranking.rows:
        say("No results yet.", "")
        return
    columns, told_once = without_constants(_distinct_columns(ranking))
    width, padding = (console.width, 0) if live else (_PIPE, _PADDING)
    shown, left_out = _fit(ranking, [c for c in columns if not c.blank], width, padding)
    if live:
        console.print(_drawn(ranking, shown))
    else:
        free = width - sum(_width(c, padding) for c in shown if c.source is not _SETTINGS) - _GAP - padding
        folded = max(_NARROWEST_SETTINGS, min(free, _SETTINGS_WIDTH))
        say(aligned(shown, widths=[folded if c.source is _SETTINGS else None for c in shown]), "")
    if metrics := [column.title for column in left_out if column.kind == "metric"]:
        say(f"Not shown for the width of the terminal: {', '.join(metrics)}. The csv and the page have them.", "yellow")
    say("", "")
    for note in _leaders(document):
        say(note, "green")
    for note in document.texts(*FIRST, *(() if explain else ("parts",))):
        say(note, "yellow")
    for note in () if explain else _important_notes(document):
        say(note, "yellow")
    for line in _failures(document.failures, _MOST_FAILURES if explain else 1):
        say(line, "red")
    if not explain:
        return
    names = ", ".join(column.title for column in left_out)
    notes = [*document.texts(*BELOW, "remark"), *(f"Published: {line}." for line in document.texts("published"))]
    notes += [constants_note([c for c in told_once if not c.blank])]
    notes += [f"Not shown here: {names}. The csv has all columns." if names else "", *document.texts("definition")]
    notes += [f"{c.title}: {c.source.meaning}." for c in ranking.columns if c.kind not in _EXPLAINED and c.source]
    for note in filter(None, notes):
        say(note, "dim")


def _leaders(document: Document) -> list[str]:
    """Return the leading row of each exam; only names if there are many exams."""
    leaders = [note for note in document.notes if note.kind == "leader"]
    if len(leaders) <= _MOST_LINES:
        return [str(note) for note in leaders]
    names = next(column.texts for column in document.ranking.columns if column.kind == "algorithm")
    first = Counter(name for name, row in zip(names, document.ranking.rows, strict=True) if row.mark == "best")
    listed = ", ".join(f"{name} in {count}" for name, count in first.most_common())
    return [f"First of {len(leaders)} exams: {listed}."] if first else []


def _important_notes(document: Document) -> list[str]:
    """Return warnings on the ranking, in a line or two."""
    lines = list(document.texts("data", "gate", "row"))
    more = len(lines) - _MOST_LINES
    return lines if more <= 0 else [*lines[:_MOST_LINES], f"... and {more} notes more."]


def _distinct_columns(ranking: Table) -> list[TableColumn]:
    """Leave out columns that are shown elsewhere: seeds and status in the notes.

    A row that lacks a case has no metrics; the first shows what is missing.
    """
    if not any(column.kind == "metric" for column in ranking.columns):
        return list(ranking.columns)
    status = next(column.cells for column in ranking.columns if column.kind == "status")
    columns = []
    for column in ranking.columns:
        if column.kind in ("seeds", "status"):
            continue
        if column.sort_order == 0:
            lacking = [row.mark in ("failed", "unfinished") for row in ranking.rows]
            cells = (why if lacks else cell for lacks, why, cell in zip(lacking, status, column.cells, strict=True))
            column = replace(column, cells=tuple(cells))
        columns.append(column)
    return columns


def _drawn(ranking: Table, columns: Sequence[TableColumn]) -> RichTable:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD, padding=(0, _GAP - 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold"
    )
    for column in columns:
        combined = column.source is _SETTINGS
        table.add_column(
            Text(visible(column.title)),
            justify="right" if column.align == "right" else "left",
            no_wrap=not combined,
            overflow="fold" if combined else "ellipsis",
            max_width=_SETTINGS_WIDTH if combined else None,
        )
    for n, row in enumerate(ranking.rows):
        style = _STYLES.get(row.mark, "")
        first = "bold green" if row.mark == "best" else style
        cells = (Text(c.texts[n], style=first if c.kind in ("rank", "algorithm") else style) for c in columns)
        # Each exam has its own ranking.
        last = n + 1 < len(ranking.rows) and ranking.rows[n + 1].exam != row.exam
        table.add_row(*cells, end_section=last)
    return table


def _fit(
    ranking: Table, columns: Sequence[TableColumn], width: int, padding: int
) -> tuple[list[TableColumn], list[TableColumn]]:
    """Return (columns to show in order, columns left out) for a table of at most `width` characters, titles padded."""

    def wide(column: TableColumn) -> int:
        return _width(column, padding)

    settings = [c for c in columns if c.distinctive]  # the others repeat the algorithm's name
    must = [c for c in columns if c.kind in ("rank", "tier", "algorithm", "testenv", "adopted", "overlap", "status")]
    must += [c for c in columns if c.sort_order is not None]
    optional = [c for c in columns if c not in must and c not in settings and c.kind in _IMPORTANCE]
    optional.sort(key=lambda c: _IMPORTANCE.index(c.kind))  # stable sort: keeps the table's order within a kind

    free = width - sum(map(wide, must))
    chosen = list(settings)
    if sum(map(wide, settings)) > free // 2:  # one column for all, since most algorithms have few of them
        chosen = [_combined(ranking, settings)]
        free -= min(wide(chosen[0]), max(_NARROWEST_SETTINGS, free // 2))
    else:
        free -= sum(map(wide, settings))
    for column in optional:
        if column.kind == "agrees" and wide(column) > free:  # at least the verdict
            column = replace(column, cells=tuple(Cell(c.value, c.text.split(" (")[0]) for c in column.cells))
        if wide(column) <= free:
            chosen.append(column)
            free -= wide(column)
    position = {column.title: place for place, column in enumerate(columns)}
    position.setdefault(_SETTINGS.title, min((position[c.title] for c in settings), default=0))
    shown = sorted([*must, *chosen], key=lambda c: position[c.title])
    titles = {column.title for column in shown}
    return shown, [c for c in columns if c in optional and c.title not in titles]


def _combined(ranking: Table, settings: Sequence[TableColumn]) -> TableColumn:
    texts = (
        ", ".join(f"{c.key}={c.texts[n]}" for c in settings if c.cells[n].value is not None)
        for n in range(len(ranking.rows))
    )
    return TableColumn(_SETTINGS.title, tuple(Cell(text, text) for text in texts), source=_SETTINGS)


def _width(column: TableColumn, padding: int = 0) -> int:
    from rich.cells import cell_len

    widest = max(cell_len(column.title) + padding, *map(cell_len, column.texts))
    return (min(widest, _SETTINGS_WIDTH) if column.source is _SETTINGS else widest) + _GAP


def _failures(groups: Sequence[FailureGroup], most: int) -> list[str]:
    """Return distinct reasons of failures with their cases and the first log; a limited number."""
    lines = []
    for group in groups:
        log = group.first and group.first.log
        lines.append(f"Failed: {group.which}: {group.reason}")
        lines[-1] += f"\n  {group.which_log}: {shown_path(log)}" if log else ""
    more = len(lines) - most
    return lines if more <= 0 else [*lines[:most], f"... and {more} more; leaderboard.md lists all."]
