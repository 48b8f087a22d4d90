"""A leaderboard as text: one string per cell, mean and spread together. Shared by terminal and markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ianvs.results.report.columns import Column
from ianvs.results.report.gather import FailedCase
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.published import AGREES, published_summary
from ianvs.results.report.values import Cell, cell_text, shown_number
from ianvs.results.stats.summary import Summary

__all__ = [
    "TextColumn",
    "FailureGroup",
    "failure_groups",
    "legend",
    "plain_table",
    "published_notes",
    "ranking_notes",
    "row_name",
    "short_status",
    "shown_rank",
    "tabulated",
    "varied",
    "text_columns",
]

_RIGHT = ("rank", "metric", "published", "round", "seeds", "cost")
_BESIDE = ("metric_std", "published_std", "rank_low", "rank_high")  # stand beside what they belong to
_APART = ("p_best",)  # stands in a table of its own


@dataclass(frozen=True)
class TextColumn:
    """One column as shown. `cells` are in the order of the leaderboard's rows."""

    column: Column
    cells: tuple[str, ...]
    right: bool  # numbers stand under each other

    @property
    def title(self) -> str:
        return self.column.title

    @property
    def constant(self) -> bool:
        """Every row says the same."""
        return len(set(self.cells)) <= 1


def text_columns(leaderboard: Leaderboard) -> list[TextColumn]:
    """The columns in order; a metric's standard deviation stands beside its mean ("0.912 ± 0.004")."""
    columns = []
    for column in leaderboard.columns:
        if column.kind in _BESIDE or column.kind in _APART:
            continue
        values = [leaderboard.cell(row, column) for row in leaderboard.rows]
        if column.kind in ("metric", "published", "cost"):
            summaries = [_summary(row, column) for row in leaderboard.rows]
            measure = column.kind != "cost"
            decimals = _decimals(summaries, precise=3 if measure else 2)
            cells = [_mean_and_spread(summary, decimals, spread=measure) for summary in summaries]
        elif column.kind == "rank":
            cells = [shown_rank(row, value) for row, value in zip(leaderboard.rows, values, strict=True)]
        elif column.kind == "status":
            cells = [short_status(row) for row in leaderboard.rows]  # why stands below, where there is room for it
        else:
            cells = [cell_text(value) for value in values]
        numeric = all(isinstance(value, int | float | None) for value in values)
        columns.append(TextColumn(column, tuple(cells), column.kind in _RIGHT or numeric))
    return columns


def shown_rank(row: LeaderboardRow, rank: Cell) -> str:
    """ "2 (1-4)": the rank and its interval, where that is known and wider."""
    where = row.standing
    if where is None or where.low == where.high:
        return cell_text(rank)
    return f"{cell_text(rank)} ({where.low}-{where.high})"


def plain_table(columns: Sequence[TextColumn], style: str = "simple") -> str:
    """Aligned text; `style` is a table format of tabulate."""
    from tabulate import tabulate

    rows = list(zip(*(column.cells for column in columns), strict=True))
    align = ["right" if column.right else "left" for column in columns]
    # Without disable_numparse tabulate would turn the text "0.10" into 0.1, and a hyperparameter "1e3" into 1000.
    return tabulate(
        rows,
        [column.title for column in columns],
        tablefmt=style,
        colalign=align if rows else None,
        disable_numparse=True,
    )


