"""Every check that `validate` and `run` share, in the order in which they are made.

What is cheap comes first. A check that stands on others is made only where these have found nothing; all others are
made, so that a user hears of everything at once. `plan`, `report` and the like make those of FILES alone. Nothing is
trained, and no code of an author runs in this process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from ianvs import data
from ianvs.config.spec import AlgorithmSpec, JobSpec, ModuleSpec
from ianvs.engines.asking import ask
from ianvs.engines.engine import Engine, Task
from ianvs.errors import ConfigError, IanvsError, Place, Problem, shown_path
from ianvs.planning import Plan, PlannedAlgorithm, cells, grid, make_plan
from ianvs.planning.case_request import PREPARE_EXAM, case_request
from ianvs.planning.closed import closed_paths, opened_paths
from ianvs.planning.missing_pictures import missing_pictures
from ianvs.planning.paradigm_info import ParadigmInfo, paradigm_info
from ianvs.planning.studies import is_searched, with_ends
from ianvs.plugins.check import FORCED, Checked, Closed, Subject
from ianvs.scheduler import checks
from ianvs.scheduler.case_files import files_of_exam
from ianvs.scheduler.kubeedge_checks import code_problems, import_problems, is_kubeedge, setting_problems
from ianvs.scheduler.opening import engine_problems, isolates
from ianvs.scheduler.search_checks import search_problems, search_round_problems
from ianvs.scheduler.selection_checks import round_problems, selection_problems
from ianvs.scheduler.taught_texts import Rounds, taught_texts
from ianvs.scoring.misfits import misfits, scores_fit
from ianvs.store import ExamRecord, ExamStore

__all__ = ["CHECKS", "Check", "Preflight", "Watcher", "plan_files", "preflight", "require_files"]

LOOK = "ianvs.plugins.check:check_task"
MOST_BUILT = 32  # choices of hyperparameters that an algorithm is built with; of a larger grid each value once


class Watcher(Protocol):
    """Is told how far the data are prepared."""

    def preparing(self, what: str, fraction: float) -> None: ...


@dataclass(frozen=True)
class Check:
    """One of the checks. A warning among what it finds stops nothing.

    stands_on_others: it takes for granted that those before it have found nothing wrong.
    """

    name: str
    find: Callable[[Preflight], Iterable[Problem]]
    stands_on_others: bool = False


class Preflight:
    """The checks of one job, and what they have found. engine: whose processes run authors' code; None: no plan yet."""

    def __init__(self, job: JobSpec, engine: Callable[[Plan | None], Engine], watcher: Watcher) -> None:
        self.job, self.watcher = job, watcher
        self._engine = engine
        self.tasks = 0
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = list(job.warnings)
        self.samples: tuple[str | None, ...] = ()  # fingerprints of each testenv's, where they are known by then
        self.asking: set[tuple[Any, ...]] = set()  # modules whose plugins want to see the facts of an exam

    def make(self, checks_: Sequence[Check]) -> None:
        """Make these checks, those apart that stand on others which have found something."""
        for check in checks_:
            if not (self.problems and check.stands_on_others):
                for problem in check.find(self):
                    (self.warnings if problem.warning else self.problems).append(problem)

    def insist(self) -> JobSpec:
        """The job with all warnings. Raises ConfigError if anything is wrong."""
        if self.problems:
            raise ConfigError(dict.fromkeys(self.problems), dict.fromkeys(self.warnings))
        return replace(self.job, warnings=tuple(dict.fromkeys(self.warnings)))

    @cached_property
    def plan(self) -> Plan:
        return make_plan(self.job, self.samples)

    @cached_property
    def metrics(self) -> tuple[list[Problem], dict[str, str]]:
        return checks.metric_levels(self.job)

    @property
    def levels(self) -> dict[str, str]:
        return self.metrics[1]

    @property
    def engine(self) -> Engine:
        return self._engine(None if self.problems else self.plan)


def preflight(
    job: JobSpec,
    engine: Callable[[Plan | None], Engine],
    watcher: Watcher,
    runs: Callable[[Plan], bool] = lambda plan: True,
) -> Plan:
    """The plan of `job` when all checks have found nothing; else ConfigError with everything that they have found.

    Its job has the warnings of all of them. runs: whether anything of the plan will run; where nothing will, no code of
    an author is looked at.
    """
    found = Preflight(job, engine, watcher)
    found.make(FILES + PLAN)
    if found.problems or runs(found.plan):
        found.make(CODE)
    checked = found.insist()
    return replace(found.plan, job=checked)


