"""Every check that `validate` and `run` share, in the order in which they are made.

What is cheap comes first. A check that stands on others is made only where these have found nothing; all others are
made, so that a user hears of everything at once. `plan`, `report` and the like make those of FILES alone. Nothing is
trained, and no code of an author runs in this process.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import psutil

from ianvs.base.errors import ConfigError, IanvsError, ReplyServerError, ValidationError, shown_path
from ianvs.base.package import own_name
from ianvs.config.contracts import contract_of
from ianvs.config.spec import AlgorithmSpec, JobSpec, ModuleSpec, SelectSpec, TestEnvSpec
from ianvs.exam import data
from ianvs.exam.data.doubts import FOLDER as DOUBTS
from ianvs.exam.data_types import data_type
from ianvs.exam.metrics.registry import metric_header
from ianvs.exam.questions import questions_of
from ianvs.processes.engines.engine import Engine, Files, Task, run_alone
from ianvs.processes.reply_server import ReplyServer
from ianvs.running.inspector import Inspector, ParadigmFacts
from ianvs.running.inspector.plugin_check import Checked, Needed, Subject
from ianvs.running.job_notes import data_doubts
from ianvs.running.planning.case_request import PREPARE_EXAM, CaseRequest, case_request
from ianvs.running.planning.cases import PlannedAlgorithm, cells, grid, own_hyperparameters
from ianvs.running.planning.kept_code import keep_code
from ianvs.running.planning.named_files import unfound_files
from ianvs.running.planning.plan import Plan
from ianvs.running.planning.references import ROLES
from ianvs.running.planning.studies import is_searched, with_ends
from ianvs.running.scheduler import checks, stream_checks
from ianvs.running.scheduler.case_loop import Listener
from ianvs.running.scheduler.checks import Check, Preflight
from ianvs.running.scheduler.interpreter_checks import interpreter_problems
from ianvs.running.scheduler.opening import engine_class, engine_problems
from ianvs.running.scheduler.searching import FIRST_RUNG, last_round
from ianvs.running.scheduler.slots import cores_of, visible_gpus
from ianvs.running.scoring import missing_pictures
from ianvs.running.session.exams import FITS, scores_fit
from ianvs.store import CodeStore, ExamRecord, ExamStore

MOST_BUILT = 32  # choices of hyperparameters that an algorithm is built with; of a larger grid each value once
_Rounds = tuple[tuple[list[Any], list[Any]], ...]  # for each round: what users said, and the replies


def preflight(
    job: JobSpec,
    inspector: Inspector,
    engine: Callable[[Plan | None], Engine],
    listener: Listener,
    runs: Callable[[Plan], bool] = lambda plan: True,
) -> Plan:
    """The plan of `job` when all checks have found nothing; else ConfigError with everything that they have found.

    Its job has the warnings of all of them. runs: whether anything of the plan will run; where nothing will, no code of
    an author is looked at.
    """
    found = Preflight(job, inspector, engine, listener)
    found.make(FILES + PLAN)
    if found.problems or runs(found.plan):
        found.make(CODE)
    return found.checked_plan()


def require_files(job: JobSpec, inspector: Inspector, listener: Listener | None = None) -> Preflight:
    """Make those checks that cost no more than reading. Raises ConfigError with all slips."""
    found = Preflight(job, inspector, listener=listener or Listener())
    found.make(FILES)
    found.insist()
    return found


def _workspace(flight: Preflight) -> Iterable[ValidationError]:
    """Find out before anything runs that results can't be stored."""
    workspace = flight.job.workspace
    try:
        workspace.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=workspace):
            pass
    except OSError as error:
        raise IanvsError(
            f"the workspace {shown_path(workspace)} can't be written: {error.strerror}. "
            "Choose another with `workspace` in the job file or with --workspace.",
            code="unwritable-file",
        ) from error
    return ()


