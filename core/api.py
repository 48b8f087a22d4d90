"""What ianvs does, as functions. The command line is a shell over these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core import data
from core.config import load_job, resolved
from core.config.spec import JobSpec, MetricSpec, RankSpec
from core.errors import ConfigError, IanvsError, Place, Problem, closest, shown_path
from core.execution.controller import check_plugins, open_engine, run_job
from core.execution.loop import Listener
from core.execution.provenance import collect
from core.execution.references import References
from core.execution.results import read_case
from core.metrics.base import Metric
from core.metrics.registry import resolve
from core.planning import Plan, cells, make_plan, scored_metrics, start_over
from core.planning.identity import metric_key
from core.report import Leaderboard, build_leaderboard, cases_frame, rounds_frame, to_frame, write_reports
from core.scenarios import check_scenario
from core.store import CaseStore, ExamRecord, ExamStore, JobStore
from core.types import CaseResult, TestCase

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Results", "load_results", "plan", "report", "run", "validate"]

PathLike = str | Path


@dataclass(frozen=True)
class Results:
    """The results of a job, read from its workspace when they are asked for.

    Iterate it for typed results (one CaseResult per case, in the order of the plan); `leaderboard_frame`, `cases` and
    `rounds` are pandas frames. exit_code: 0 all good, 1 some case failed, 130 interrupted.
    """

    name: str
    workspace: Path
    rank: RankSpec
    seeds: int
    metrics: tuple[tuple[MetricSpec, Metric, str], ...]  # every score that is stored, and what is computed from them
    columns: tuple[str, ...]  # names of those that the leaderboard shows
    case_list: tuple[TestCase, ...]
    provenance: dict[str, Any]
    references: Mapping[str, str] = field(default_factory=dict)  # algorithm by role
    exit_code: int = 0
    ran: int = 0

    def __iter__(self) -> Iterator[CaseResult]:
        cases, exams = CaseStore(self.workspace), ExamStore(self.workspace)
        records: dict[str, ExamRecord | None] = {}

        def read(case: TestCase, references: References | None = None) -> CaseResult:
            exam_id = (cases.identity(case.id) or {}).get("exam_id", "")
            if exam_id not in records:
                records[exam_id] = exams.record(exam_id) if exam_id else None
            return read_case(cases, case, records[exam_id], self.metrics, references)

        references = References(self.references, self.case_list, read)
        for case in self.case_list:
            yield read(case, references)

    def __len__(self) -> int:
        return len(self.case_list)

    @cached_property
    def leaderboard(self) -> Leaderboard:
        """Ranked rows, one for each algorithm and choice of hyperparameters."""
        shown = {spec.name: metric for spec, metric, _ in self.metrics}
        return build_leaderboard(
            self, self.rank, [shown[name] for name in self.columns], self.columns, self.seeds, self.workspace
        )

    @property
    def leaderboard_frame(self) -> pd.DataFrame:
        """The leaderboard with every column, typed; `frame.attrs` tells what a column means."""
        return to_frame(self.leaderboard)

    @property
    def cases(self) -> pd.DataFrame:
        """One row per case."""
        return cases_frame(self, self.workspace)

    @property
    def rounds(self) -> pd.DataFrame:
        """One row per case, round, test set and score."""
        return rounds_frame(self)

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        return tuple(result for result in self if result.status == "failed")


def run(
    path: PathLike,
    *,
    workspace: PathLike | None = None,
    jobs: int | None = None,
    root: PathLike | None = None,
    engine: str | None = None,
    device: str | None = None,
    fail_fast: bool | None = None,
    rerun: str | None = None,
    listener: Listener | None = None,
) -> Results:
    """Run what is not finished of the job at `path`, write its reports, and return its results.

    The keyword arguments take the place of what the files say. rerun: cases that start over from the first round:
    "failed", "all", or conditions such as "ewc,seed=1" (core.planning.choose). Raises ConfigError before anything
    runs; a case that fails raises nothing: it is a row with a status.
    """
    from core.progress import Silent

    job = _load(path, workspace, jobs, root, engine, device)
    if fail_fast is not None:
        job = replace(job, fail_fast=fail_fast)
    _checked(job)
    if rerun is not None and not start_over(make_plan(job), rerun) and rerun not in ("all", "failed"):
        raise IanvsError(f"--rerun '{rerun}' matches no case that has run; `ianvs plan` lists the cases.")
    provenance = {**collect(job_file=job.file), "configuration": resolved(job)}
    of_case = {name: value for name, value in provenance.items() if name != "configuration"}
    outcome = run_job(job, listener or Silent(), of_case)
    results = _results(outcome.plan, provenance, outcome.exit_code, outcome.ran)
    _write(results, job)
    return results


def plan(
    path: PathLike,
    *,
    workspace: PathLike | None = None,
    jobs: int | None = None,
    root: PathLike | None = None,
) -> Plan:
    """The test cases of the job at `path` with their states and reasons; nothing runs."""
    job = _load(path, workspace, jobs, root)
    _checked(job)
    return make_plan(job)


def validate(path: PathLike, *, workspace: PathLike | None = None, root: PathLike | None = None) -> JobSpec:
    """The job at `path`, if nothing is wrong with it; its `warnings` tell what has no effect.

    Checks all files, data paths, metric names, scenario, and the grids against the constructors of the plugins, which
    are imported for that in a process of their own. Raises ConfigError with everything that is wrong.
    """
    job = _load(path, workspace, None, root)
    problems = _problems(job)
    engine = open_engine(job, tasks=1)
    try:
        problems += check_plugins(engine, job.algorithms)
    finally:
        engine.close()
    if problems:
        raise ConfigError(problems)
    return job


def report(path: PathLike, *, workspace: PathLike | None = None, root: PathLike | None = None) -> Results:
    """Write the reports of the job at `path` from what is stored; nothing runs."""
    job = _load(path, workspace, None, root)
    _checked(job)
    results = _results(make_plan(job), {**collect(job_file=job.file), "configuration": resolved(job)})
    _write(results, job)
    return results


def load_results(workspace: PathLike, job: str | None = None) -> Results:
    """Results of a job that ran in `workspace`; `job` is its name, which may be left out where there is one only."""
    workspace = Path(workspace).resolve()
    names = list(JobStore.names(workspace))
    if not names:
        raise IanvsError(f"{workspace} holds no results: no job has run there.")
    if job is None and len(names) > 1:
        raise IanvsError(f"{workspace} holds results of several jobs: {', '.join(names)}. Say which: job=...")
    name = job or names[0]
    record = JobStore(workspace, name).read()
    if record is None:
        raise IanvsError(f"{workspace} holds no job '{name}'.{closest(name, names)} It holds: {', '.join(names)}.")
    metrics = tuple(_metric_from_record(stored) for stored in record["metrics"])
    stored_rank: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in record["rank"].items()}
    stored_rank["sort_by"] = tuple((key, bool(down)) for key, down in record["rank"]["sort_by"])
    known = {case.id: case for case in CaseStore(workspace).all_cases()}
    return Results(
        name=name,
        workspace=workspace,
        rank=RankSpec(**stored_rank),
        seeds=record["seeds"],
        metrics=metrics,
        columns=tuple(record["columns"]),
        case_list=tuple(known[case_id] for case_id in record["cases"] if case_id in known),
        provenance=record["provenance"],
        references=record["references"],
    )


def _load(
    path: PathLike,
    workspace: PathLike | None = None,
    jobs: int | None = None,
    root: PathLike | None = None,
    engine: str | None = None,
    device: str | None = None,
) -> JobSpec:
    import os

    return load_job(
        Path(path),
        workspace=Path(workspace) if workspace is not None else None,
        jobs=jobs,
        root=Path(root) if root is not None else None,
        engine=engine,
        device=device,
        environment=os.environ,
    )


def _checked(job: JobSpec) -> None:
    problems = _problems(job)
    if problems:
        raise ConfigError(problems)


def _problems(job: JobSpec) -> list[Problem]:
    """What is wrong beyond the form of the files, as far as it shows without running anybody's code."""
    problems = data.check(job.exam.dataset)
    problems += check_scenario(job.exam.scenario, job.exam.incremental_rounds, job.exam.dataset.using)
    wanted = [*job.exam.metrics, *([job.exam.gate.metric] if job.exam.gate else [])]
    levels: dict[str, str] = {}
    for spec in wanted:
        try:
            metric = resolve(spec)
        except ConfigError as error:
            problems += error.problems
            continue
        except IanvsError as error:
            problems.append(Problem(str(error), spec.place))
            continue
        levels[spec.name] = "mapping" if metric.mapping else metric.level
    if not problems:
        problems += _problems_between(job, levels)
    return problems


