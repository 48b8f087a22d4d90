"""What a user names when results are meant: a workspace, one of its jobs, a job file, or a report."""

from __future__ import annotations

import os
from pathlib import Path

from ianvs.base.errors import IanvsError, closest, shown_path
from ianvs.base.shipped import JOB_FILE, job_path
from ianvs.config import load_job
from ianvs.results.stored import Results, load_results
from ianvs.store import JobStore

REMEDY = "Give a workspace (WORKSPACE, or WORKSPACE:JOB where it holds several jobs), or a job file"
_TABLE = "all_rank.csv"
_RECORD = "job.json"


def report_file(said: str | Path) -> Path | None:
    """The all_rank.csv of a report (the folder or the file itself); None: `said` is something else."""
    path = Path(said)
    if path.suffix == ".csv":
        return path
    if (path / _RECORD).exists() or next(path.glob(f"*/{_RECORD}"), None) is not None:
        return None  # with the results themselves at hand
    return next((file for file in (path / _TABLE, path / "rank" / _TABLE) if file.is_file()), None)


def stored_job(said: str | Path, elsewhere: str | Path | None = None) -> tuple[Path, str]:
    """(workspace, name of the job). Raises IanvsError, ConfigError for a job file with errors.

    elsewhere: the workspace, over what a job file says.
    """
    path = Path(said)
    workspace, colon, name = str(said).rpartition(":")
    if colon and not path.exists() and Path(workspace).is_dir():
        return Path(workspace), _known(Path(workspace), name)
    if path.name == _RECORD and path.is_file():
        path = path.parent
    if path.is_dir() and (path / _RECORD).is_file():
        return path.absolute().parent, path.absolute().name
    if path.is_dir() and not (path / JOB_FILE).is_file():
        return path, _known(path)
    over = None if elsewhere is None else Path(elsewhere)
    job = load_job(job_path(path), workspace=over, environment=os.environ)
    return job.workspace, _known(job.workspace, job.name)


def stored_results(said: str | Path, elsewhere: str | Path | None = None) -> Results:
    """The results of the job that `said` means. Raises as `stored_job`, and DamagedError for a record."""
    return load_results(*stored_job(said, elsewhere))


def _known(workspace: Path, name: str | None = None) -> str:
    names = list(JobStore.names(workspace))
    where = shown_path(workspace)
    if not names:
        raise IanvsError(f"{where} holds no results: no job has run there. {REMEDY}.")
    if name is None and len(names) > 1:
        ways = ", ".join(f"{where}:{known}" for known in names)
        raise IanvsError(f"{where} holds results of several jobs. Say which: {ways}.")
    if name is not None and name not in names:
        raise IanvsError(f"{where} holds no job '{name}'.{closest(name, names)} It holds: {', '.join(names)}.")
    return name or names[0]
