"""`--to mlflow`: a file store `mlruns` with one experiment, a run for each case. No server is asked or started."""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from ianvs.results.exports.case_runs import CaseRun, case_runs, matrix_table, notes_list
from ianvs.results.exports.exporting import environment, require_package
from ianvs.results.report.row_tables import to_frame
from ianvs.results.stored import Results

_BATCH = {"metrics": 1000, "params": 100, "tags": 100}  # limit of log_batch
_LONGEST = 5000  # maximum length of a tag; that of a parameter is 6000
_STATUS = {"finished": "FINISHED", "failed": "FAILED"}


def write(results: Results, folder: Path) -> None:
    """Write the runs. "/" in names of metrics makes groups; characters that MLflow does not allow become "_"."""
    # Switches off MLflow's telemetry, and its warning about the file store.
    with environment(MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true", MLFLOW_ALLOW_FILE_STORE="true"):
        with require_package("mlflow-skinny", "mlflow"):
            from mlflow import MlflowClient
        client = MlflowClient(tracking_uri=(folder / "mlruns").as_uri())
        experiment = client.create_experiment(results.name, tags={"source": "ianvs"})
        for run in case_runs(results):
            _write_run(client, experiment, run)
        board = client.create_run(experiment, run_name="leaderboard", tags={"ianvs.kind": "leaderboard"})
        client.log_text(board.info.run_id, to_frame(results.leaderboard).to_csv(index=False), "leaderboard.csv")
        client.log_text(board.info.run_id, notes_list(results), "notes.md")
        client.log_dict(board.info.run_id, _plain(results.provenance), "provenance.json")
        client.set_terminated(board.info.run_id, "FINISHED")


def _write_run(client: Any, experiment: str, run: CaseRun) -> None:
    from mlflow.entities import Metric, Param, RunTag

    ended = int((run.ended or datetime.now(UTC)).timestamp() * 1000)  # ms
    seconds = sum(round_.train_seconds + round_.eval_seconds for round_ in run.result.rounds)
    began = ended - int(1000 * seconds)  # measured times, without waiting between them
    tags = {"ianvs.kind": "case", **{f"ianvs.{name}": text for name, text in run.tags.items()}}
    run_id = client.create_run(experiment, start_time=began, run_name=run.name).info.run_id
    names = _names([*run.series, *run.curves, *run.numbers, *run.params, *tags])
    every = [*run.series.items(), *run.curves.items()]
    metrics = [Metric(names[name], value, ended, k) for name, series in every for k, value in series]
    metrics += [Metric(names[name], value, ended, 0) for name, value in run.numbers.items()]
    entries = {
        "metrics": metrics,
        "params": [Param(names[name], str(value)[:_LONGEST]) for name, value in run.params.items()],
        "tags": [RunTag(names[name], text[:_LONGEST]) for name, text in tags.items()],
    }
    for kind, listed in entries.items():
        rest: Iterable[Any] = iter(listed)
        while batch := list(islice(rest, _BATCH[kind])):
            client.log_batch(run_id, **{kind: batch})
    for score, matrix in run.result.matrices.items():
        client.log_text(run_id, matrix_table(matrix) + "\n", f"{names[f'score/{score}']}.md")
    client.log_dict(run_id, _plain(run.result.provenance), "provenance.json")
    client.set_terminated(run_id, _STATUS.get(run.result.status, "KILLED"), ended)


def _names(names: Iterable[str]) -> dict[str, str]:
    """Return a valid, unique MLflow name for each name."""
    allowed: dict[str, str] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(names):
        # A name is a path in the file store; some file systems do not distinguish "a" and "A".
        parts = [re.sub(r"[^\w\- .]", "_", part, flags=re.ASCII).strip(" .") or "_" for part in name.split("/")]
        called = "/".join(parts)
        while called.casefold() in taken:
            called += "_"
        taken.add(called.casefold())
        allowed[name] = called
    return allowed


def _plain(value: Mapping[str, object]) -> object:
    return json.loads(json.dumps(dict(value), default=str))