def _plan(flight: Preflight) -> Iterable[ValidationError]:
    """Two testenvs that are one exam; files of data that can't be read."""
    try:
        _ = flight.plan
    except ConfigError as error:
        return error.problems
    return ()


def _chosen_round_problems(flight: Preflight) -> Iterator[ValidationError]:
    """Of exams that are prepared already: what is finished is ranked anew by every report."""
    select = flight.job.rank.select
    if select is None and flight.job.search is None:
        return
    exams = ExamStore(flight.job.workspace)
    records = {of.exam_id: exams.record(of.exam_id) for of in flight.plan.algorithms}
    for record in filter(None, records.values()):
        yield from _round_problems(record, select)
    for study in flight.plan.studies:
        exam, spec = records.get(study.any_base.exam_id), study.spec
        if exam is None:
            continue
        yield from _round_problems(exam, spec.select)
        first, last = spec.first_rung or FIRST_RUNG, last_round(study, exam)
        if spec.name == "asha" and first >= last:
            told = f"no trial of {study.any_base.spec.name} can be stopped: the first rung is round {first}"
            remedy = "Take an exam of more rounds, or `name: random` or `tpe`"
            place = spec.places.get("first_rung", spec.place)
            yield ValidationError(
                f"{told}, and the search sees {last}. {remedy}.", place, warning=True, code="doubtful-search"
            )


def _round_problems(exam: ExamRecord, select: SelectSpec | None) -> Iterator[ValidationError]:
    """What of `by: first_rounds` doesn't fit an exam."""
    if select is None or select.by != "first_rounds" or select.rounds is None:
        return
    place = select.places.get("rounds", select.place)
    if lacks := _unequal(exam):
        message = f"`by: first_rounds` needs a test set for each round, and {lacks}. Choose by seeds or validation."
        yield ValidationError(message, select.place, code="invalid-selection")
    elif select.rounds >= len(exam.rounds):
        told = f"{select.rounds} rounds to choose on leave none to report: the exam has {len(exam.rounds)}."
        yield ValidationError(f"{told} Take fewer.", place, code="invalid-selection")


def _resource_problems(flight: Preflight) -> Iterator[ValidationError]:
    """What an algorithm's cases take and this machine never has, where they run on this machine."""
    job = flight.job
    if engine_class(job).elsewhere:
        return
    cards = len(job.gpus or visible_gpus())
    there = {"cpus": cores_of(job), "gpus": cards, "memory": psutil.virtual_memory().total}
    for algorithm in job.algorithms:
        for name, most in there.items():
            wanted = getattr(algorithm.resources, name, None) or 0
            if wanted > most and (name != "gpus" or cards):  # without any card, cases compute on the host
                told = f"each case of {algorithm.name} takes {algorithm.resources}, and this machine has {most:.3g}"
                yield ValidationError(
                    f"{told} ({name}). Lower its `resources`, or take another engine.",
                    algorithm.place,
                    code="insufficient-resources",
                )


# --- plugins ------------------------------------------------------------------------------------------------------


def _plugin_problems(flight: Preflight) -> Iterator[ValidationError]:
    """Import each algorithm's plugin, hold it against its contract and its grid, and build it."""
    job = flight.job
    if (contract := contract_of(job)).runs_cases:
        yield from contract.code_problems(job)
        return
    if flight.problems:  # there is no plan: what the files name is looked at all the same
        facts = flight.inspector.paradigms(job.algorithms)
        subjects = [_subjects(job, *both) for both in zip(job.algorithms, facts, strict=True)]
    else:
        planned = {_looked_at(each): each for each in flight.plan.algorithms}.values()
        subjects = [_subjects(job, each.spec, each.paradigm, each.choices) for each in planned]
    for subject in chain.from_iterable(subjects):
        found = _check(flight, subject)
        yield from found.problems
        if found.asks:
            flight.asking.add(_key(subject.algorithm, subject.module))


