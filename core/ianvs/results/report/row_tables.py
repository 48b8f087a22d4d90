"""Leaderboard and results as tables for computing: pandas frames for the Python API, and csv."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ianvs.base.types import CaseResult
from ianvs.exam.metrics import find
from ianvs.results.report.aggregate_cases import case_costs, case_facts, failure_facts, shown_log
from ianvs.results.report.columns import Column, table_columns
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.values import Value, cell_text

if TYPE_CHECKING:
    import pandas as pd

_HEADER = (
    *("Testenv", "Algorithm", "Hyperparameters", "Metric", "n", "mean", "std"),
    *("error_of_seeds", "error_of_samples"),
    *("rank_low", "rank_high", "rank_low_on_this_test_set", "rank_high_on_this_test_set", "ranks_allow_for"),
    *(f"minus_{other}{part}" for other in ("best", "baseline") for part in ("", "_low", "_high", "_separated")),
)


def to_frame(leaderboard: Leaderboard) -> pd.DataFrame:
    """Return the cells of all_rank.csv with their types. `frame.attrs` maps each column to its meaning."""
    import pandas as pd

    columns = {
        column.title: [leaderboard.cell(row, column) for row in leaderboard.rows] for column in leaderboard.columns
    }
    frame = pd.DataFrame(columns)
    frame.attrs = {column.title: column.meaning for column in leaderboard.columns}
    return frame


def cases_frame(results: Iterable[CaseResult], root: Path | None = None) -> pd.DataFrame:
    """Return one row per case: identity, status, every metric, costs, and failures.

    Modules are columns `module.<type>`, hyperparameters `hp.<name>`. Logs are shown relative to
    `root`. `finished_at` is a time in UTC.
    """
    import pandas as pd

    records = []
    for result in results:
        record: dict[str, object] = {**case_facts(result)}
        record |= {**case_costs(result), **result.metrics, **record, **failure_facts(result)}
        record["log"] = shown_log(result.failure.log, root) if result.failure else None
        record |= {"directory": str(result.directory), "finished_at": result.finished_at}
        records.append(record)
    frame = pd.DataFrame.from_records(records)
    if "finished_at" in frame:
        frame["finished_at"] = pd.to_datetime(frame["finished_at"], utc=True, format="ISO8601")
    return frame


def rounds_frame(results: Iterable[CaseResult]) -> pd.DataFrame:
    """Return one row per case, score, round (0 is the untrained model) and test set; nan if not evaluated."""
    import pandas as pd

    names = ("case", "row", "algorithm", "seed", "score", "round", "round_name", "test", "value")
    records = [
        (case.id, case.row, case.algorithm, case.seed, score, k, round_name, test, float(matrix.values[k, j]))
        for result in results
        for case in (result.case,)
        for score, matrix in result.matrices.items()
        for k, round_name in enumerate(("untrained", *matrix.rounds))
        for j, test in enumerate(matrix.tests)
    ]
    return pd.DataFrame.from_records(records, columns=list(names))


def csv_text(leaderboard: Leaderboard, titles: Sequence[str] = ()) -> str:
    """Return comma-separated text with one header line and numbers in the shortest form that reads back as the same
    number.

    The contract of the plugins determines the columns and their names. titles: of those to write between the rank and
    the seeds, in this order; (): all. The column of seeds identifies one of our tables.
    """
    columns = table_columns(leaderboard.columns, leaderboard.contract)
    if titles:
        by_title = {column.title: column for column in columns}
        chosen = [by_title[title] for title in titles if title in by_title]
        rank, seeds = ([c for c in columns if c.kind == kind and c not in chosen] for kind in ("rank", "seeds"))
        columns = (*rank, *chosen, *seeds)
    return _csv_of_columns(leaderboard, columns)


_PROPOSAL = ("rank", "algorithm", "metric", "paradigm", "round", "dataset", "module", "hyperparameter", "time")
"""Kinds of columns, in the order of section 3.3.3 of the MDIL-SS proposal."""


def proposal_report(leaderboard: Leaderboard) -> str:
    """Return the test report of the MDIL-SS proposal: scores as `mIoU_Overall`, BWT, FWT, the basemodel's grid."""
    columns = []
    for column in leaderboard.columns:
        if column.kind == "metric" and ((metric := find(column.key)) is None or metric.level != "matrix"):
            columns.append(replace(column, title=f"{column.title}_Overall"))
        elif column.kind in _PROPOSAL and (
            (column.kind != "metric" or column.key in ("BWT", "FWT"))
            and (column.kind != "module" or column.key == "basemodel")
            and (column.kind != "hyperparameter" or column.full == f"basemodel-{column.key}")
        ):
            columns.append(column)
    return _csv_of_columns(leaderboard, sorted(columns, key=lambda column: _PROPOSAL.index(column.kind)))


def _csv_of_columns(leaderboard: Leaderboard, columns: Sequence[Column]) -> str:
    cells = ([leaderboard.cell(row, column) for column in columns] for row in leaderboard.rows)
    return csv_of([[column.title for column in columns], *cells])


def csv_of(lines: Iterable[Sequence[Value]], texts_alone: bool = False) -> str:
    """Return csv text. A string that a spreadsheet would take for a formula gets a leading '.

    texts_alone: treat strings that read as a number, or are "-", as text, too.
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([_no_formula(cell, texts_alone) for cell in line] for line in lines)
    return stream.getvalue()


def _no_formula(cell: Value, texts_alone: bool) -> str:
    text = cell_text(cell).replace("\r", "\n")  # the writer leaves a lone carriage return without quotes
    if not isinstance(cell, str) or not text.startswith(("=", "+", "-", "@", "\t", "\n")):
        return text
    if texts_alone or (text != "-" and not _is_number(text)):
        return f"'{text}"
    return text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def statistics_records(leaderboard: Leaderboard) -> Iterator[Sequence[Value]]:
    """Yield a header, then a line for each row and metric.

    Ranks and differences are by the metric that exams are ranked by.
    """
    yield _HEADER
    ranked_by = leaderboard.sort_by[0][0] if leaderboard.sort_by else None
    for row in leaderboard.rows:
        for metric, summary in row.metrics.items():
            fixed, allow = row.standing_here or row.standing, "seeds and samples" if row.standing_here else "seeds"
            ranks: tuple[Value, ...] = (None,) * 5
            if metric == ranked_by and row.standing is not None and fixed is not None:
                ranks = (row.standing.low, row.standing.high, fixed.low, fixed.high, allow)
            differences = (row.to_best, row.to_baseline) if metric == ranked_by else (None, None)
            yield (
                *(row.testenv, row.algorithm, row.settings(), metric, summary.n, summary.mean, summary.std),
                *row.errors(metric),
                *ranks,
                *(getattr(d, part, None) for d in differences for part in ("mean", "low", "high", "separated")),
            )
