"""Leaderboard and results as pandas frames, for the Python API."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ianvs.base.secrets import hide_secrets
from ianvs.base.types import CaseResult
from ianvs.results.report.gather import case_costs, describe_failure, shown_log
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.values import shown_hyperparameters

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["cases_frame", "rounds_frame", "to_frame"]


def to_frame(leaderboard: Leaderboard) -> pd.DataFrame:
    """The cells of all_rank.csv with their types. `frame.attrs` maps each column to its meaning."""
    import pandas as pd

    columns = {
        column.title: [leaderboard.cell(row, column) for row in leaderboard.rows] for column in leaderboard.columns
    }
    frame = pd.DataFrame(columns)
    frame.attrs = {column.title: column.meaning for column in leaderboard.columns}
    return frame


def cases_frame(results: Iterable[CaseResult], root: Path | None = None) -> pd.DataFrame:
    """One row per case: identity, status, every metric, costs, and what went wrong.

    Modules are columns `module.<type>`, hyperparameters `hp.<name>` (secrets hidden), so that no name of an author
    meets one of ours. Logs are shown relative to `root`. `finished_at` is a time in UTC.
    """
    import pandas as pd

    records = []
    for result in results:
        case, failure = result.case, result.failure
        record: dict[str, object] = {
            "case": case.id,
            "row": case.row,
            "algorithm": case.algorithm,
            "seed": case.seed,
            "paradigm": case.paradigm,
            "dataset": result.dataset,
            "rounds": len(result.round_names),
            "status": result.status,
            "bound": result.bound,
            "testenv": case.testenv,
            "role": case.role,
            "over_budget": "; ".join(result.over_budget),
        }
        if any(round_.gate_scores is not None for round_ in result.rounds):
            record["adopted"] = sum(round_.adopted for round_ in result.rounds[1:])
        record |= {f"module.{kind}": name for kind, name in case.modules}
        record |= {f"hp.{name}": value for name, value in shown_hyperparameters(case.hyperparameters).items()}
        record |= {**case_costs(result), **result.metrics, **record}
        record["error"] = describe_failure(failure) if failure else None
        record["message"] = hide_secrets(failure.message, case.hyperparameters) if failure else None
        record["log"] = shown_log(failure.log, root) if failure else None
        record["directory"] = str(result.directory)
        record["finished_at"] = result.finished_at
        records.append(record)
    frame = pd.DataFrame.from_records(records)
    if "finished_at" in frame:
        frame["finished_at"] = pd.to_datetime(frame["finished_at"], utc=True, format="ISO8601")
    return frame


def rounds_frame(results: Iterable[CaseResult]) -> pd.DataFrame:
    """One row per case, score, round (0 is the untrained model) and test set; nan where not evaluated."""
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