def _problems_between(job: JobSpec, levels: dict[str, str]) -> list[Problem]:
    """What is wrong with names that point at each other."""
    problems = []
    shown = [spec.name for spec in job.exam.metrics if levels[spec.name] != "mapping"]
    for name, _ in job.rank.sort_by:
        if name not in shown:
            listed = f"The testenv's metrics are: {', '.join(shown)}." if shown else "The testenv has no metrics."
            place = job.rank.places.get(name) or Place(job.file)
            problems.append(
                Problem(f"sort_by names '{name}', which is not a column.{closest(name, shown)} {listed}", place)
            )
    for spec in job.exam.metrics:
        if spec.of is not None and levels.get(spec.of, "score") != "score":
            problems.append(Problem(f"'{spec.of}' is not a score that {spec.name} can be computed from.", spec.place))
    problems += _problems_of_references(job)
    if job.exam.gate is not None and levels[job.exam.gate.metric.name] != "score":
        gate = job.exam.gate.metric
        problems.append(Problem(f"model_eval needs a score of predictions; '{gate.name}' is none.", gate.place))
    return problems


def _problems_of_references(job: JobSpec) -> list[Problem]:
    problems = []
    algorithms = {algorithm.name: algorithm for algorithm in job.algorithms}
    for role, name in job.references.items():
        place = job.places.get(f"references.{role}")
        if name not in algorithms:
            listed = ", ".join(algorithms)
            hint = closest(name, algorithms)
            problems.append(Problem(f"'{name}' is not an algorithm of this job.{hint} There are: {listed}.", place))
        elif cells(algorithms[name].modules) > 1:
            said = f"'{name}' has several choices of hyperparameters; a reference needs one value of each."
            problems.append(Problem(said, place))
    return problems