def _fit_problems(flight: Preflight) -> Iterator[ValidationError]:
    """Ask those plugins that have a check_exam() whether they can take the exams as they turned out to be.

    And a server that is to write their replies. Of plugins under another contract, what it finds by importing them.
    """
    if (contract := contract_of(flight.job)).runs_cases:
        yield from contract.import_problems(flight.job)
        return
    spec, server = flight.job.generation, None
    if spec.url is not None:
        try:
            server = ReplyServer(spec.url).served()._asdict()
        except ReplyServerError as error:
            yield ValidationError.of(error, spec.places.get("url", spec.place), "unreachable-server")
            return
    exams = ExamStore(flight.job.workspace)
    subjects: list[Subject] = []
    texts: dict[str, _Rounds] = {}
    for each in flight.plan.algorithms:
        record = exams.record(each.exam_id)
        if record is not None:
            facts = {
                "kind": record.kind,
                "shape": record.shape,
                "classes": record.classes,
                "num_classes": len(record.classes),
                "rounds": len(record.rounds),
                "conversations": _taught_texts(flight.plan, each, record, texts),
                "feedback": each.testenv.prequential.feedback if each.testenv.prequential else "",
                "server": server,
            }
            for subject in _subjects(flight.job, each.spec, each.paradigm, each.choices, facts):
                if _key(each.spec, subject.module) in flight.asking and subject not in subjects:
                    subjects.append(subject)
    for subject in subjects:
        yield from _check(flight, subject).problems


def _check(flight: Preflight, subject: Subject) -> Checked:
    _ = flight.engine  # opened before: meanwhile it imports what cases need
    # Another machine may have other cards; each case looks for itself.
    here = not engine_class(flight.job).elsewhere
    return flight.inspector.check(subject if here else replace(subject, device="auto"))


def _subjects(
    job: JobSpec,
    algorithm: AlgorithmSpec,
    paradigm: ParadigmFacts,
    choices: tuple[Mapping[str, object], ...] | None = None,
    exam: Mapping[str, object] | None = None,
) -> Iterator[Subject]:
    """A subject for each module. choices: of the hyperparameters of an algorithm without a grid."""
    asked = dict.fromkeys(
        Needed(one.name, one.method, one.wanted, one.shows_labels)
        for testenv in job.testenvs
        for one in checks.questions_found(testenv)
        if not one.may_lack
    )
    if is_searched(algorithm):
        choices = None  # its trials are within the ends of its ranges
    kinds = [module.type for module in algorithm.modules]
    for module in map(with_ends, algorithm.modules):
        if choices is None:
            built = tuple(_some(module))
        else:
            built = tuple(own_hyperparameters(choice, module.type, kinds) for choice in choices[:MOST_BUILT])
        methods = paradigm.methods.get(module.type, ())
        more = tuple(asked) if module.type == "basemodel" else ()
        yield Subject(algorithm, module, methods, built, job.device, job.places.get("device"), exam, more)


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


def _taught_texts(
    plan: Plan, algorithm: PlannedAlgorithm, record: ExamRecord, known: dict[str, _Rounds]
) -> _Rounds | None:
    """The conversations of all rounds, for plugins of ianvs's own that look before training which they can take.

    None for other data, and for a plugin of others, which is not told what it will be taught later. known: by exam, so
    that each is read once, and sent once to the process that looks.
    """
    if record.kind != "conversation" or not all(_is_own(module.url or "") for module in algorithm.spec.modules):
        return None
    if algorithm.exam_id not in known:
        exam = _any_request(plan, algorithm).exam()
        x, y = exam.dataset.train.x, exam.dataset.train.y
        known[algorithm.exam_id] = tuple((_named(x[one.train]), y[one.train].tolist()) for one in exam.rounds)
    return known[algorithm.exam_id]


def _named(asked: Iterable[Any]) -> list[Any]:
    """Conversations without what is in their pictures."""
    return [{**one, "pictures": one["pictures"].named()} if "pictures" in one else one for one in asked]