def tabulated(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table of texts."""
    from tabulate import tabulate

    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)


def ranking_notes(leaderboard: Leaderboard) -> list[str]:
    """What a reader must know of ranks and rows: by what they are ranked, bounds, and what is odd about a row."""
    notes = [_sort_note(leaderboard), *leaderboard.statements, _bound_note(leaderboard), _gate_note(leaderboard)]
    # Complete, and yet there is more to say: a metric that some of its seeds do not have.
    odd = [row for row in leaderboard.rows if row.complete and row.status != "finished"]
    odd_rows = (f"{_full_name(row)}: {row.status}." for row in odd)
    return [*filter(None, notes), *odd_rows, *filter(None, [leaderboard.sealing])]


def _sort_note(leaderboard: Leaderboard) -> str:
    keys = [f"{name} ({'higher' if falls else 'lower'} is better)" for name, falls in leaderboard.sort_by]
    if not keys:
        return ""
    many = f"Mean ± sample standard deviation over {leaderboard.seeds} seeds."
    spread = many if leaderboard.seeds > 1 else "One seed: nothing is known of the spread."
    return f"Ranked by {', then '.join(keys)}. {spread}"


def _bound_note(leaderboard: Leaderboard) -> str:
    several = {row.testenv for row in leaderboard.rows if row.rounds > 1}
    saw: dict[str, list[str]] = {}
    for row in leaderboard.rows:
        if row.bound:
            at_once = row.rounds == 1 and row.testenv in several
            saw.setdefault("all rounds at once" if at_once else "past rounds by declaration", []).append(row.algorithm)
    said = [f"{', '.join(dict.fromkeys(names))} saw {what}" for what, names in saw.items()]
    return f"bound: {'; '.join(said)}: a reference, not a competitor; it takes no rank." if said else ""


def _gate_note(leaderboard: Leaderboard) -> str:
    stuck = [_full_name(row) for row in leaderboard.rows if row.adopted is not None and not row.adopted[0]]
    return f"Scores of the untrained model, since model_eval adopted no other: {'; '.join(stuck)}." if stuck else ""


def legend(leaderboard: Leaderboard) -> list[str]:
    """One line per metric column: which definition it is; and what is said of published numbers."""
    from ianvs.exam.metrics.table import legend as lines

    names = (column.key for column in leaderboard.columns if column.kind == "metric")
    told = lines(zip(names, leaderboard.metrics, strict=True))
    return [*told, f"agrees: {AGREES}"] if any(row.published for row in leaderboard.rows) else told


def published_notes(leaderboard: Leaderboard) -> list[str]:
    """One line for each published number, with its source, once for equal rows."""
    lines: dict[str, None] = {}
    for row in leaderboard.rows:
        shown = [column.key for column in leaderboard.columns if column.kind == "published"]
        for name in (name for name in shown if name in row.published):
            spec = row.published[name]
            mean, std, margin = spec.in_our_unit()
            spread = "" if std is None else f" ± {std:.4g}"
            runs = "" if spec.n is None else f", {spec.n} runs"
            lines[f"{row.algorithm}, {name}: {mean:.4g}{spread}{runs}, margin {margin:g}: {spec.source}"] = None
    return list(lines)


def varied(leaderboard: Leaderboard) -> list[str]:
    """Hyperparameters that tell rows of one algorithm apart."""
    known: dict[tuple[str, str], set[str]] = {}
    for row in leaderboard.rows:
        for name, value in row.hyperparameters.items():
            known.setdefault((row.algorithm, name), set()).add(str(value))
    return list(dict.fromkeys(name for (_, name), values in known.items() if len(values) > 1))


@dataclass(frozen=True)
class FailureGroup:
    """Cases that failed for the same reason, in the order of the rows."""

    reason: str
    cases: tuple[tuple[LeaderboardRow, FailedCase], ...]

    @property
    def logged(self) -> FailedCase | None:
        """The first of them that has a log."""
        return next((failure for _, failure in self.cases if failure.log is not None), None)

    @property
    def which_log(self) -> str:
        return "log" if len(self.cases) == 1 else "first log"

    @property
    def which(self) -> str:
        """ "ewc (strength=100; seeds 0, 1)", or "8 cases of ewc, lwf" where they are of several rows."""
        rows = list({row.id: row for row, _ in self.cases}.values())
        names = list(dict.fromkeys(row_name(row) for row, _ in self.cases))
        if len(rows) > 1:
            return f"{len(self.cases)} cases of {', '.join(names)}"
        seeds = [str(failure.seed) for _, failure in self.cases]
        told = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"
        return f"{names[0]} ({'; '.join(filter(None, (rows[0].settings(), told)))})"


def failure_groups(leaderboard: Leaderboard) -> list[FailureGroup]:
    """What failed, each reason once."""
    found: dict[str, list[tuple[LeaderboardRow, FailedCase]]] = {}
    for row, failure in leaderboard.failures:
        found.setdefault(failure.text(200), []).append((row, failure))
    return [FailureGroup(reason, tuple(cases)) for reason, cases in found.items()]


def row_name(row: LeaderboardRow) -> str:
    """ "ewc", or "ewc in online" where the job has several exams."""
    return f"{row.algorithm} in {row.testenv}" if row.testenv else row.algorithm


def _full_name(row: LeaderboardRow) -> str:
    return f"{row_name(row)} ({row.settings() or 'no hyperparameters'})"


def short_status(row: LeaderboardRow) -> str:
    """How much is missing, without the reason: "2 of 3 failed"."""
    return row.status.split(":", 1)[0]


def _summary(row: LeaderboardRow, column: Column) -> Summary | None:
    if column.kind == "published":
        return published_summary(row.published.get(column.key))
    return (row.metrics if column.kind == "metric" else row.costs).get(column.key)


def _decimals(summaries: Sequence[Summary | None], precise: int) -> int:
    """One number of decimals for a column, so that its numbers stand under each other: fewer where they are large."""
    means = [abs(s.mean) for s in summaries if s is not None and s.mean is not None]
    largest = max(means, default=0.0)
    if 0 < largest < 0.1**precise:  # a column of small numbers must not read 0.000
        return min(precise + math.ceil(-math.log10(largest)), 12)
    return precise if largest < 10 else 1 if largest < 1000 else 0


def _mean_and_spread(summary: Summary | None, decimals: int, spread: bool) -> str:
    if summary is None or summary.mean is None:
        return ""
    mean = shown_number(summary.mean, decimals)
    return f"{mean} ± {shown_number(summary.std, decimals)}" if spread and summary.std is not None else mean