def require_files(job: JobSpec) -> JobSpec:
    """The job with the warnings of those checks that cost no more than reading. Raises ConfigError with all slips."""
    return _with_files(job).insist()


def plan_files(job: JobSpec) -> Plan:
    """The plan of `require_files(job)`."""
    found = _with_files(job)
    checked = found.insist()
    return replace(found.plan, job=checked)


def _with_files(job: JobSpec) -> Preflight:
    found = Preflight(job, _no_engine, _Nobody())
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
    return missing_pictures(flight.plan)


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


# --- plugins ------------------------------------------------------------------------------------------------------


def _plugins(flight: Preflight) -> list[Problem]:
    """Import each algorithm's plugin, hold it against its contract and its grid, and build it."""
    job = flight.job
    if is_kubeedge(job):
        return list(code_problems(job))
    if flight.problems:  # there is no plan: what the files name is looked at all the same
        subjects = [
            subject
            for algorithm, info in zip(job.algorithms, paradigm_info(job), strict=True)
            for subject in _subjects(job, algorithm, info)
        ]
    else:
        planned = {_looked_at(each): each for each in flight.plan.algorithms}.values()
        subjects = [s for each in planned for s in _subjects(job, each.spec, each.paradigm, each.choices)]
    problems: list[Problem] = []
    for subject, found in zip(subjects, _look(flight, subjects), strict=True):
        problems += found.problems
        if found.asks:
            flight.asking.add(_key(subject.algorithm, subject.module))
    return problems


def _fit(flight: Preflight) -> list[Problem]:
    """Ask those plugins that have a check_exam() whether they can take the exams as they turned out to be.

    Of plugins for KubeEdge Ianvs, whether their files and those of metrics can be imported.
    """
    if is_kubeedge(flight.job):
        return list(import_problems(flight.job))
    exams = ExamStore(flight.job.workspace)
    subjects: list[Subject] = []
    texts: dict[str, Rounds] = {}
    for each in flight.plan.algorithms:
        record = exams.record(each.exam_id)
        if record is not None:
            facts = _facts(record) | {"conversations": taught_texts(flight.plan, each, record, texts)}
            for subject in _subjects(flight.job, each.spec, each.paradigm, each.choices, facts):
                if _key(each.spec, subject.module) in flight.asking and subject not in subjects:
                    subjects.append(subject)
    return [problem for found in _look(flight, subjects) for problem in found.problems]


def _look(flight: Preflight, subjects: Sequence[Subject]) -> list[Checked]:
    """Of all subjects, in one process: torch is imported once. Who ends it, or never ends, is left out of the next."""
    found: dict[int, Checked] = {}
    seconds = flight.job.limits.check_seconds
    environment = {"CUDA_VISIBLE_DEVICES": ""} if flight.job.device == "cpu" else {}
    closed = _closed(flight.job) if flight.engine.isolates else Closed()
    while left := [index for index in range(len(subjects)) if index not in found]:
        flight.tasks += 1
        task = Task(
            f"check-{flight.tasks}", LOOK, ([subjects[index] for index in left], closed), environment=environment
        )
        answer = ask(flight.engine, task, seconds)
        if answer.result is not None:
            found |= dict(zip(left, answer.result, strict=True))
            continue
        said: Mapping[str, Any] = answer.said or {"subject": 0, "doing": "importing its plugin"}
        guilty = left[said["subject"]]
        algorithm, module = subjects[guilty].algorithm, subjects[guilty].module
        why = f"took longer than limits.check_seconds: {seconds:g}" if answer.overran else "ended the process"
        place = module.places.get("name") or algorithm.place or Place(algorithm.file)
        found[guilty] = Checked((Problem(f"{said['doing']} of {algorithm.name} {why}.", place),), asks=False)
    return [found[index] for index in range(len(subjects))]


def _closed(job: JobSpec) -> Closed:
    paths = closed_paths(job.workspace, (testenv.dataset for testenv in job.testenvs))
    return Closed(tuple(paths), tuple(opened_paths((m.url for a in job.algorithms for m in a.modules), paths)))