def _is_own(url: str) -> bool:
    if not url.endswith(".py"):
        return url.startswith("ianvs.testalgorithms.")
    name = own_name(Path(url).resolve())
    return name is not None and name.parts[:2] == ("ianvs", "testalgorithms")


# --- exams --------------------------------------------------------------------------------------------------------


def _exam_problems(flight: Preflight) -> Iterator[ValidationError]:
    """Decode the data and build each exam, once, for all jobs of the workspace; then what its metrics can't have.

    With what looks wrong in the samples themselves.
    """
    if contract_of(flight.job).runs_cases:  # and nothing of an exam is kept
        return
    plan, exams, cache = flight.plan, ExamStore(flight.job.workspace), flight.job.workspace / "cache"
    for algorithm in {algorithm.exam_id: algorithm for algorithm in plan.algorithms}.values():
        damaged = exams.damage(algorithm.exam_id, thoroughly=True) is not None
        unseen = damaged or data.doubts_of(str(algorithm.exam["dataset"]), cache) is None
        if unseen or not scores_fit(cache, algorithm.exam_id, algorithm.testenv):
            yield from _prepare(flight, algorithm)
    for algorithm in plan.algorithms:  # also of an exam that an earlier job has prepared
        record = exams.record(algorithm.exam_id)
        if record is not None:
            yield from _incompatibilities(record, algorithm.testenv)
            place = algorithm.testenv.dataset.place or algorithm.testenv.place
            yield from (
                ValidationError(said, place, warning=True, code="doubtful-data")
                for said in data_doubts(plan, algorithm, record)
            )


def _prepare(flight: Preflight, algorithm: PlannedAlgorithm) -> Sequence[ValidationError]:
    name, listener = algorithm.testenv.dataset.name or "data", flight.listener
    if algorithm.testenv_name:
        name = f"{name} for {algorithm.testenv_name}"
    listener.preparing(name, 0.0)
    log = flight.job.workspace / "exams" / f"{algorithm.exam_id}.log"
    request = _any_request(flight.plan, algorithm)
    task = Task(
        f"exam-{algorithm.exam_id}", PREPARE_EXAM, request, log, files=_files_of(request, log), secrets=request.secrets
    )

    def told(payload: Any) -> None:
        if isinstance(payload, str):
            listener.said_of(name, payload)
        else:
            listener.preparing(name, float(payload))

    code, problems = run_alone(flight.engine, task, told)
    if code != 0:
        raise IanvsError(f"reading the data failed; the reason is at the end of {log}.", code="unreadable-data")
    return list(problems or ())


def _files_of(request: CaseRequest, log: Path) -> Files:
    """What preparing the exam reads and leaves in its workspace."""
    workspace, store = request.workspace, ExamStore(request.workspace)
    return Files(
        root=workspace,
        reads=tuple(CodeStore(workspace).folder(one.key) for one in request.code),
        writes=(store.folder(request.exam_id), log),
        notes=tuple(workspace / "cache" / folder for folder in (DOUBTS, FITS)),
        lock=Path(store.lock(request.exam_id).lock_file),
    )


def _any_request(plan: Plan, algorithm: PlannedAlgorithm) -> CaseRequest:
    """Of any case: it says which exam is meant."""
    seeds = plan.job.seeds
    first = next(algorithm.cases(seeds), algorithm.case({}, algorithm.seeds(seeds)[0]))
    return case_request(plan, first, algorithm, {}, keep_code(plan))


