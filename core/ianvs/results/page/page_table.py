"""Tables of the page: rankings whose columns explain themselves, sort and can be hidden.

And, below the charts, failures with their logs, provenance, the configuration and a citation.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from markupsafe import Markup

from ianvs.base.visible_text import visible
from ianvs.results.report.charts.points import rank_bar
from ianvs.results.report.charts.shown_rows import ShownRow, legend_sample
from ianvs.results.report.document import Cell, Document, FailureGroup, Table, TableColumn
from ianvs.results.report.ranking_table import TOLD_ONCE

_HIDDEN_WHEN_CONSTANT = (*TOLD_ONCE, "testenv")
_AT_FIRST = (
    "rank",
    "tier",
    "algorithm",
    "metric",
    "published",
    "agrees",
    "adopted",
    "overlap",
    "seeds",
    "pareto",
    "status",
)
_COSTS_AT_FIRST = ("train_seconds", "peak_memory_mb")


@dataclass(frozen=True)
class PageColumn:
    """A column of the page.

    Attributes:
        id: Of its explanation.
        classes: For the style sheet.
        off: Whether it is hidden at first.
        best: "high", "low" or "": which values the first click brings to the top.
    """

    id: str
    column: TableColumn
    classes: str
    off: bool
    best: str


def page_tables(
    document: Document, shown: Iterable[ShownRow], links: Mapping[str, str] = MappingProxyType({})
) -> list[dict[str, object]]:
    """Return a table for each exam.

    columns: PageColumn. rows: (TableRow, sample of its line, file of its cases, cells); a cell is (text, sort value if
    it differs from the text, image). same: (title, text) of columns whose cells are all equal.

    Args:
        document: The document.
        shown: The rows in charts.
        links: The file of a row's cases, by id of the row.
    """
    samples = {row.id: legend_sample(row.style) for row in shown}
    rankings = document.tables_of("exam ranking") or [document.ranking]
    return [_page_table(table, number, samples, links) for number, table in enumerate(rankings) if table.rows]


def _page_table(
    table: Table, number: int, samples: Mapping[str, Markup], links: Mapping[str, str]
) -> dict[str, object]:
    """Return the table of one exam. number: of the exam, which makes ids unique."""
    columns, same = [], []
    for place, column in enumerate(table.columns):
        constant = column.blank or (column.constant and len(table.rows) > 1 and column.kind in _HIDDEN_WHEN_CONSTANT)
        wanted = column.kind in _AT_FIRST or column.distinctive or column.key in _COSTS_AT_FIRST
        name = column.kind == "algorithm"
        classes = "n" if name else "r" if column.align == "right" and column.kind != "rank" else column.kind
        better = column.source.higher_is_better if column.source else None
        best = "high" if better else "low" if better is False or column.kind == "cost" else ""
        columns.append(PageColumn(f"t{number}c{place}", column, classes, constant or not wanted, best))
        if constant and column.texts[0]:
            same.append((column.title, column.texts[0]))
    cells = zip(*map(_cells, table.columns), strict=True)
    rows = [
        (row, samples.get(row.id), links.get(row.id, ""), line) for row, line in zip(table.rows, cells, strict=True)
    ]
    return {"exam": table.rows[0].exam, "columns": columns, "rows": rows, "same": same}


def right_aligned(table: Mapping[str, Any]) -> str:
    """Return the CSS rule for columns of numbers; a class for each cell would take more room."""
    places = ",".join(f":nth-child({n})" for n, column in enumerate(table["columns"], 1) if column.classes == "r")
    return f"td:is({places}){{text-align:right}}"


def _cells(column: TableColumn) -> Iterator[tuple[str, str | None, Markup | None]]:
    for place, cell in enumerate(column.cells):
        # Rows without a rank keep their position.
        sort = place if column.kind == "rank" else _sort(cell)
        sort_text = None if _is_derivable(cell.text, sort) else f"{sort:.9g}"
        yield cell.text, sort_text, rank_bar(*cell.ranks) if cell.ranks else None


def _is_derivable(text: str, sort: float | str | None) -> bool:
    """Return whether the page's script can derive `sort` from the text."""
    if isinstance(sort, str | None):
        return True
    try:
        return float(text) == sort
    except ValueError:
        return False


def _sort(cell: Cell) -> float | str | None:
    """Return a number or a string; None is last, whatever the direction."""
    value = cell.value
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and math.isinf(value):
        return math.copysign(1e308, value)  # written as a number in html
    return None if value == "" or value != value else value


_LINES = 25
_BYTES = 20_000  # bytes read from the end of a log
_MOST = 30


def failed_groups(groups: Sequence[FailureGroup]) -> list[tuple[FailureGroup, str]]:
    """Return each reason with the last lines of the first log."""
    logs = ((group, group.first) for group in groups[:_MOST])
    return [(group, log_tail(first.log) if first and first.log else "") for group, first in logs]


def log_tail(log: Path) -> str:
    """Return the last lines of a log; "" if it can't be read."""
    try:
        with log.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _BYTES))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(visible(text).splitlines()[-_LINES:])


def configuration_text(provenance: Mapping[str, object]) -> str:
    """Return the resolved configuration as yaml; "" if none is stored. Its secrets are hidden already."""
    configuration = provenance.get("configuration")
    if not configuration:
        return ""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times as fast, if libyaml is installed
    text: str = yaml.dump(
        configuration, Dumper=dumper, sort_keys=False, allow_unicode=True, width=100, default_flow_style=False
    )
    return text


@cache
def citation() -> tuple[str, str]:
    """Return (text, BibTeX entry) from CITATION.cff."""
    cff = yaml.safe_load(files("ianvs.results.page").joinpath("assets/CITATION.cff").read_text(encoding="utf-8"))
    authors = [_name(author) for author in cff["authors"]]
    released = str(cff["date-released"])
    text = f"{', '.join(authors)} ({released[:4]}). {cff['title']} (version {cff['version']}) [software]. {cff['url']}"
    fields = {
        "title": f"{{{cff['title']}}}: {cff['abstract'].rstrip('.')}",
        "author": " and ".join(f"{{{name}}}" for name in authors),
        "year": released[:4],
        "version": str(cff["version"]),
        "url": cff["url"],
    }
    lines = [f"  {name:<7} = {{{value}}}," for name, value in fields.items()]
    return (f"{text}\n\n{cff['message']}", "@software{ianvs,\n" + "\n".join(lines) + "\n}")


def _name(author: Mapping[str, str]) -> str:
    return author.get("name") or " ".join(filter(None, (author.get("given-names"), author.get("family-names"))))
