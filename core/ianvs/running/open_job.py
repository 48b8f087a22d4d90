"""Opens a job with the options of `ianvs.api` and the command line."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from ianvs.base.errors import IanvsError, closest
from ianvs.base.package import job_path
from ianvs.config import load_job
from ianvs.config.overrides import parse_overrides
from ianvs.config.spec import JobSpec
from ianvs.running.inspector import Inspector
from ianvs.running.planning.cases import grid_size
from ianvs.running.planning.hyperparameters import with_hyperparameters, without_unused
from ianvs.running.planning.sandbox_paths import inspector_sandbox
from ianvs.running.scheduler.create_engine import SharedLocalEngine

MOST_CASES = 100_000

PathLike = str | Path
Settings = Sequence[str] | Mapping[str, object]
"""Values that override the files: {"learning_rate": 0.1}, or strings such as "learning_rate=0.1"."""


class JobOptions(TypedDict, total=False):
    """Values that override those in a job's files; None: no override.

    Attributes:
        workspace: The folder for results.
        root: The folder to which paths of datasets are relative.
        settings: Keys and values, as in {"learning_rate": 0.1, "scenario.rounds": 10}.
        jobs: How many cases run at a time.
        engine: The name of the engine.
        device: "auto", "cpu" or "cuda".
    """

    workspace: PathLike | None
    root: PathLike | None
    settings: Settings
    jobs: int | None
    engine: str | None
    device: str | None


class CaseOptions(JobOptions, total=False):
    """JobOptions, and a selection of cases; None: all of them.

    Attributes:
        only: Conditions such as "ewc,seed=1".
        limit: Only the first ones.
    """

    only: str | None
    limit: int | None


@contextmanager
def open_job(
    path: PathLike,
    option_class: type[JobOptions],
    options: Mapping[str, Any],
    early: SharedLocalEngine | None = None,
    *,
    corrects: bool = False,
) -> Iterator[tuple[JobSpec, Inspector]]:
    """Context manager: a job with its options, and an inspector of its plugins, which is closed at the end.

    Args:
        path: A job file, its folder, or the name of a shipped job.
        option_class: The class of the options that the caller accepts.
        options: Values of these options.
        early: Starts the processes in which plugins are inspected, which cases will use, too; None: others are started.
        corrects: Read on after misspelt keys, which are among the job's problems: the caller makes all checks.

    Raises:
        ConfigError: If the job's files are wrong.
        TypeError: If there is no such option.
    """
    names = option_class.__annotations__  # includes those of its bases
    for name in options:
        if name not in names:
            raise TypeError(f"unknown option '{name}'.{closest(name, names)} There are: {', '.join(sorted(names))}.")
    workspace, root = options.get("workspace"), options.get("root")
    job = load_job(
        job_path(Path(path)),
        workspace=Path(workspace) if workspace is not None else None,
        jobs=options.get("jobs"),
        root=Path(root) if root is not None else None,
        engine=options.get("engine"),
        device=options.get("device"),
        environment=os.environ,
        overrides=parse_overrides(settings) if (settings := options.get("settings")) else (),
        corrects=corrects,
    )
    inline = job.engine.name == "inline" and job.engine.url is None
    engine = (lambda: None) if early is None else partial(early.forking, job)
    with closing(Inspector(job, engine, partial(inspector_sandbox, job), inline=inline)) as inspector:
        job = without_unused(job, inspector)
        if job.overrides:
            job = with_hyperparameters(job, inspector)
        yield replace(job, only=options.get("only"), limit=options.get("limit")), inspector


def refuse_many(job: JobSpec) -> None:
    """Raise IanvsError for a grid that is probably too large by mistake, before its cases are created."""
    if job.limit is not None:
        return
    sizes = {algorithm.name: grid_size(algorithm.modules) for algorithm in job.algorithms}
    cases = sum(sizes.values()) * len(job.seeds) * len(job.testenvs)
    if cases > MOST_CASES:
        largest = max(sizes, key=lambda name: sizes[name])
        raise IanvsError(
            f"the job has {cases:,} cases, and the grid of '{largest}' alone {sizes[largest]:,} choices; nothing was "
            f"run. `--limit 3` takes the first three. Give fewer values in its file, or with --set; `--yes` runs all.",
            code="too-many-cases",
        )
