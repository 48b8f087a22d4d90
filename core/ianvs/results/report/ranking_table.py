"""The ranking as a table of a document: mean and spread in one cell, with the meaning of each row and column for
views.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ianvs.results.report.columns import Column, published_summary
from ianvs.results.report.document import Cell, RowMark, Table, TableColumn, TableRow
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import LeaderboardRow, RowKey
from ianvs.results.report.values import Value, cell_text, decimals_for, shown_number
from ianvs.results.stats import Summary

_RIGHT = ("rank", "metric", "published", "round", "seeds", "cost")
# These are next to the columns that they belong to, and the last in a separate table.
_ELSEWHERE = ("metric_std", "published_std", "rank_low", "rank_high")

# Identity and scores stay even if all rows are equal; so do times, which are equal only by chance.
TOLD_ONCE = (*("paradigm", "round", "dataset", "module", "hyperparameter", "adopted", "seeds", "cost", "status"), "url")
_MEASURED = (
    "train_seconds",
    "eval_seconds",
    "case_seconds",
    "train_cpu_seconds",
    "eval_cpu_seconds",
    "peak_memory_mb",
)


def ranking_tables(leaderboard: Leaderboard) -> Iterator[Table]:
    """Yield the table of all rows; and, if there are several exams, one for each, with its own number of decimals."""
    yield ranking_table(leaderboard)
    exams = dict.fromkeys(row.testenv for row in leaderboard.rows)
    differing, names = varied(leaderboard), leaderboard.row_names
    for exam in exams if len(exams) > 1 else ():
        rows = tuple(row for row in leaderboard.rows if row.testenv == exam)
        yield replace(ranking_table(replace(leaderboard, rows=rows), differing, names), kind="exam ranking", exam=exam)


def ranking_table(
    leaderboard: Leaderboard, differing: Sequence[str] | None = None, names: Mapping[RowKey, str] | None = None
) -> Table:
    """Return the table. differing: hyperparameters that distinguish rows.

    Names: of all rows of the job; None: of these rows.
    """
    differing = varied(leaderboard) if differing is None else differing
    names = leaderboard.row_names if names is None else names
    sorting = [name for name, _ in leaderboard.sort_by]
    columns = []
    for column in leaderboard.columns:
        if column.kind in _ELSEWHERE or column.only_in_csv:
            continue
        cells = _cells(leaderboard, column)
        numeric = all(isinstance(cell.value, int | float | None) for cell in cells)
        columns.append(
            TableColumn(
                column.title,
                cells,
                "right" if column.kind in _RIGHT or numeric else "left",
                column,
                tuple(_about(column)),
                sorting.index(column.key) if column.kind == "metric" and column.key in sorting else None,
                column.kind == "hyperparameter" and column.key in differing,
            )
        )
    waited_for = {row.testenv for row in leaderboard.rows if row.waiting}
    ids = {key: f"r{n}" for n, key in enumerate(names)}
    keys = [(row.id, row.algorithm) for row in leaderboard.rows]
    rows = tuple(
        TableRow(_mark(row, row.testenv not in waited_for), row.testenv, row.settings(differing), names[key], ids[key])
        for row, key in zip(leaderboard.rows, keys, strict=True)
    )
    return Table("ranking", tuple(columns), rows=rows)


def _cells(leaderboard: Leaderboard, column: Column) -> tuple[Cell, ...]:
    rows = leaderboard.rows
    values = [leaderboard.cell(row, column) for row in rows]
    if column.kind in ("metric", "published", "cost"):
        summaries = [_summary(row, column) for row in rows]
        measure = column.kind != "cost"
        decimals = _decimals(summaries, precise=3) if measure else _decimals(summaries, precise=2, small_below=1.0)
        texts = [mean_and_spread(summary, decimals, spread=measure) for summary in summaries]
        best = _best(rows, column, texts) if column.kind == "metric" else ()
        return tuple(Cell(value, texts[n], n in best) for n, value in enumerate(values))
    if column.kind == "rank":
        ranked = Counter(row.testenv for row in rows if row.rank is not None)
        both = zip(rows, values, strict=True)
        return tuple(Cell(value, shown_rank(row, value), ranks=_ranks(row, ranked[row.testenv])) for row, value in both)
    if column.kind == "status":  # "2 of 3 failed"; the reason is below, where there is room for it
        return tuple(Cell(row.status, row.status.partition(":")[0]) for row in rows)
    return tuple(Cell(value, cell_text(value)) for value in values)


def _best(rows: Sequence[LeaderboardRow], column: Column, texts: Sequence[str]) -> set[int]:
    """Return positions of the best means of a metric in each exam, among rows that compete.

    Equal texts count as best, too.
    """
    best: set[int] = set()
    for exam in {row.testenv for row in rows} if column.higher_is_better is not None else ():
        competing = [n for n, row in enumerate(rows) if row.testenv == exam and row.competes]
        means = {n: summary.mean for n in competing if (summary := rows[n].metrics.get(column.key)) is not None}
        defined = {n: mean for n, mean in means.items() if mean is not None}
        if len(defined) > 1:
            first = (max if column.higher_is_better else min)(defined, key=lambda n: defined[n])
            shown = [text.partition(" ± ")[0] for text in texts]
            if len({shown[n] for n in defined}) > 1:  # where all are equal, none is better
                best |= {n for n in competing if shown[n] == shown[first]}
    return best


def _ranks(row: LeaderboardRow, ranked: int) -> tuple[int, int, int, int] | None:
    if row.standing is None or row.rank is None:
        return None
    return row.standing.low, row.standing.high, row.rank, ranked


def _mark(row: LeaderboardRow, decided: bool) -> RowMark:
    """Return the mark of a row. decided: no row of the exam waits for cases that may still take the first place."""
    if row.failures:
        return "failed"
    if not row.complete:
        return "unfinished"
    return row.out_of_rank or ("best" if row.rank == 1 and decided else "")


def _about(column: Column) -> Iterator[str]:
    if column.meaning:
        yield f"{column.meaning[:1].upper()}{column.meaning[1:].rstrip('.')}."
    if column.higher_is_better is not None:
        yield "Higher is better." if column.higher_is_better else "Lower is better."
    metric = column.metric
    if metric is not None and metric.formula:
        yield f"Formula: {metric.formula}"
    if metric is not None and metric.source and metric.source not in metric.summary:
        yield f"Source: {metric.source}"


def shown_rank(row: LeaderboardRow, rank: Value) -> str:
    """Return "2 (1-4)": the rank and its interval, if that is known and wider."""
    where = row.standing
    if where is None or where.low == where.high:
        return cell_text(rank)
    return f"{cell_text(rank)} ({where.low}-{where.high})"


def varied(leaderboard: Leaderboard) -> list[str]:
    """Return hyperparameters that distinguish rows of one algorithm."""
    seen: dict[tuple[str, str], set[str]] = {}
    for row in leaderboard.rows:
        for name, value in row.hyperparameters.items():
            seen.setdefault((row.algorithm, name), set()).add(str(value))
    return list(dict.fromkeys(name for (_, name), values in seen.items() if len(values) > 1))


def without_constants(columns: Sequence[TableColumn]) -> tuple[list[TableColumn], list[TableColumn]]:
    """Return (columns to show, columns whose cells are all equal), both in order. Of a single row all are shown.

    The status is left out only if every row has "finished".
    """
    constant = [column for column in columns if _is_told_once(column)]
    return [column for column in columns if column not in constant], constant


def constants_note(constants: Sequence[TableColumn]) -> str:
    """Return one line with the values of constant columns; "" if there are none."""
    same = [f"{column.title} {column.texts[0]}" for column in constants if not column.blank]
    blank = [column.title for column in constants if column.blank]
    told_of = {"In every row": same, "In no row": blank}
    return " ".join(f"{where}: {', '.join(columns)}." for where, columns in told_of.items() if columns)


def _is_told_once(column: TableColumn) -> bool:
    if column.key in _MEASURED and not column.blank:
        return False
    if len(column.cells) < 2 or not column.constant or column.kind not in TOLD_ONCE:
        return False
    return column.kind != "status" or column.texts[0] == "finished"


def _summary(row: LeaderboardRow, column: Column) -> Summary | None:
    if column.kind == "published":
        return published_summary(row.published.get(column.key))
    return (row.metrics if column.kind == "metric" else row.costs).get(column.key)


def _decimals(summaries: Sequence[Summary | None], precise: int, small_below: float | None = None) -> int:
    """Return one number of decimals for a column: fewer for large numbers, more for small ones, and only those that the
    smallest error supports.

    Args:
        summaries: Its cells.
        precise: Decimals of numbers that are neither large nor small.
        small_below: Columns whose largest number is below it get further decimals; None: if it would read 0.000. Costs
            of one column differ by orders of magnitude: beside 0.01 ms another row's 0.004 ms must not read 0.00.
    """
    defined = [s for s in summaries if s is not None and s.mean is not None]
    largest = max((abs(s.mean or 0.0) for s in defined), default=0.0)
    errors = [s.std / math.sqrt(s.n) for s in defined if s.std and s.n]
    if 0 < largest < (0.1**precise if small_below is None else small_below):
        precise = min(precise + math.ceil(-math.log10(largest)), 12)
    elif largest >= 10:
        precise = 1 if largest < 1000 else 0
    return min(precise, decimals_for(min(errors))) if errors else precise


def mean_and_spread(summary: Summary | None, decimals: int, spread: bool = True) -> str:
    """Return "0.912 ± 0.004"; "" without a mean."""
    if summary is None or summary.mean is None:
        return ""
    mean = shown_number(summary.mean, decimals)
    return f"{mean} ± {shown_number(summary.std, decimals)}" if spread and summary.std is not None else mean