def _results(plan_: Plan, provenance: dict[str, Any], exit_code: int = 0, ran: int = 0) -> Results:
    job = plan_.job
    metrics = tuple((spec, resolve(spec), metric_key(spec)) for spec in scored_metrics(job))
    mappings = {spec.name for spec, metric, _ in metrics if metric.mapping}
    columns = tuple(spec.name for spec in job.exam.metrics if spec.name not in mappings)
    if not columns:
        columns = tuple(spec.name for spec, _, _ in metrics if spec.name not in mappings)
    cases = tuple(case for case, _ in plan_.cases())
    return Results(
        name=job.name,
        workspace=job.workspace,
        rank=job.rank,
        seeds=len(job.seeds),
        metrics=metrics,
        columns=columns,
        case_list=cases,
        provenance=provenance,
        references=job.references,
        exit_code=exit_code,
        ran=ran,
    )


def _write(results: Results, job: JobSpec) -> None:
    store = JobStore(results.workspace, results.name)
    try:
        store.write(_record(results))
        provenance = (store.read() or {}).get("provenance") or results.provenance
        write_reports(
            results.leaderboard,
            results,
            results.rank,
            store.folder,
            title=results.name,
            command=provenance["command"],
            provenance=provenance,
        )
    except OSError as error:
        raise IanvsError(
            f"the reports can't be written: {error.strerror} ({error.filename}). What is finished is stored; "
            f"`ianvs report -f {shown_path(job.file)}` writes them once there is room."
        ) from error


def _record(results: Results) -> dict[str, Any]:
    rank = {name: value for name, value in vars(results.rank).items() if name != "places"}
    return {
        "name": results.name,
        "seeds": results.seeds,
        "rank": rank | {"sort_by": [list(key) for key in results.rank.sort_by]},
        "columns": list(results.columns),
        "metrics": [_metric_record(*metric) for metric in results.metrics],
        "cases": [case.id for case in results.case_list],
        "references": dict(results.references),
        "provenance": results.provenance,
    }


def _metric_record(spec: MetricSpec, metric: Metric, key: str) -> dict[str, Any]:
    return {
        "name": spec.name,
        "of": spec.of,
        "key": key,
        "custom": spec.url is not None,
        "summary": metric.summary,
        "higher_is_better": metric.higher_is_better,
        "mapping": metric.mapping,
    }


def _metric_from_record(stored: dict[str, Any]) -> tuple[MetricSpec, Metric, str]:
    """A metric of an author's file is not loaded again: its scores are stored."""
    spec = MetricSpec(stored["name"], of=stored["of"])
    if not stored["custom"]:
        return spec, resolve(spec), stored["key"]
    described: dict[str, Any] = {name: stored[name] for name in ("summary", "higher_is_better", "mapping")}
    return spec, Metric(stored["name"], "score", **described), stored["key"]
