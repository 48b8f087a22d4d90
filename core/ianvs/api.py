"""The functions of ianvs. The command line is a shell over these."""

import shlex
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from ianvs.base.digests import force_reread
from ianvs.base.errors import DamagedError, IanvsError, shown_path
from ianvs.base.package import job_path
from ianvs.config.load import read_job
from ianvs.config.spec import JobSpec
from ianvs.exam.scenarios import Exam, open_exam
from ianvs.exam.scenarios.per_seed_exam import seeds_of_case, with_seed
from ianvs.results.comparing.comparison import Comparison, compare_sides
from ianvs.results.comparing.merging import Merged, merge_workspaces
from ianvs.results.comparing.sides import read_side, stored_results
from ianvs.results.exports.exporting import export_results
from ianvs.results.plots import write_plots
from ianvs.results.report.values import slug
from ianvs.results.stored import Results, load_results
from ianvs.results.stored.provenance import collect
from ianvs.results.write_all_reports import write_all_reports
from ianvs.running.open_job import CaseOptions, JobOptions, PathLike, open_job, refuse_many
from ianvs.running.planned_results import nothing_stored_message, results_of, stored_results_of
from ianvs.running.planning.plan import Plan, start_over
from ianvs.running.progress import default_listener
from ianvs.running.scheduler.case_loop import Listener
from ianvs.running.scheduler.controller import check_job, run_job
from ianvs.running.scheduler.create_engine import SharedLocalEngine, imports_by_file
from ianvs.running.scheduler.preflight import check_files
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
    """Run the unfinished cases of a job, write its reports, and return its results.

    Args:
        path: A job file, its folder, or the name of a shipped job.
        fail_fast: Whether to stop at the first case that fails; None: as the job's file says.
        rerun: Cases that start again from the first round: "failed", "all", or conditions as in `only`.
        keep: Whether finished cases that differ only in the source of their algorithm count as finished, now and in
            later runs. A note on the leaderboard names them.
        yes: Allow more than 100 000 cases.
        listener: Receives progress; by default, lines are printed in a notebook and nothing elsewhere.
        **options: See `CaseOptions`.

    Returns:
        The results of all cases. A case that failed is a row with a status, not an exception.

    Raises:
        ConfigError: The job's files are wrong. It is raised before anything runs.
    """
    with (
        closing(SharedLocalEngine()) as early,
        open_job(path, CaseOptions, options, early, corrects=True) as (job, inspector),
    ):
        if not yes:
            refuse_many(job)
        if fail_fast is not None:
            job = replace(job, fail_fast=fail_fast)
        if rerun is not None:
            dropped = start_over(check_files(job, inspector).checked_plan(), rerun)
            if not dropped and rerun not in ("all", "failed"):
                raise IanvsError(
                    f"--rerun '{rerun}' matches no case that has run; `ianvs plan` lists the cases.",
                    code="no-matching-case",
                )
        if keep:
            planned = check_files(job, inspector).checked_plan()
            JobStore(job.workspace, job.name).accept(planned.finished_with_other_source())
        provenance = collect(job_file=job.file, imported=set().union(*imports_by_file(job).values()))
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
                write_all_reports(results, f"ianvs report -f {shown_path(job.file)}")
            except DamagedError as error:  # a plan only looks at sizes and times, a report reads
                if error.path in damaged or not force_reread(error.path):
                    raise
                damaged.add(error.path)
                continue
            return results


def plan(path: PathLike, *, watcher: Listener | None = None, **options: Unpack[CaseOptions]) -> Plan:
    """List the test cases of a job with their states and reasons; nothing runs.

    Args:
        path: A job file, its folder, or the name of a shipped job.
        watcher: Receives the progress of the checks.
        **options: See `CaseOptions`.
    """
    with open_job(path, CaseOptions, options) as (job, inspector):
        return check_files(job, inspector, watcher).checked_plan()


def validate(path: PathLike, *, watcher: Listener | None = None, **options: Unpack[JobOptions]) -> JobSpec:
    """Make all checks that `run` makes before the first case; nothing is trained.

    The checks cover files, data, metrics, the scenario, the exam and the hyperparameters that plugins accept. Data are
    decoded into the workspace as in a run. Code of plugins runs in a separate process.

    Args:
        path: A job file, its folder, or the name of a shipped job.
        watcher: Receives the progress of the checks.
        **options: See `JobOptions`.

    Returns:
        The job. Its `warnings` list settings that have no effect or look wrong.

    Raises:
        ConfigError: All errors that the checks found.
    """
    with open_job(path, JobOptions, options, corrects=True) as (job, inspector):
        return check_job(job, inspector, watcher or Listener())


def prepare(path: PathLike, **options: Unpack[JobOptions]) -> list[tuple[str, Path, bool]]:
    """Make the environments that a job's algorithms ask for, with uv or pip.

    Returns:
        For each environment (algorithm, folder, whether it was made now).

    Raises:
        IanvsError: A package can't be installed.
    """
    from ianvs.processes.interpreters.lock import prepare as made

    with open_job(path, JobOptions, options) as (job, _):
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
    """Write the reports of a job from stored results; nothing runs.

    If all stored results are older than a change of the job, a method or ianvs, they are reported and marked.

    Args:
        path: A job file, its folder, or the name of a shipped job.
        page_only: Write report.html alone.
        stored: Add rows for cases that were run before a change of their algorithm, in the same exam.
        running: Sentences about running cases, for a page that reloads itself.
        **options: See `CaseOptions`.

    Raises:
        IanvsError: Nothing of the job is stored.
    """
    results = _stored_results(path, stored, options)
    try:
        write_all_reports(results, f"ianvs report -f {shown_path(job_path(Path(path)))}", page_only, running)
    except DamagedError as error:
        force_reread(error.path)  # so that the next run finds it, too
        raise
    return results


