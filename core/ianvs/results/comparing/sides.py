"""One side of a comparison: the rows of a job, from its workspace, or from the table of a report.

A user names a workspace, one of its jobs, a job file, or a report.
"""

import csv
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ianvs.base.errors import DamagedError, IanvsError, PluginError, shown_path
from ianvs.base.package import JOB_FILE, job_path
from ianvs.config import load_job
from ianvs.config.models.algorithm import MODULE_TYPES
from ianvs.exam.metrics.registry import find
from ianvs.results.report.columns import title_of
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.values import cell_text, method_name
from ianvs.results.stats import Summary
from ianvs.results.stored import Results, load_results
from ianvs.store import CaseStore
from ianvs.store.job_store import report_folder

_TABLE = "all_rank.csv"
_RECORD = "job.json"


def report_file(source: str | Path) -> Path | None:
    """Return the all_rank.csv of a report (the folder or the file itself); None: `source` is something else."""
    path = Path(source)
    if path.suffix == ".csv":
        return path
    if (path / _RECORD).exists() or next(path.glob(f"*/{_RECORD}"), None) is not None:
        return None  # with the results in memory
    return next((file for file in (path / _TABLE, report_folder(path) / _TABLE) if file.is_file()), None)


def stored_results(source: str | Path, elsewhere: str | Path | None = None) -> Results:
    """Return the results of the job that `source` names. elsewhere: a workspace that overrides that of a job file.

    Raises IanvsError, ConfigError for a job file with errors, DamagedError for a record.
    """
    path = Path(source)
    workspace, colon, name = str(source).rpartition(":")
    if colon and not path.exists() and Path(workspace).is_dir():
        return load_results(workspace, name)
    if path.name == _RECORD and path.is_file():
        path = path.parent
    if path.is_dir() and (path / _RECORD).is_file():
        return load_results(path.absolute().parent, path.absolute().name)
    if path.is_dir() and not (path / JOB_FILE).is_file():
        return load_results(path)
    over = None if elsewhere is None else Path(elsewhere)
    job = load_job(job_path(path), workspace=over, environment=os.environ)
    return load_results(job.workspace, job.name)


# Columns of all_rank.csv between the dataset and the number of seeds that are neither module nor hyperparameter.
_NO_SETTINGS = ("Adopted", "Pareto")


@dataclass(frozen=True)
class CaseFacts:
    """Facts of a case. identity: what determines the result. provenance: the software and machine."""

    id: str
    identity: Mapping[str, Any]
    provenance: Mapping[str, Any]


@dataclass(frozen=True)
class SideRow:
    """One algorithm with one choice of hyperparameters in one exam; numbers by the title of the metric's column.

    A row that lacks a case has no numbers. values: in the order of `seeds`; a report has only means and stds.
    """

    algorithm: str
    testenv: str
    settings: Mapping[str, str]  # hyperparameters, and modules if from a report, by title
    means: Mapping[str, Summary]
    status: str
    seeds: tuple[int, ...] = ()
    values: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    cases: Mapping[int, CaseFacts] = field(default_factory=dict)  # by seed, of cases that have begun

    @property
    def settings_text(self) -> str:
        """ "Strength=100, Epochs=5"."""
        return ", ".join(f"{title}={text}" for title, text in self.settings.items())

    @property
    def name(self) -> str:
        return method_name(self.algorithm, self.testenv, self.settings_text)

    @property
    def exams(self) -> set[str]:
        """Ids of the exams of its cases."""
        return {str(case.identity.get("exam_id")) for case in self.cases.values()}


@dataclass(frozen=True)
class Side:
    """One side. metrics: {title: whether higher is better; None: unknown}. modules: titles of columns of modules."""

    name: str
    rows: tuple[SideRow, ...]
    metrics: Mapping[str, bool | None]
    modules: frozenset[str] = frozenset()
    is_report: bool = False


def read_side(source: str | Path) -> Side:
    """Read the job or report that `source` names; the module's docstring lists the possibilities. Raises IanvsError."""
    if (file := report_file(source)) is not None:
        return _of_report(str(source), file)
    return side_of(str(source), stored_results(source))