def _subjects(
    job: JobSpec,
    algorithm: AlgorithmSpec,
    paradigm: ParadigmInfo,
    choices: tuple[Mapping[str, object], ...] | None = None,
    exam: Mapping[str, object] | None = None,
) -> Iterator[Subject]:
    """A subject for each module. choices: of the hyperparameters of an algorithm that has one module and no grid."""
    forced = any(testenv.teacher_forced for testenv in job.testenvs)
    if is_searched(algorithm):
        choices = None  # its trials are within the ends of its ranges
    for module in map(with_ends, algorithm.modules):
        built = tuple(_some(module)) if choices is None else choices[:MOST_BUILT]
        methods = paradigm.methods.get(module.type, ())
        methods += (FORCED,) if forced and module.type == "basemodel" else ()
        yield Subject(algorithm, module, methods, built, job.device, job.places.get("device"), exam)


def _some(module: ModuleSpec) -> Iterator[dict[str, object]]:
    """The module's grid, or, of a large one, a few choices that have each value in one of them."""
    if cells((module,)) <= MOST_BUILT:
        yield from grid((module,))
        return
    longest = max(len(values) for _, values in module.grid)
    for index in range(min(longest, 8 * MOST_BUILT)):
        yield {**module.constants, **{name: values[index % len(values)] for name, values in module.grid}}


def _key(algorithm: AlgorithmSpec, module: ModuleSpec) -> tuple[Any, ...]:
    return algorithm.name, algorithm.file, algorithm.paradigm.name, module.type, module.name


def _looked_at(planned: PlannedAlgorithm) -> tuple[Any, ...]:
    """What is looked at once: the trials of a search are of one class, and within the ends of its ranges."""
    return _key(planned.spec, planned.spec.modules[0]), 0 if is_searched(planned.spec) else len(planned)


def _facts(record: ExamRecord) -> dict[str, object]:
    return {
        "kind": record.kind,
        "shape": record.shape,
        "classes": record.classes,
        "num_classes": len(record.classes),
        "rounds": len(record.rounds),
    }


# --- exams --------------------------------------------------------------------------------------------------------


def _exams(flight: Preflight) -> list[Problem]:
    """Decode the data and build each exam, once, for all jobs of the workspace; then what its metrics can't have.

    With what looks wrong in the samples themselves.
    """
    if is_kubeedge(flight.job):  # its cases are handed the files as they are
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
            problems += misfits(record, algorithm.testenv)
            problems += checks.sample_problems(record, algorithm.testenv, data.doubts_of(_content(algorithm), cache))
    return problems


def _chosen_rounds(flight: Preflight) -> list[Problem]:
    """Of exams that are prepared already: what is finished is ranked anew by every report."""
    if is_kubeedge(flight.job) or (flight.job.rank.select is None and flight.job.search is None):
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
    # What the files say of themselves has been checked by load_job, which raises before there is a job; of those for
    # KubeEdge Ianvs it goes on where it can.
    Check("files", lambda p: p.job.problems),
    Check("engine", lambda p: engine_problems(p.job)),  # an engine of an author is imported here
    Check("paradigms", lambda p: checks.paradigm_problems(p.job)),  # as for metrics, another process reads a file
    Check("settings", lambda p: setting_problems(p.job)),  # of KubeEdge Ianvs's paradigms
    Check("data", _data),  # index files, pictures; an author's function, once
    Check("scenarios", lambda p: checks.scenario_problems(p.job)),
    Check("metrics", lambda p: p.metrics[0]),  # an author's file: a second in another process, once
    Check("columns", lambda p: checks.column_problems(p.job, p.levels), stands_on_others=True),
    Check("selection", lambda p: list(selection_problems(p.job, p.levels)), stands_on_others=True),
    Check("search", lambda p: list(search_problems(p.job, p.levels)), stands_on_others=True),
    Check("published", lambda p: checks.published_problems(p.job, p.levels), stands_on_others=True),
    Check("quantities", lambda p: checks.quantity_problems(p.job), stands_on_others=True),
    Check("references", lambda p: checks.reference_problems(p.job), stands_on_others=True),
    Check("links", lambda p: checks.link_problems(p.job, p.levels), stands_on_others=True),
    Check("replies shown", lambda p: checks.forced_problems(p.job), stands_on_others=True),
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
    Check("plugins", _plugins),  # imports them, torch too: seconds
    Check("exams", _exams, stands_on_others=True),  # decodes the data, once
    Check("chosen rounds", _chosen_rounds, stands_on_others=True),  # of those that are prepared now
    Check("fit", _fit, stands_on_others=True),  # imports again those plugins that ask for it
)
"""What takes processes of an engine, or time."""

CHECKS = FILES + PLAN + CODE