def _stored_results(path: PathLike, stored: bool, options: CaseOptions) -> Results:
    """Return what is stored of a job. stored: also what was made before something changed."""
    with open_job(path, CaseOptions, options) as (job, inspector):
        refuse_many(job)
        plan_ = check_files(job, inspector).checked_plan()
        facts = collect(job_file=job.file, imported=set().union(*imports_by_file(job).values()))
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
    """Draw charts of stored results for a paper.

    Args:
        path: A job file, its folder, or the name of a shipped job.
        out: The folder to write to; None: rank/plots of the job, with `only` a folder for that selection in it.
        over: A hyperparameter for the horizontal axis; None: the rounds.
        metric: The metric to draw; None: the first.
        formats: Formats of the files, such as "svg" and "pdf".
        **options: See `CaseOptions`.

    Returns:
        The files that were written.
    """
    results = _stored_results(path, False, options)
    folder = report_folder(results.workspace / results.name) / "plots" if out is None else Path(out)
    if out is None and options.get("only"):
        folder /= slug(str(options["only"]))  # the figure of all rows stays
    return write_plots(results, folder, over=over, metric=metric, formats=formats)


def prune(
    path: PathLike, *, finished: bool = False, lost: bool = False, yes: bool = False, **options: Unpack[JobOptions]
) -> list[Prunable]:
    """List what can be deleted from the workspace of a job, and delete it if `yes`.

    The list covers all jobs of the workspace. Models of earlier rounds are always on it. Running cases are never on it.

    Args:
        path: A job file, its folder, or the name of a shipped job.
        finished: Include the models of finished cases.
        lost: Include cases that belong to no job any more.
        yes: Delete.
        **options: See `JobOptions`.

    Returns:
        What can be deleted; with `yes`, what was deleted.

    Raises:
        IanvsError: `lost` is set while another job runs in the workspace.
    """
    with open_job(path, JobOptions, options) as (job, inspector):
        plan_ = check_files(job, inspector).checked_plan()
    if not plan_.store.root.is_dir():
        raise IanvsError(nothing_stored_message(job.workspace), code="missing-results")
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
    """Compare two or more workspaces, job files or reports, each with the first; nothing is written.

    Args:
        sides: Paths. One of several jobs in a workspace is "WORKSPACE:JOB".

    Raises:
        IanvsError: A path is none of these.
    """
    return compare_sides([read_side(side) for side in sides])


def merge(sources: Sequence[PathLike], out: PathLike) -> Merged:
    """Write the results of several workspaces into a new one with one leaderboard; the sources are only read.

    A different exam or algorithm under the same name, and damaged or unfinished cases, are left out. `Merged.messages`
    lists them.

    Args:
        sources: The workspaces.
        out: The folder of the new one.

    Raises:
        IanvsError: `out` is not empty, or nothing fits.
    """
    merged = merge_workspaces(sources, out)
    write_all_reports(merged.results, f"ianvs merge {shlex.join(map(str, sources))} --out ANOTHER")
    return merged


def export(path: PathLike, to: str, out: PathLike, *, workspace: PathLike | None = None) -> Path:
    """Write stored results in the format of another tool; nothing runs, and nothing is sent anywhere.

    Args:
        path: A job file, the name of a shipped job, "WORKSPACE", or "WORKSPACE:JOB".
        to: "parquet", "mlflow", "tensorboard", "wandb", "huggingface", or a format of an installed package.
        out: The new folder.
        workspace: The workspace, if it is not the one in the job's file.

    Returns:
        The folder.

    Raises:
        IanvsError: No results are stored, `to` is unknown, a package is missing, or `out` is not empty.
    """
    return export_results(stored_results(path, workspace), to, Path(out))


def migrate(path: PathLike, out: PathLike, *, root: PathLike | None = None) -> dict[Path, str]:
    """Convert the files of a KubeEdge Ianvs job to our format. Plugins are not changed.

    Args:
        path: The job file.
        out: The folder to write to.
        root: The folder to which paths of datasets are relative.

    Returns:
        The text of each file that was written.

    Raises:
        ConfigError: The job has errors.
        IanvsError: The job is in our format already, or a file exists.
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
    """Return the exams of a job by name, with their data; nothing runs.

    If each seed has its own exam, this is the exam of the first seed, as its name shows.
    """
    with open_job(path, JobOptions, options) as (job, inspector):
        preflight = check_files(job, inspector)
        if preflight.problems:
            raise preflight.error()
    exams_by_name = {}
    for testenv in job.testenvs:
        suffix = f" (of seed {job.seeds[0]}; each seed has one of its own)" if seeds_of_case(testenv.scenario) else ""
        exams_by_name[testenv.name + suffix] = open_exam(with_seed(testenv, job.seeds[0]), job.workspace / "cache")
    return exams_by_name
