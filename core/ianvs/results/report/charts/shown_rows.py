"""The rows of an exam as charts show them: a name, a unique line style, and which are shown at first."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ianvs.results.report.charts.svg import LIGHT, LineStyle, classes, dash, line_styles, marker, tag
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import LeaderboardRow, RowKey

_AT_FIRST = 10  # number of lines that can be distinguished at a glance
_OF_ONE_COLOUR = 4  # maximum number of lines of one colour, which differ in marker and dash


@dataclass(frozen=True)
class ShownRow:
    """A row in charts. key: of the results of its cases. id: in the page, the same in all charts."""

    row: LeaderboardRow
    key: RowKey
    id: str
    label: str
    style: LineStyle
    at_first: bool


def shown_rows(leaderboard: Leaderboard, exam: str) -> list[ShownRow]:
    """Return the complete rows of an exam in their order; incomplete ones are in no chart."""
    names, styles = leaderboard.row_names, row_styles(leaderboard)
    shown: list[ShownRow] = []
    for n, row in enumerate(leaderboard.rows):
        if row.testenv == exam and row.complete:
            key = (row.id, row.algorithm)
            style = styles[names[key], row.bound]
            shown.append(ShownRow(row, key, f"r{n}", names[key], style, len(shown) < _AT_FIRST))
    return shown


def row_styles(leaderboard: Leaderboard) -> dict[tuple[str, bool], LineStyle]:
    """Return styles by name and whether the row is a reference; they are the same in every exam.

    Rows of one algorithm share its colour if there are more rows than colours, and few of each algorithm: many lines of
    one colour can't be told apart.
    """
    names = leaderboard.row_names
    competing = [(name, row) for name, row in zip(names.values(), leaderboard.rows, strict=True) if not row.bound]
    algorithms = Counter({name: row.algorithm for name, row in competing}.values())
    shared = algorithms.total() > len(LIGHT) and len(algorithms) > 1 and max(algorithms.values()) <= _OF_ONE_COLOUR
    methods = {
        (name, row.bound): row.algorithm if shared else name
        for name, row in zip(names.values(), leaderboard.rows, strict=True)
    }
    return dict(zip(methods, line_styles((method, bound) for (_, bound), method in methods.items()), strict=True))


def legend_sample(style: LineStyle) -> Markup:
    """Return a short piece of a row's line with its marker."""
    line = tag("path", d="M1 8H33", class_=classes("line", style), stroke_dasharray=dash(style))
    dot = tag("path", d=marker(style.marker, 17, 8, 3.6), class_=classes("dot", style))
    return tag("svg", line, dot, width=34, height=16, viewBox="0 0 34 16", aria_hidden="true", class_="sample")


def series(rows: Sequence[ShownRow], every: bool = False) -> list[dict[str, object]]:
    """Return the legend of `rows`. every: whether all of them are shown at first."""
    return [
        {
            "id": shown.id,
            "label": shown.label + " (bound)" * shown.row.bound,
            "sample": legend_sample(shown.style),
            "on": every or shown.at_first,
        }
        for shown in rows
    ]
