"""Every check that `validate` and `run` share, in the order in which they are made.

What is cheap comes first. A check that stands on others is made only where these have found nothing; all others are
made, so that a user hears of everything at once. `plan`, `report` and the like make those of FILES alone. Nothing is
trained, and no code of an author runs in this process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace

from ianvs.base.errors import ConfigError, IanvsError, Problem, shown_path
from ianvs.config.contracts import contract_of
from ianvs.config.spec import JobSpec
from ianvs.exam import data
from ianvs.processes.engines.asking import ask
from ianvs.processes.engines.engine import Engine, Task
from ianvs.running.inspector import Inspector
from ianvs.running.planning import Plan, PlannedAlgorithm
from ianvs.running.planning.case_request import PREPARE_EXAM, case_request
from ianvs.running.planning.missing_pictures import missing_pictures
from ianvs.running.scheduler import checks
from ianvs.running.scheduler.case_files import files_of_exam
from ianvs.running.scheduler.flight import Check, Preflight, Watcher
from ianvs.running.scheduler.opening import engine_problems, isolates
from ianvs.running.scheduler.plugin_checks import fit_problems, plugin_problems
from ianvs.running.scheduler.search_checks import search_problems, search_round_problems
from ianvs.running.scheduler.selection_checks import round_problems, selection_problems
from ianvs.running.scoring.incompatibilities import incompatibilities, scores_fit
from ianvs.store import ExamStore

__all__ = ["CHECKS", "plan_files", "preflight", "require_files"]


def preflight(
    job: JobSpec,
    inspector: Inspector,
    engine: Callable[[Plan | None], Engine],
    watcher: Watcher,
    runs: Callable[[Plan], bool] = lambda plan: True,
) -> Plan:
    """The plan of `job` when all checks have found nothing; else ConfigError with everything that they have found.

    Its job has the warnings of all of them. runs: whether anything of the plan will run; where nothing will, no code of
    an author is looked at.
    """
    found = Preflight(job, inspector, engine, watcher)
    found.make(FILES + PLAN)
    if found.problems or runs(found.plan):
        found.make(CODE)
    checked = found.insist()
    return replace(found.plan, job=checked)


def require_files(job: JobSpec, inspector: Inspector) -> JobSpec:
    """The job with the warnings of those checks that cost no more than reading. Raises ConfigError with all slips."""
    return _with_files(job, inspector).insist()


def plan_files(job: JobSpec, inspector: Inspector) -> Plan:
    """The plan of `require_files(job)`."""
    found = _with_files(job, inspector)
    checked = found.insist()
    return replace(found.plan, job=checked)


def _with_files(job: JobSpec, inspector: Inspector) -> Preflight:
    found = Preflight(job, inspector, _no_engine, _Nobody())
    found.make(FILES)
    return found


def _no_engine(plan: Plan | None) -> Engine:
    raise AssertionError("no check of files runs a task")


# --- the data, the plan, the workspace ----------------------------------------------------------------------------


def _workspace(flight: Preflight) -> list[Problem]:
    """Find out before anything runs that results can't be stored."""
    workspace = flight.job.workspace
    try:
        workspace.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=workspace):
            pass
    except OSError as error:
        raise IanvsError(
            f"the workspace {shown_path(workspace)} can't be written: {error.strerror}. "
            "Choose another with `workspace` in the job file or with --workspace."
        ) from error
    return []


def _data(flight: Preflight) -> list[Problem]:
    """What is wrong with the data; to look at a long list of files takes seconds, which the plan does not do again."""
    found = checks.checked_data(flight.job)
    flight.samples = tuple(one.samples for one in found)
    return [problem for one in found for problem in one.problems]


def _pictures(flight: Preflight) -> list[Problem]:
    """Finished cases whose predicted label pictures a metric asks for, and that kept none."""
    return missing_pictures(flight.plan, flight.inspector)


def _plan(flight: Preflight) -> list[Problem]:
    """Two testenvs that are one exam; files of data that can't be read."""
    try:
        _ = flight.plan
    except ConfigError as error:
        return list(error.problems)
    return []


def _sealing(flight: Preflight) -> list[Problem]:
    job = flight.job
    if job.sealing != "strict" or flight.engine.seals or not isolates(job):
        return []
    message = (
        f"`sealing: strict` can't be kept by engine {job.engine.name} here: its processes are not forked. "
        "Run it on Linux without `start: spawn`, or leave `sealing` out (docs/trust.md)."
    )
    return [Problem(message, job.engine.place)]


# --- exams --------------------------------------------------------------------------------------------------------


