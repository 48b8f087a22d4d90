"""Checks of exams: their data, decoded once, and the settings of testenvs and `select` that depend on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ianvs.base.errors import IanvsError, ValidationError, shown_path
from ianvs.config.spec import SelectSpec, TestEnvSpec
from ianvs.exam import data
from ianvs.exam.data.data_warnings import FOLDER as DOUBTS
from ianvs.exam.data_types import data_type
from ianvs.exam.metrics.registry import metric_header
from ianvs.exam.questions import evaluation_tasks_of
from ianvs.processes.engines.engine import Engine, Files, Task
from ianvs.processes.process_end import describe_end, log_end
from ianvs.running.job_notes import data_warnings_text
from ianvs.running.planning.case_request import PREPARE_EXAM, CaseRequest, case_request
from ianvs.running.planning.cases import PlannedAlgorithm
from ianvs.running.planning.plan import Plan
from ianvs.running.planning.references import ROLES
from ianvs.running.planning.source_snapshot import store_sources
from ianvs.running.scheduler.checks import Preflight
from ianvs.running.scheduler.sandbox_checks import STREAMS
from ianvs.running.scheduler.searching import FIRST_RUNG, last_round
from ianvs.running.session.exams import FITS, scores_are_checked
from ianvs.store import CodeStore, ExamRecord, ExamStore

_POLL_SECONDS = 0.5


def exam_problems(preflight: Preflight, engine: Engine) -> Iterator[ValidationError]:
    """Decode the data and build each exam once for all jobs of the workspace; check its metrics and its samples."""
    plan, exams, cache = preflight.plan, ExamStore(preflight.job.workspace), preflight.job.workspace / "cache"
    for algorithm in {algorithm.exam_id: algorithm for algorithm in plan.algorithms}.values():
        damaged = exams.damaged_file(algorithm.exam_id, thoroughly=True) is not None
        unseen = damaged or data.data_warnings_of(str(algorithm.exam["dataset"]), cache) is None
        if unseen or not scores_are_checked(cache, algorithm.exam_id, algorithm.testenv):
            yield from _prepare(preflight, engine, algorithm)
    for algorithm in plan.algorithms:  # also for exams that an earlier job has prepared
        record = exams.record(algorithm.exam_id)
        if record is not None:
            spec, unequal = algorithm.testenv, len(record.tests) != len(record.rounds)
            if unequal or spec.gate is not None or spec.all_evaluation_tasks:
                yield from _incompatibilities(record, spec)
            if preflight.job.sandboxed and not record.rules.get("boundaries", True):
                place = algorithm.testenv.scenario.place if algorithm.testenv.scenario else algorithm.testenv.place
                yield ValidationError(f"{STREAMS}. Take one of them out.", place, code="conflicting-keys")
            place = algorithm.testenv.dataset.place or algorithm.testenv.place
            yield from (
                ValidationError(doubt, place, warning=True, code="doubtful-data")
                for doubt in data_warnings_text(plan, algorithm, record)
            )


def _prepare(preflight: Preflight, engine: Engine, algorithm: PlannedAlgorithm) -> Sequence[ValidationError]:
    name, listener = algorithm.testenv.dataset.name or "data", preflight.listener
    if algorithm.testenv_name:
        name = f"{name} for {algorithm.testenv_name}"
    listener.preparing(name, 0.0)
    log = preflight.job.workspace / "exams" / f"{algorithm.exam_id}.log"
    request = any_request(preflight.plan, algorithm)
    files = _files_of(request, log) if engine.elsewhere else None
    task = Task(f"exam-{algorithm.exam_id}", PREPARE_EXAM, request, log, files=files, secrets=request.secrets)

    engine.submit(task)
    code: int | None = None
    problems: Sequence[ValidationError] = ()
    while code is None:
        for event in engine.events(_POLL_SECONDS):
            if event.key != task.key:
                continue
            if event.kind == "ended":
                code = event.payload
            elif event.kind == "result":
                problems = event.payload
            elif event.kind == "progress" and isinstance(event.payload, str):
                listener.reading_progress(name, event.payload)
            elif event.kind == "progress":
                listener.preparing(name, float(event.payload))
    if code != 0:
        ended = describe_end(code, log_end(log))
        raise IanvsError(
            f"the process that prepares the exam ended: {ended}. {shown_path(log)} has all of it.",
            code="unreadable-data",
        )
    return list(problems)


def _files_of(request: CaseRequest, log: Path) -> Files:
    """Return the files that preparing the exam reads and writes."""
    workspace, store = request.workspace, ExamStore(request.workspace)
    return Files(
        root=workspace,
        reads=tuple(CodeStore(workspace).folder(snapshot.key) for snapshot in request.code),
        writes=(store.folder(request.exam_id), log),
        notes=tuple(workspace / "cache" / folder for folder in (DOUBTS, FITS)),
        lock=Path(store.lock(request.exam_id).lock_file),
    )


def any_request(plan: Plan, algorithm: PlannedAlgorithm) -> CaseRequest:
    """Return the request of any case of `algorithm`, which defines the exam."""
    seeds = plan.job.seeds
    first = next(algorithm.cases(seeds), algorithm.case({}, algorithm.seeds(seeds)[0]))
    return case_request(plan, first, algorithm, {}, store_sources(plan))


def _incompatibilities(exam: ExamRecord, spec: TestEnvSpec) -> Iterator[ValidationError]:
    """Yield settings in `spec` that the scenario does not support."""
    scenario = exam.rules["scenario"]
    if scenario == "single-task":
        return  # a testenv may be used by several paradigms
    if spec.gate is not None and not exam.rules.get("boundaries", True):
        message = f"model_eval holds back a part of each round, and {scenario} brings a stream. Take it out."
        yield ValidationError(message, spec.gate.place, code="unfit-exam")
    elif spec.gate is not None and not exam.rules.get("training_labels", True):
        message = f"model_eval scores answers to a part of each round, and {scenario} hides its labels. Take it out."
        yield ValidationError(message, spec.gate.place, code="unfit-exam")
    lacks = "" if len(exam.tests) == len(exam.rounds) else _counts(exam)
    misfits = False
    for task in evaluation_tasks_of(spec):
        message = ""
        if task.of_classes and not data_type(exam.kind, spec.dataset.data_type).probes:
            message = f"{task.name} is about classes, one for each sample, and these are {exam.kind} data"
        elif task.of_type not in ("", exam.kind):
            message = f"{task.name} is about {task.of_type} data, and these are {exam.kind} data"
        elif task.fits and lacks:
            message = f"{task.name} needs a test set for each round, and {lacks}"
        if message:
            misfits |= task.fits
            yield ValidationError(f"{message}. Take it out.", spec.places.get(task.name, spec.place), code="unfit-exam")
    if not lacks or misfits:
        return
    for metric in spec.metrics:
        if references := set(ROLES).intersection(metric_header(metric).needs):
            message = f"{metric.name} compares with {' and '.join(sorted(references))} runs round by round, and {lacks}"
            yield ValidationError(f"{message}. Take it out.", metric.place, code="unfit-exam")


def _counts(exam: ExamRecord) -> str:
    """Describe the numbers of rounds and test sets, which differ."""
    rounds = f"{len(exam.rounds)} round{'s' * (len(exam.rounds) != 1)}"
    return f"this exam has {rounds} and {len(exam.tests)} test set{'s' * (len(exam.tests) != 1)}"


def chosen_round_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Check `by: first_rounds` for prepared exams, since every report ranks finished cases again."""
    select = preflight.job.rank.select
    exams = ExamStore(preflight.job.workspace)
    records = {algorithm.exam_id: exams.record(algorithm.exam_id) for algorithm in preflight.plan.algorithms}
    for record in filter(None, records.values()):
        yield from _round_problems(record, select)
    for study in preflight.plan.studies:
        exam, spec = records.get(study.any_base.exam_id), study.spec
        if exam is None:
            continue
        yield from _round_problems(exam, spec.select)
        first, last = spec.first_rung or FIRST_RUNG, last_round(study, exam)
        if spec.name == "asha" and first >= last:
            reason = f"no trial of {study.any_base.spec.name} can be stopped: the first rung is round {first}"
            remedy = "Take an exam of more rounds, or `name: random` or `tpe`"
            place = spec.places.get("first_rung", spec.place)
            yield ValidationError(
                f"{reason}, and the search sees {last}. {remedy}.", place, warning=True, code="doubtful-search"
            )


def _round_problems(exam: ExamRecord, select: SelectSpec | None) -> Iterator[ValidationError]:
    """Yield errors of `by: first_rounds` for an exam."""
    if select is None or select.by != "first_rounds" or select.rounds is None:
        return
    place = select.places.get("rounds", select.place)
    if len(exam.tests) != len(exam.rounds):
        message = (
            f"`by: first_rounds` needs a test set for each round, and {_counts(exam)}. Choose by seeds or validation."
        )
        yield ValidationError(message, select.place, code="invalid-selection")
    elif select.rounds >= len(exam.rounds):
        reason = f"{select.rounds} rounds to choose on leave none to report: the exam has {len(exam.rounds)}."
        yield ValidationError(f"{reason} Take fewer.", place, code="invalid-selection")
