"""The rows of an exam as pictures show them: a name, a line style of their own, and which are shown at first."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ianvs.results.report.charts.svg import LineStyle, classes, dash, line_styles, marker, tag
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import LeaderboardRow, RowKey
from ianvs.results.report.ranking_table import varied

_AT_FIRST = 10  # lines that can be told apart at a glance


@dataclass(frozen=True)
class ShownRow:
    """key: of the results of its cases. id: in the page, the same in all pictures."""

    row: LeaderboardRow
    key: RowKey
    id: str
    label: str
    style: LineStyle
    at_first: bool


def shown_rows(leaderboard: Leaderboard, exam: str) -> list[ShownRow]:
    """The complete rows of an exam in their order; those that lack a case are in no picture."""
    names = varied(leaderboard)
    every = [(n, row) for n, row in enumerate(leaderboard.rows) if row.testenv == exam and row.complete]
    styles = line_styles(row.bound for _, row in every)
    found = []
    for place, ((n, row), style) in enumerate(zip(every, styles, strict=True)):
        label = row.label(names) + " (bound)" * row.bound
        found.append(ShownRow(row, (row.id, row.algorithm), f"r{n}", label, style, place < _AT_FIRST))
    return found


def legend_sample(style: LineStyle) -> Markup:
    """A short piece of a row's line with its marker."""
    line = tag("path", d="M1 8H33", class_=classes("line", style), stroke_dasharray=dash(style))
    dot = tag("path", d=marker(style.marker, 17, 8, 3.6), class_=classes("dot", style))
    return tag("svg", line, dot, width=34, height=16, viewBox="0 0 34 16", aria_hidden="true", class_="sample")


def series(rows: Sequence[ShownRow], every: bool = False) -> list[dict[str, object]]:
    """What a legend of `rows` shows. every: all of them are on at first."""
    return [
        {"id": one.id, "label": one.label, "sample": legend_sample(one.style), "on": every or one.at_first}
        for one in rows
    ]
