"""The jobs that come with ianvs, and what `-f` may be given: a file, a folder with one in it, or a job's name."""

from __future__ import annotations

from pathlib import Path

from ianvs.base.errors import ConfigError, Problem, closest
from ianvs.base.package import CONFIGS

JOB_FILE = "benchmarkingjob.yaml"


def shipped_jobs() -> dict[str, Path]:
    """{name: its benchmarkingjob.yaml} of the jobs that come with ianvs."""
    return {file.parent.name: file for file in sorted(CONFIGS.glob(f"*/{JOB_FILE}"))}


def job_path(said: Path) -> Path:
    """The file that `said` means. What is neither a file, a folder with a job in it, nor a name stays as it is.

    Raises ConfigError for a bare word that is no job of ours either.
    """
    if said.is_file():
        return said
    if (said / JOB_FILE).is_file():
        return said / JOB_FILE
    if said.name != str(said) or said.suffix or said.exists():
        return said
    known = shipped_jobs()
    if said.name in known:
        return known[said.name]
    hint = closest(said.name, known) or f" There are: {', '.join(known)}."
    raise ConfigError([Problem(f"there is no file '{said}', and no job of that name comes with ianvs.{hint}")])
