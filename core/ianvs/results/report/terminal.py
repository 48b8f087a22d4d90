"""The leaderboard on a terminal, fitted to its width; a plain table where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ianvs.base.errors import shown_path
from ianvs.results.report.columns import Column
from ianvs.results.report.constant_columns import constants_note, without_constants
from ianvs.results.report.layout import (
    TextColumn,
    failure_groups,
    legend,
    plain_table,
    published_notes,
    ranking_notes,
    short_status,
    text_columns,
    varied,
)
from ianvs.results.report.leaderboard import Leaderboard

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["render"]

_SETTINGS = Column("Hyperparameters", "hyperparameter", "", "the hyperparameters in which rows differ")
_SETTINGS_WIDTH = 44  # characters; longer texts are folded
_NARROWEST_SETTINGS = 20
_GAP = 2  # blanks between two columns
_MOST_FAILURES = 20
_IMPORTANCE = (
    "metric",
    "agrees",
    "published",
    "tried",
    "pareto",
    "cost",
    "module",
    "dataset",
    "round",
    "paradigm",
    "time",
    "hyperparameter",
)  # the last goes first


def render(leaderboard: Leaderboard, console: Console | None = None) -> None:
    """Print the leaderboard, what failed, and which definition each metric is.

    Columns that say the same in every row are told once below the table. On a terminal, columns that don't fit are left
    to the csv; a note says so.
    """
    from rich.console import Console
    from rich.text import Text

    console = console or Console()
    live = console.is_terminal

    def say(text: str, style: str) -> None:
        console.print(Text(text, style=style if live else ""), soft_wrap=not live)

    if not leaderboard.rows:
        say("No results yet.", "")
        return
    columns = text_columns(leaderboard)
    theirs = [f"Published: {line}." for line in published_notes(leaderboard)]
    notes = [*ranking_notes(leaderboard), *leaderboard.notes, *theirs]
    if live:
        columns, told_once = without_constants(_without_repetition(leaderboard, columns))
        shown, left_out = _fit(leaderboard, [c for c in columns if any(c.cells)], console.width)
        console.print(_table(leaderboard, shown))
        notes.append(constants_note([c for c in told_once if any(c.cells)]))
        names = ", ".join(column.title for column in left_out)
        notes.append(f"Not shown here: {names}. The csv has all columns." if names else "")
    else:
        columns, told_once = without_constants(columns)
        say(plain_table(columns), "")
        notes.insert(0, constants_note(told_once))
    say("", "")
    for note in filter(None, notes):
        say(note, "dim")
    for line in _failures(leaderboard):
        say(line, "red")
    for line in legend(leaderboard):
        say(line, "dim")


def _without_repetition(leaderboard: Leaderboard, columns: Sequence[TextColumn]) -> list[TextColumn]:
    """Leave out what stands elsewhere: seeds and status in the notes.

    A row that lacks a case has no metrics; what it lacks stands in place of the first.
    """
    metrics = [c.column.key for c in columns if c.column.kind == "metric"]
    kept = []
    for column in columns:
        kind, key = column.column.kind, column.column.key
        if kind in ("seeds", "status") and metrics:
            continue
        if kind == "metric" and key == (leaderboard.sort_by[0][0] if leaderboard.sort_by else metrics[0]):
            pairs = zip(leaderboard.rows, column.cells, strict=True)
            column = replace(column, cells=tuple(c if row.complete else short_status(row) for row, c in pairs))
        kept.append(column)
    return kept


def _table(leaderboard: Leaderboard, columns: Sequence[TextColumn]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    # The box puts one blank between columns, the padding another.
    table = Table(
        box=box.SIMPLE_HEAD, padding=(0, _GAP - 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold"
    )
    for column in columns:
        combined = column.column is _SETTINGS
        table.add_column(
            Text(column.title),
            justify="right" if column.right else "left",
            no_wrap=not combined,
            overflow="fold" if combined else "ellipsis",
            max_width=_SETTINGS_WIDTH if combined else None,
        )
    for i, row in enumerate(leaderboard.rows):
        style = "red" if row.failures else "yellow" if not row.complete else "" if row.competes else "dim"
        first = "bold green" if row.rank == 1 else style
        named = ("rank", "algorithm")
        cells = (Text(c.cells[i], style=first if c.column.kind in named else style) for c in columns)
        # Each exam's ranking stands by itself.
        last = i + 1 < len(leaderboard.rows) and leaderboard.rows[i + 1].testenv != row.testenv
        table.add_row(*cells, end_section=last)
    return table


def _fit(
    leaderboard: Leaderboard, columns: Sequence[TextColumn], width: int
) -> tuple[list[TextColumn], list[TextColumn]]:
    """(columns to show in order, columns left out) for a table of at most `width` characters."""
    sorting = {name for name, _ in leaderboard.sort_by}
    telling = varied(leaderboard)  # the others say nothing that the algorithm's name does not
    settings = [c for c in columns if c.column.kind == "hyperparameter" and c.column.key in telling]
    must = [c for c in columns if c.column.kind in ("rank", "tier", "algorithm", "testenv", "adopted", "status")]
    must += [c for c in columns if c.column.kind == "metric" and c.column.key in sorting]
    optional = [c for c in columns if c not in must and c not in settings and c.column.kind in _IMPORTANCE]
    optional.sort(key=lambda c: _IMPORTANCE.index(c.column.kind))  # stable: the table's order within a kind

    free = width - sum(map(_width, must))
    chosen = list(settings)
    if sum(map(_width, settings)) > free // 2:  # one column for all of them: most algorithms have few of the many
        chosen = [_combined(leaderboard, settings)]
        free -= min(_width(chosen[0]), max(_NARROWEST_SETTINGS, free // 2))
    else:
        free -= sum(map(_width, settings))
    for column in optional:
        if column.column.kind == "agrees" and _width(column) > free:  # the verdict alone, rather than none
            column = replace(column, cells=tuple(cell.split(" (")[0] for cell in column.cells))
        if _width(column) <= free:
            chosen.append(column)
            free -= _width(column)
    position = {column.title: place for place, column in enumerate(columns)}
    position.setdefault(_SETTINGS.title, min((position[c.title] for c in settings), default=0))
    shown = sorted([*must, *chosen], key=lambda c: position[c.title])
    titles = {column.title for column in shown}
    return shown, [c for c in columns if c in optional and c.title not in titles]


def _combined(leaderboard: Leaderboard, settings: Sequence[TextColumn]) -> TextColumn:
    names = [column.column.key for column in settings]
    return TextColumn(_SETTINGS, tuple(row.settings(names) for row in leaderboard.rows), right=False)


def _width(column: TextColumn) -> int:
    from rich.cells import cell_len

    widest = max(map(cell_len, (column.title, *column.cells)))
    return (min(widest, _SETTINGS_WIDTH) if column.column is _SETTINGS else widest) + _GAP


def _failures(leaderboard: Leaderboard) -> list[str]:
    """Each reason once, with the cases that it hit and the first of their logs."""
    lines = []
    for group in failure_groups(leaderboard):
        log = group.logged and group.logged.log
        lines.append(f"Failed: {group.which}: {group.reason}")
        lines[-1] += f"\n  {group.which_log}: {shown_path(log)}" if log else ""
    more = len(lines) - _MOST_FAILURES
    return lines if more <= 0 else [*lines[:_MOST_FAILURES], f"... and {more} more; leaderboard.md lists all."]