def _incompatibilities(exam: ExamRecord, spec: TestEnvSpec) -> Iterator[ValidationError]:
    """What in `spec` asks for something that the scenario does not have."""
    scenario = exam.rules["scenario"]
    if scenario == "single-task":
        return  # the scenario's own business: a testenv may serve several paradigms
    if spec.gate is not None and not exam.rules.get("boundaries", True):
        message = f"model_eval holds back a part of each round, and {scenario} brings a stream. Take it out."
        yield ValidationError(message, spec.gate.place, code="unfit-exam")
    elif spec.gate is not None and not exam.rules.get("training_labels", True):
        message = f"model_eval scores answers to a part of each round, and {scenario} hides its labels. Take it out."
        yield ValidationError(message, spec.gate.place, code="unfit-exam")
    of_classes = data_type(exam.kind, spec.dataset.data_type).probes
    lacks, misfits = _unequal(exam), False
    for question in questions_of(spec):
        message = ""
        if question.of_classes and not of_classes:
            message = f"{question.name} is about classes, one for each sample, and these are {exam.kind} data"
        elif question.of_type not in ("", exam.kind):
            message = f"{question.name} is about {question.of_type} data, and these are {exam.kind} data"
        elif question.fits and lacks:
            message = f"{question.name} needs a test set for each round, and {lacks}"
        if message:
            misfits |= question.fits
            yield ValidationError(
                f"{message}. Take it out.", spec.places.get(question.name, spec.place), code="unfit-exam"
            )
    if not lacks or misfits:
        return
    for metric in spec.metrics:
        if references := set(ROLES).intersection(metric_header(metric).needs):
            message = f"{metric.name} compares with {' and '.join(sorted(references))} runs round by round, and {lacks}"
            yield ValidationError(f"{message}. Take it out.", metric.place, code="unfit-exam")


def _unequal(exam: ExamRecord) -> str:
    """How many rounds and test sets the exam has, in words; "" where each round has a test set."""
    if len(exam.tests) == len(exam.rounds):
        return ""
    rounds = f"{len(exam.rounds)} round{'s' * (len(exam.rounds) != 1)}"
    return f"this exam has {rounds} and {len(exam.tests)} test set{'s' * (len(exam.tests) != 1)}"


FILES: tuple[Check, ...] = (
    # What the files say of themselves has been checked by load_job, which raises before there is a job; of those in
    # the form of another contract it goes on where it can.
    Check(lambda p: p.job.problems),
    Check(lambda p: engine_problems(p.job)),  # an engine of an author is imported here
    Check(checks.paradigm_problems),  # a file: as for metrics
    Check(checks.setting_problems),
    Check(interpreter_problems),  # starts each, for its versions
    Check(lambda p: unfound_files(p.job)),
    Check(checks.data_problems),  # index files, pictures; an author's function, once
    Check(checks.scenario_problems),
    Check(checks.metric_problems),  # an author's file: a second in another process, once
    Check(checks.sort_problems, stands_on_others=True),
    Check(lambda p: checks.select_problems(p, p.job.rank.select, p.job.rank.sort_by[0][0]), stands_on_others=True),
    Check(checks.search_problems, stands_on_others=True),
    Check(checks.published_problems, stands_on_others=True),
    Check(checks.quantity_problems, stands_on_others=True),
    Check(checks.reference_problems, stands_on_others=True),
    Check(checks.question_problems),
    Check(checks.link_problems, stands_on_others=True),
    Check(checks.forced_problems, stands_on_others=True),
    Check(checks.protocol_problems, stands_on_others=True),
    Check(stream_checks.prequential_problems, stands_on_others=True),
)
"""What costs no more than reading the files."""

PLAN: tuple[Check, ...] = (
    Check(_workspace, stands_on_others=True),
    Check(_plan, stands_on_others=True),  # reads all data once, ever, for their digests
    Check(lambda p: missing_pictures(p.plan, p.inspector), stands_on_others=True),
    Check(_chosen_round_problems, stands_on_others=True),
)
"""What has to be known to tell what is finished."""

CODE: tuple[Check, ...] = (
    Check(_resource_problems),
    Check(_plugin_problems),  # imports them, torch too: seconds
    Check(_exam_problems, stands_on_others=True),  # decodes the data, once
    Check(_chosen_round_problems, stands_on_others=True),  # of those that are prepared now
    Check(_fit_problems, stands_on_others=True),  # asks those plugins that want to see the exam
)
"""What takes processes of an engine, or time."""
