"""`--to parquet`: results of a job as tidy tables, a file each, with one type for each column, and its meaning."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ianvs.base.types import CaseResult
from ianvs.exam.metrics.metric import Metric
from ianvs.results.exports.case_runs import COSTS_OF_ROUNDS, costs_of, metric_series
from ianvs.results.exports.exporting import require_package
from ianvs.results.report.columns import STANDING
from ianvs.results.report.leaderboard_row import COSTS, LeaderboardRow
from ianvs.results.report.values import shown_hyperparameters
from ianvs.results.stored import Results

if TYPE_CHECKING:
    import pandas as pd


def write(results: Results, folder: Path) -> None:
    write_tables(results, folder, to="parquet")


def write_tables(results: Results, folder: Path, to: str) -> dict[str, dict[str, str]]:
    """Write `folder`/<table>.parquet; returns {table: {column: its meaning}}. to: the extra that installs pyarrow."""
    with require_package("pyarrow", to):
        import pyarrow
        import pyarrow.parquet
    descriptions = {}
    for name, frame in tables(results).items():
        columns = descriptions[name] = meanings(results, name, list(frame.columns))
        table = pyarrow.Table.from_pandas(frame, preserve_index=False)
        fields = [field.with_metadata({"description": columns[field.name]}) for field in table.schema]
        schema = pyarrow.schema(fields, metadata=table.schema.metadata)
        pyarrow.parquet.write_table(table.cast(schema), folder / f"{name}.parquet")
    return descriptions


Columns = Mapping[str, Iterable[object]]

_LARGEST = 2**63 - 1

_MEANINGS: Mapping[str, str] = {
    "algorithm": "name in the job's files",
    "testenv": "which testenv of the job; empty where it has one",
    "row": "id of an algorithm with one choice of hyperparameters; its cases differ in the seed",
    "case": "id of a case: a hash of what determines its result",
    "rank": "place among the competitors of the exam; null: none",
    "place": "the rank, or why there is none: bound (a reference), over (went over the budget), - (a case is missing)",
    **{column.kind: column.meaning for column in STANDING},
    "seeds": "number of finished seeds behind mean and standard deviation",
    "expected": "number of seeds that belong to the row",
    "seed": "seed of the case",
    "paradigm": "how a case is examined",
    "dataset": "name of the dataset",
    "rounds": "number of rounds",
    "status": "finished, or what is missing and why",
    "bound": "whether it was given earlier rounds, or all at once: a reference, no competitor",
    "role": "of a reference run: joint or single_task; such a case is no competitor",
    "over_budget": "what went over the exam's budget, in words",
    "adopted": "rounds whose new model passed model_eval",
    "error": "of a failed case: the class of the exception, or what ended it",
    "message": "of a failed case: its message, without secrets",
    "log": "what the case printed, a file below the workspace",
    "directory": "the case's folder below the workspace",
    "finished_at": "when the case ended, UTC",
    "metric": "name of the score or metric",
    "kind": "of a note",
    "about": "what a note concerns: the job, a testenv, a row or a case",
    "subject": "which of them; empty: the job, or the only one",
    "text": "what a reader has to know beside the numbers",
    "remedy": "what can be done about it",
    "round": "0 is the untrained model, k is after round k",
    "round_name": "name of the round",
    "test": "name of the test set; null: a metric over the score matrix, of all test sets",
    "quantity": "what a learner told while it was trained; nothing checks it",
    "share": "how much of the round was done, 0 to 1",
    "value": "the score, or the reported value; null where it was not evaluated or is undefined",
}

_WHOLE = frozenset({"rank", "rank_low", "rank_high", "adopted"})  # columns of numbers that may be missing in all rows


def tables(results: Results) -> dict[str, pd.DataFrame]:
    """Return tables by name.

    `leaderboard`: a row for each algorithm and choice of hyperparameters. `cases`: one for each case. `scores`: one for
    each case, metric, round and test set. `rounds`: one for each case and round, with its costs. `notes`: one for each
    note. `curves`: one for each value that a learner reported.

    A case is identified by `case` and `algorithm`: algorithms of the same content share their cases.
    """
    import pandas as pd

    by_table = {
        "leaderboard": _columns(map(_row, results.leaderboard.rows)),
        "cases": _cases(results),
        "scores": _columns(record for result in results for record in _scores(results, result)),
        "rounds": _columns(record for result in results for record in _rounds(result)),
        "curves": _columns(record for result in results for record in _curves(result)),
        "notes": _columns(map(vars, results.notes)),
    }
    costs = {name for result in results for name in result.measures}.union(COSTS_OF_ROUNDS, _metrics(results))
    numbers = (costs | {f"{name}_std" for name in costs}) - _MEANINGS.keys()
    return {
        name: pd.DataFrame({title: _column_type(title, column, numbers) for title, column in columns.items()})
        for name, columns in by_table.items()
        if columns or name != "curves"
    }


def meanings(results: Results, table: str, columns: list[str]) -> dict[str, str]:
    """Return the meaning of each column of a table, in a sentence."""
    summaries = {name: measure.summary for result in results for name, measure in result.measures.items()}
    if table == "rounds":
        summaries |= COSTS_OF_ROUNDS
    else:
        better = {True: " (more is better)", False: " (less is better)", None: ""}
        summaries |= {name: f"{m.summary or m.name}{better[m.direction]}" for name, m in _metrics(results).items()}
    summaries |= _MEANINGS
    return {column: summaries[column] if column in summaries else _column_description(column) for column in columns}


def _metrics(results: Results) -> dict[str, Metric]:
    """Return metrics by the names of their columns, costs included."""
    return {**COSTS, **{column.name: column.metric for columns in results.metrics.values() for column in columns}}


def _column_description(column: str) -> str:
    """Describe a column that a user or a plugin has named."""
    kind, _, name = column.partition(".")
    if name and kind in _NAMED:
        return f"{_NAMED[kind]} {name}"
    if column.endswith("_std"):
        return f"sample standard deviation of {column.removesuffix('_std')} over seeds"
    return column


_NAMED = {"hp": "hyperparameter", "module": "class of the module", "text": "what this metric said that is no number:"}


def _columns(records: Iterable[Mapping[str, object]]) -> Columns:
    """Return columns with None for missing values. pandas would convert integers to floats if one is missing."""
    records = list(records)
    return {name: [record.get(name) for record in records] for name in dict.fromkeys(n for r in records for n in r)}


def _cases(results: Results) -> Columns:
    frame = results.cases
    settings = _columns(
        {f"hp.{name}": value for name, value in shown_hyperparameters(case.hyperparameters).items()}
        for case in results.case_list
    )
    folders = [f"cases/{case}" for case in frame["case"]]  # without this machine's folders
    return {**{name: frame[name] for name in frame.columns}, **settings, "directory": folders}


def _row(row: LeaderboardRow) -> dict[str, object]:
    fixed: dict[str, object] = {
        "testenv": row.testenv,
        "rank": row.rank,
        "place": str(row.place),
        "algorithm": row.algorithm,
        "row": row.id,
        "paradigm": row.paradigm,
        "dataset": row.dataset,
        "rounds": row.rounds,
        "seeds": len(row.seeds),
        "expected": row.expected,
        "bound": row.bound,
        "status": row.status,
        "over_budget": "; ".join(row.over_budget),
    }
    if (standing := row.standing) is not None:
        fixed |= {"rank_low": standing.low, "rank_high": standing.high, "tier": standing.tier}
    numbers: dict[str, object] = {}
    for name, summary in {**row.costs, **row.metrics}.items():
        numbers |= {name: summary.mean, f"{name}_std": summary.std}
    return {
        **fixed,
        **{name: number for name, number in numbers.items() if name not in fixed},
        **{f"text.{name}": text for name, text in row.texts.items()},
        **{f"module.{kind}": name for kind, name in row.modules.items()},
        **{f"hp.{name}": value for name, value in row.hyperparameters.items()},
    }


def _scores(results: Results, result: CaseResult) -> Iterator[dict[str, object]]:
    names = ("untrained", *result.round_names)
    case = {"case": result.case.id, "algorithm": result.case.algorithm, "seed": result.case.seed}

    def line(metric: str, k: int, test: str | None, value: float) -> dict[str, object]:
        name = names[k] if k < len(names) else ""
        number = float(value) if math.isfinite(value) else None
        return {**case, "metric": metric, "round": k, "round_name": name, "test": test, "value": number}

    for score, matrix in result.matrices.items():
        for k, row in enumerate(matrix.values):
            for test, value in zip(matrix.tests, row, strict=True):
                yield line(score, k, test, value)
    for name, series in metric_series(result, results.metrics.get(result.case.testenv, ())).items():
        for k, value in series:
            yield line(name, k, None, value)


def _rounds(result: CaseResult) -> Iterator[dict[str, object]]:
    for round_ in result.rounds:
        yield {
            "case": result.case.id,
            "algorithm": result.case.algorithm,
            "seed": result.case.seed,
            "round": round_.index,
            "round_name": round_.name or "untrained",
            **round_.measures,
            **costs_of(round_),
        }


def _curves(result: CaseResult) -> Iterator[dict[str, object]]:
    case = {"case": result.case.id, "algorithm": result.case.algorithm, "seed": result.case.seed}
    for round_ in result.rounds:
        for name, points in round_.curves.items():
            for share, value in points:
                yield {**case, "round": round_.index, "quantity": name, "share": share, "value": value}


def _column_type(name: str, column: Iterable[object], numbers: Set[str]) -> pd.Series[Any]:
    """Return a column of integers, floats, booleans or strings, with null for missing values.

    numbers: columns that are floats in every job. A hyperparameter that is a number in one case and a string in another
    becomes a string in all.
    """
    import pandas as pd

    if isinstance(column, pd.Series) and isinstance(column.dtype, pd.DatetimeTZDtype):
        return column
    values = [value.item() if hasattr(value, "item") else value for value in column]
    values = [None if isinstance(value, float) and math.isnan(value) else value for value in values]
    values = [None if value is pd.NaT else value for value in values]
    present = [value for value in values if value is not None]
    kinds = set(map(type, present))
    fits = all(abs(value) <= _LARGEST for value in present if isinstance(value, int))
    if (name in numbers and kinds <= {int, float}) or (kinds == {int, float} and fits) or kinds == {float}:
        return pd.Series(values, dtype="Float64")
    if kinds == {bool}:
        return pd.Series(values, dtype="boolean")
    if (kinds == {int} and fits) or (not kinds and name in _WHOLE):
        return pd.Series(values, dtype="Int64")
    texts = [value if isinstance(value, str | None) else json.dumps(value) for value in values]
    return pd.Series(texts, dtype="string")