def _exams(flight: Preflight) -> list[Problem]:
    """Decode the data and build each exam, once, for all jobs of the workspace; then what its metrics can't have.

    With what looks wrong in the samples themselves.
    """
    if contract_of(flight.job).runs_cases:  # and nothing of an exam is kept
        return []
    plan, exams, cache = flight.plan, ExamStore(flight.job.workspace), flight.job.workspace / "cache"
    problems: list[Problem] = []
    for algorithm in {algorithm.exam_id: algorithm for algorithm in plan.algorithms}.values():
        damaged = exams.damage(algorithm.exam_id, thoroughly=True) is not None
        unseen = damaged or data.doubts_of(_content(algorithm), cache) is None
        if unseen or not scores_fit(cache, algorithm.exam_id, algorithm.testenv):
            problems += _prepare(flight, plan, algorithm)
    for algorithm in plan.algorithms:  # also of an exam that an earlier job has prepared
        record = exams.record(algorithm.exam_id)
        if record is not None:
            problems += incompatibilities(record, algorithm.testenv)
            problems += checks.sample_problems(record, algorithm.testenv, data.doubts_of(_content(algorithm), cache))
    return problems


def _chosen_rounds(flight: Preflight) -> list[Problem]:
    """Of exams that are prepared already: what is finished is ranked anew by every report."""
    if flight.job.rank.select is None and flight.job.search is None:
        return []
    exams = ExamStore(flight.job.workspace)
    records = {of.exam_id: exams.record(of.exam_id) for of in flight.plan.algorithms}
    return [
        *(one for record in records.values() if record for one in round_problems(record, flight.job.rank.select)),
        *search_round_problems(flight.plan, records),
    ]


def _content(algorithm: PlannedAlgorithm) -> str:
    return str(algorithm.exam["dataset"])


def _prepare(flight: Preflight, plan: Plan, algorithm: PlannedAlgorithm) -> list[Problem]:
    name = algorithm.testenv.dataset.name or "data"
    if algorithm.testenv_name:
        name = f"{name} for {algorithm.testenv_name}"
    watcher = flight.watcher
    watcher.preparing(name, 0.0)
    first = next(algorithm.cases(plan.job.seeds), algorithm.case({}, algorithm.seeds(plan.job.seeds)[0]))
    log = plan.job.workspace / "exams" / f"{algorithm.exam_id}.log"
    request = case_request(plan, first, algorithm, {})
    task = Task(f"exam-{algorithm.exam_id}", PREPARE_EXAM, request, log, files=files_of_exam(request, log))
    answer = ask(flight.engine, task, told=lambda fraction: watcher.preparing(name, float(fraction)))
    if answer.code != 0:
        raise IanvsError(f"reading the data failed; the reason is at the end of {log}.")
    return list(answer.result or ())


class _Nobody:
    def preparing(self, what: str, fraction: float) -> None: ...


# --- the list -----------------------------------------------------------------------------------------------------

FILES: tuple[Check, ...] = (
    # What the files say of themselves has been checked by load_job, which raises before there is a job; of those in
    # the form of another contract it goes on where it can.
    Check("files", lambda p: p.job.problems),
    Check("engine", lambda p: engine_problems(p.job)),  # an engine of an author is imported here
    Check("paradigms", lambda p: checks.paradigm_problems(p.job, p.inspector)),  # a file: as for metrics
    Check("settings", lambda p: checks.setting_problems(p.job)),
    Check("data", _data),  # index files, pictures; an author's function, once
    Check("scenarios", lambda p: checks.scenario_problems(p.job)),
    Check("metrics", lambda p: p.metrics[0]),  # an author's file: a second in another process, once
    Check("columns", lambda p: checks.column_problems(p.job, p.levels), stands_on_others=True),
    Check("selection", lambda p: list(selection_problems(p.job, p.levels)), stands_on_others=True),
    Check("search", lambda p: list(search_problems(p.job, p.levels)), stands_on_others=True),
    Check("published", lambda p: checks.published_problems(p.job, p.levels), stands_on_others=True),
    Check("quantities", lambda p: checks.quantity_problems(p.job), stands_on_others=True),
    Check("references", lambda p: checks.reference_problems(p.job, p.inspector), stands_on_others=True),
    Check("links", lambda p: checks.link_problems(p.job, p.levels), stands_on_others=True),
    Check("replies shown", lambda p: checks.forced_problems(p.job, p.inspector), stands_on_others=True),
    Check("protocols", lambda p: checks.protocol_problems(p.job), stands_on_others=True),
)
"""What costs no more than reading the files."""

PLAN: tuple[Check, ...] = (
    Check("workspace", _workspace, stands_on_others=True),
    Check("plan", _plan, stands_on_others=True),  # reads all data once, ever, for their digests
    Check("pictures", _pictures, stands_on_others=True),
    Check("chosen rounds", _chosen_rounds, stands_on_others=True),
)
"""What has to be known to tell what is finished."""

CODE: tuple[Check, ...] = (
    Check("sealing", _sealing, stands_on_others=True),  # opens the engine
    Check("plugins", plugin_problems),  # imports them, torch too: seconds
    Check("exams", _exams, stands_on_others=True),  # decodes the data, once
    Check("chosen rounds", _chosen_rounds, stands_on_others=True),  # of those that are prepared now
    Check("fit", fit_problems, stands_on_others=True),  # asks those plugins that want to see the exam
)
"""What takes processes of an engine, or time."""

CHECKS = FILES + PLAN + CODE