def side_of(name: str, results: Results) -> Side:
    """Return a side from the results of a job."""
    board = results.leaderboard
    settings = [column for column in board.columns if column.kind == "hyperparameter"]
    metrics = [column for column in board.columns if column.kind == "metric"]
    titles = {column.key: column.title for column in metrics}
    ids: dict[tuple[str, str], dict[int, str]] = {}
    for case in results.case_list:
        ids.setdefault((case.row, case.algorithm), {})[case.seed] = case.id
    store = CaseStore(results.workspace)

    def row(board_row: LeaderboardRow) -> SideRow:
        shown = {column.title: cell_text(board.cell(board_row, column)) for column in settings}
        cases = ids.get((board_row.id, board_row.algorithm), {})
        return SideRow(
            board_row.algorithm,
            board_row.testenv,
            {title: text for title, text in shown.items() if text},
            {titles[key]: summary for key, summary in board_row.metrics.items() if key in titles},
            board_row.status,
            board_row.seeds,
            {titles[key]: values for key, values in board_row.by_seed.items() if key in titles},
            {seed: facts for seed, id_ in cases.items() if (facts := _facts(store, id_)) is not None},
        )

    directions = {column.title: column.higher_is_better for column in metrics}
    modules = frozenset(column.title for column in board.columns if column.kind == "module")
    return Side(name, tuple(map(row, board.rows)), directions, modules)


def _facts(store: CaseStore, case_id: str) -> CaseFacts | None:
    """Return the facts of a case; None if they are missing or damaged."""
    with suppress(DamagedError):
        identity, result = store.identity(case_id), store.result(case_id) or {}
        return None if identity is None else CaseFacts(case_id, identity, result.get("provenance", {}))
    return None


def _of_report(name: str, file: Path) -> Side:
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            lines = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise IanvsError(f"{shown_path(file)} can't be read: {error}.", code="unreadable-file") from None
    header = list(lines[0]) if lines else []
    if not {"Algorithm", "Dataset", "Seeds", "Status"} <= set(header):
        why = "it has no rows" if not header else "it is not an all_rank.csv in ianvs's own form"
        raise IanvsError(
            f"{shown_path(file)} can't be compared: {why}. Give the workspace instead, if it is there.",
            code="unfit-results",
        )
    metrics = [title for title in header if f"{title}_std" in header and not title.endswith("_published")]
    between = header[header.index("Dataset") + 1 : header.index("Seeds")]
    settings = [title for title in between if title not in _NO_SETTINGS]
    rows = tuple(_line(line, metrics, settings, file, number) for number, line in enumerate(lines, 2))
    modules = frozenset(map(title_of, MODULE_TYPES))
    return Side(name, rows, {title: _direction(title) for title in metrics}, modules, is_report=True)


def _line(line: Mapping[str, str], metrics: Sequence[str], settings: Sequence[str], file: Path, at: int) -> SideRow:
    def number(title: str) -> float | None:
        text = line[title] or ""
        try:
            return float(text) if text else None
        except ValueError:
            raise IanvsError(
                f"{shown_path(file)}:{at}: '{text}' in column {title} is not a number.", code="invalid-record"
            ) from None

    seeds = int(number("Seeds") or 0)
    summaries = {title: Summary(number(title), number(f"{title}_std"), seeds) for title in metrics}
    return SideRow(
        line["Algorithm"],
        line.get("Testenv") or "",
        {title: line[title] for title in settings if line[title]},
        {title: summary for title, summary in summaries.items() if summary.mean is not None},
        line["Status"] or "",
    )


def _direction(title: str) -> bool | None:
    """Return whether higher is better for an installed metric; a table does not know that of an author's own."""
    name = title.partition(" of ")[0]
    with suppress(PluginError):
        metric = find(name) or find(name[:1].lower() + name[1:])
        return None if metric is None else metric.higher_is_better
    return None
