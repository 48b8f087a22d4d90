"""The functions of ianvs. The command line is a shell over these."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

from ianvs.base.digests import doubt
from ianvs.base.errors import DamagedError, IanvsError, closest, shown_path
from ianvs.base.garbage import not_collecting
from ianvs.base.package import job_path
from ianvs.config import load_job
from ianvs.config.load import read_job
from ianvs.config.overrides import parsed
from ianvs.config.spec import JobSpec
from ianvs.exam.scenarios import Exam, open_exam
from ianvs.exam.scenarios.drawn import seeds_of_case, with_seed
from ianvs.results.comparing.comparison import Comparison, compare_sides
from ianvs.results.comparing.merging import Merged, merge_workspaces
from ianvs.results.comparing.sides import read_side, stored_results
from ianvs.results.exports.exporting import export_results
from ianvs.results.page.write_page import write_page
from ianvs.results.plots import write_plots
from ianvs.results.report.build_document import write_reports
from ianvs.results.stored import Results, load_results, record_of
from ianvs.results.stored.provenance import collect
from ianvs.running.inspector import Inspector
from ianvs.running.planned_results import nothing_stored, results_of, stored_results_of
from ianvs.running.planning.cases import cells
from ianvs.running.planning.hyperparameters import with_hyperparameters, without_unused
from ianvs.running.planning.plan import Plan, start_over
from ianvs.running.planning.sandbox_paths import inspector_sandbox
from ianvs.running.progress import default_listener
from ianvs.running.scheduler.case_loop import Listener
from ianvs.running.scheduler.controller import check_job, run_job
from ianvs.running.scheduler.opening import EarlyEngine, imports_of, runs_inline
from ianvs.running.scheduler.preflight import require_files
from ianvs.store import JobStore, Prunable, prunable
from ianvs.store import prune as remove_prunable
from ianvs.store.job_store import report_folder

__all__ = [
    "Comparison",
    "Merged",
    "Results",
    "compare",
    "exams",
    "export",
    "load_results",
    "merge",
    "migrate",
    "plan",
    "plot",
    "prune",
    "report",
    "run",
    "validate",
]

PathLike = str | Path
Settings = Sequence[str] | Mapping[str, object]
"""Values in place of what the files say: {"learning_rate": 0.1}, or texts such as "learning_rate=0.1"."""


class JobOptions(TypedDict, total=False):
    """Values that override those in a job's files; None: no override.

    root: the folder to which paths of datasets are relative. settings: as in
    {"learning_rate": 0.1, "scenario.rounds": 10} (ianvs.config.overrides).
    """

    workspace: PathLike | None
    root: PathLike | None
    settings: Settings
    jobs: int | None
    engine: str | None
    device: str | None


class CaseOptions(JobOptions, total=False):
    """JobOptions, and a selection of cases; None: all.

    only: those that fulfil conditions such as "ewc,seed=1" (running/planning/plan.py). limit: only the first ones.
    """

    only: str | None
    limit: int | None


MOST_CASES = 100_000


def run(
    path: PathLike,
    *,
    fail_fast: bool | None = None,
    rerun: str | None = None,
    keep: bool = False,
    yes: bool = False,
    listener: Listener | None = None,
    **options: Unpack[CaseOptions],
) -> Results:
    """Run the unfinished cases of the job at `path`, write its reports, and return its results.

    fail_fast: overrides the job's file. rerun: cases that start over from the first round: "failed",
    "all", or conditions as in `only`. keep: finished cases that differ in nothing but the source of their algorithm
    count as finished, from now on; a note of the leaderboard names them. yes: allow more than 100 000 cases.
    listener: is told what happens; by default it prints lines in a notebook, nothing elsewhere. Raises ConfigError
    before anything runs; a failing case raises nothing: it is a row with a status.
    """
    with closing(EarlyEngine()) as early, _loaded(path, CaseOptions, options, early) as (job, inspector):
        if not yes:
            _refuse_many(job)
        if fail_fast is not None:
            job = replace(job, fail_fast=fail_fast)
        if rerun is not None:
            dropped = start_over(require_files(job, inspector).checked_plan(), rerun)
            if not dropped and rerun not in ("all", "failed"):
                raise IanvsError(
                    f"--rerun '{rerun}' matches no case that has run; `ianvs plan` lists the cases.",
                    code="no-matching-case",
                )
        if keep:
            planned = require_files(job, inspector).checked_plan()
            JobStore(job.workspace, job.name).accept(planned.of_other_source())
        provenance = collect(job_file=job.file, imported=imports_of(job))
        damaged: set[Path] = set()
        while True:
            outcome = run_job(job, inspector, early, listener or default_listener(), provenance)
            results = replace(
                results_of(outcome.plan, provenance, inspector),
                exit_code=outcome.exit_code,
                ran=outcome.ran,
                states=outcome.states,
            )
            try:
                _write(results, f"ianvs report -f {shown_path(job.file)}")
            except DamagedError as error:  # a plan only looks at sizes and times, a report reads
                if error.path in damaged or not doubt(error.path):
                    raise
                damaged.add(error.path)
                continue
            return results


def plan(path: PathLike, *, watcher: Listener | None = None, **options: Unpack[CaseOptions]) -> Plan:
    """The test cases of the job at `path` with their states and reasons; nothing runs."""
    with _loaded(path, CaseOptions, options) as (job, inspector):
        return require_files(job, inspector, watcher).checked_plan()


def validate(path: PathLike, *, watcher: Listener | None = None, **options: Unpack[JobOptions]) -> JobSpec:
    """Check the job at `path` and return it; its `warnings` list settings without effect and suspicious ones.

    Makes every check that `run` makes before the first case, in the same order and with the same messages
    (running/scheduler/preflight.py): files, data, metrics, scenario, the grids against the constructors of the
    plugins, and the exam itself, whose data are decoded into the workspace as in a run. Code of authors runs in a
    separate process. Raises ConfigError with all errors.
    """
    with _loaded(path, JobOptions, options) as (job, inspector):
        return check_job(job, inspector, watcher or Listener())


def prepare(path: PathLike, **options: Unpack[JobOptions]) -> list[tuple[str, Path, bool]]:
    """Make the environments of the job at `path`: (algorithm, folder, whether it was made now) of each.

    Packages are installed by uv or pip, from wherever these take them. Raises IanvsError.
    """
    from ianvs.processes.interpreters.lock import prepare as made

    with _loaded(path, JobOptions, options) as (job, _):
        listed = [(a, a.environment.folder(job.workspace)) for a in job.algorithms if a.environment is not None]
        return [(str(a.name), folder, made(a, job.workspace)) for a, folder in listed]


def report(
    path: PathLike,
    *,
    page_only: bool = False,
    stored: bool = False,
    running: Sequence[str] = (),
    **options: Unpack[CaseOptions],
) -> Results:
    """Write the reports of the job at `path` from stored results; nothing runs. page_only: only report.html.

    stored: with cases that were made in the same exam before something changed and have not run since, in rows of
    their own. If all stored results are from before a change of the job, a method or ianvs, they are reported and
    marked as such. running: sentences on what runs, for a page that renews itself. Raises IanvsError if nothing of the
    job is stored.
    """
    results = _stored_results(path, stored, options)
    try:
        _write(results, f"ianvs report -f {shown_path(job_path(Path(path)))}", page_only, running)
    except DamagedError as error:
        doubt(error.path)  # so that the next run finds it, too
        raise
    return results


def _stored_results(path: PathLike, stored: bool, options: CaseOptions) -> Results:
    """What is stored of a job. stored: also what was made before something changed."""
    with _loaded(path, CaseOptions, options) as (job, inspector):
        _refuse_many(job)
        plan_ = require_files(job, inspector).checked_plan()
        facts = collect(job_file=job.file, imported=imports_of(job))
        return stored_results_of(plan_, facts, inspector, earlier_too=stored)


def plot(
    path: PathLike,
    out: PathLike | None = None,
    *,
    over: str | None = None,
    metric: str | None = None,
    formats: Sequence[str] = ("svg",),
    **options: Unpack[CaseOptions],
) -> list[Path]:
    """Draw stored results for a paper, in `out` or rank/plots of the job: see `ianvs.results.plots.write_plots`."""
    results = _stored_results(path, False, options)
    folder = report_folder(results.workspace / results.name) / "plots" if out is None else Path(out)
    return write_plots(results, folder, over=over, metric=metric, formats=formats)


def prune(
    path: PathLike, *, finished: bool = False, lost: bool = False, yes: bool = False, **options: Unpack[JobOptions]
) -> list[Prunable]:
    """What the workspace of the job at `path` could do without, of all its jobs: see ianvs.store.pruning.

    Models of rounds before the last are always among it; finished: those of finished cases, too; lost: cases that no
    job has any more, this one as it is now included. yes: remove it; what is returned is what was removed. Cases that
    a process works on stay. Raises IanvsError for `lost` while another job runs, whose cases are not known yet.
    """
    with _loaded(path, JobOptions, options) as (job, inspector):
        plan_ = require_files(job, inspector).checked_plan()
    if not plan_.store.root.is_dir():
        raise IanvsError(nothing_stored(job.workspace), code="missing-results")
    wanted = JobStore.case_ids(job.workspace).union(planned.case.id for planned in plan_.stored())
    kinds = {"old"} | ({"finished"} if finished else set()) | ({"lost"} if lost else set())
    items = [item for item in prunable(plan_.store, wanted) if item.kind in kinds]
    for item in items:
        if item.kind == "lost" and plan_.store.running(item.case_id):
            raise IanvsError(
                f"case {item.case_id[:8]} of another job runs in {shown_path(job.workspace)}: what no job has is known "
                "once that run has ended. Without --lost the rest can be pruned.",
                code="job-in-progress",
            )
    return [item for item in items if not yes or remove_prunable(plan_.store, item)]


def compare(sides: Sequence[PathLike]) -> Comparison:
    """Compare two or more workspaces, job files or reports, each with the first. Nothing is written.

    For a workspace with several jobs, name one of them: "WORKSPACE:JOB". Raises IanvsError for anything else.
    """
    return compare_sides([read_side(side) for side in sides])


def merge(sources: Sequence[PathLike], out: PathLike) -> Merged:
    """Write the results of several workspaces into a new one at `out`, with one leaderboard. The sources are only read.

    What does not fit is left out and reported (Merged.messages): a different exam under the same name, different source
    under the name of an algorithm, damaged or unfinished cases. Raises IanvsError if `out` is not empty, or nothing
    fits.
    """
    merged = merge_workspaces(sources, out)
    _write(merged.results, f"ianvs merge {shlex.join(map(str, sources))} --out ANOTHER")
    return merged


def export(path: PathLike, to: str, out: PathLike, *, workspace: PathLike | None = None) -> Path:
    """Write the stored results of a job into the new folder `out`, in the format of another tool; returns the folder.

    path: a job file, the name of a job of ours, "WORKSPACE", or "WORKSPACE:JOB". to: "parquet", "mlflow",
    "tensorboard", "wandb", "huggingface", or a format of an installed package (docs/results.md). Nothing runs, and
    nothing is sent anywhere. Raises IanvsError if no results are stored, `to` is unknown, a required package is
    missing, or `out` is not empty.
    """
    return export_results(stored_results(path, workspace), to, Path(out))


def migrate(path: PathLike, out: PathLike, *, root: PathLike | None = None) -> dict[Path, str]:
    """Convert the files of a KubeEdge Ianvs job to our own format, below `out`; returns {file: its text}.

    Plugins stay where they are, unchanged. Raises ConfigError for errors in the job, and
    IanvsError if the job is in our format already, or a file would be replaced.
    """
    folder = Path(out).absolute()
    files = read_job(job_path(Path(path)), Path(root) if root is not None else None).migrated(folder)
    if not files:
        raise IanvsError(
            f"no algorithm of {path} is written for KubeEdge Ianvs: there is nothing to migrate.", code="no-effect"
        )
    if taken := [file for file in files if file.exists()]:
        raise IanvsError(f"{shown_path(taken[0])} already exists. Give --out another folder.", code="existing-output")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise IanvsError(f"{shown_path(folder)} can't be written: {error.strerror}.", code="unwritable-file") from error
    return files


def exams(path: PathLike, **options: Unpack[JobOptions]) -> dict[str, Exam]:
    """The exams of the job at `path` by name, with their data; nothing runs.

    If each seed has its own exam, this is the one of the first seed, as its name shows.
    """
    with _loaded(path, JobOptions, options) as (job, inspector):
        require_files(job, inspector)
    exams_by_name = {}
    for testenv in job.testenvs:
        suffix = f" (of seed {job.seeds[0]}; each seed has one of its own)" if seeds_of_case(testenv.scenario) else ""
        exams_by_name[testenv.name + suffix] = open_exam(with_seed(testenv, job.seeds[0]), job.workspace / "cache")
    return exams_by_name


@contextmanager
def _loaded(
    path: PathLike, option_class: type[JobOptions], options: Mapping[str, Any], early: EarlyEngine | None = None
) -> Iterator[tuple[JobSpec, Inspector]]:
    """The job, and who asks its authors' files, from processes of `early` where there will be cases.

    option_class: the class of the options that the caller takes; raises TypeError for another one.
    """
    names = option_class.__annotations__  # those of its bases are among them
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
        overrides=parsed(options.get("settings", ())),
    )
    engine = (lambda: None) if early is None else partial(early.forking, job)
    with closing(Inspector(job, engine, partial(inspector_sandbox, job), inline=runs_inline(job))) as inspector:
        job = without_unused(job, inspector)
        if job.overrides:
            job = with_hyperparameters(job, inspector)
        yield replace(job, only=options.get("only"), limit=options.get("limit")), inspector


def _refuse_many(job: JobSpec) -> None:
    """Raise IanvsError for a grid so large that it is hardly meant, before its cases are made one by one."""
    if job.limit is not None:
        return
    sizes = {algorithm.name: cells(algorithm.modules) for algorithm in job.algorithms}
    cases = sum(sizes.values()) * len(job.seeds) * len(job.testenvs)
    if cases > MOST_CASES:
        largest = max(sizes, key=lambda name: sizes[name])
        raise IanvsError(
            f"the job has {cases:,} cases, and the grid of '{largest}' alone {sizes[largest]:,} choices; nothing was "
            f"run. `--limit 3` takes the first three. Give fewer values in its file, or with --set; `--yes` runs all.",
            code="too-many-cases",
        )


def _write(results: Results, again: str, page_only: bool = False, running: Sequence[str] = ()) -> None:
    """again: the command that does it once there is room."""
    store = JobStore(results.workspace, results.name)
    with not_collecting():
        leaderboard = results.leaderboard  # first: what can't be read stops it before anything is written
    try:
        store.write(record_of(results))
        provenance = (store.read() or {}).get("provenance") or results.provenance
        command = str(provenance["command"])
        about: dict[str, Any] = {"title": results.name, "command": command, "provenance": provenance}
        if not page_only:
            write_reports(leaderboard, results.reported, results.rank, store.folder, **about)
        with not_collecting():
            selected = leaderboard.select(results.rank)
            about |= {"workspace": results.workspace, "running": running}
            write_page(selected, results.passed, results.reported, store.folder, **about)
    except OSError as error:
        raise IanvsError(
            f"the reports can't be written: {error.strerror} ({error.filename}). What is finished is stored; "
            f"`{again}` writes them once there is room.",
            code="unwritable-file",
        ) from error
