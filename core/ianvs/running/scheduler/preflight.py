"""Every check that `validate` and `run` share, in the order in which they are made.

What is cheap comes first. A check that stands on others is made only where these have found nothing; all others are
made, so that a user hears of everything at once. `plan`, `report` and the like make those of FILES alone. Nothing is
trained, and no code of an author runs in this process, unless the job asks for `engine: inline`.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import psutil

from ianvs.base.errors import ConfigError, IanvsError, ReplyServerError, ValidationError, shown_path
from ianvs.base.package import own_name
from ianvs.config.contracts import runner_of
from ianvs.config.spec import AlgorithmSpec, JobSpec, ModuleSpec
from ianvs.processes.engines.engine import Engine
from ianvs.processes.reply_server import ReplyServer
from ianvs.running.inspector import Inspector, ParadigmFacts
from ianvs.running.inspector.plugin_check import Checked, Needed, Subject
from ianvs.running.planning.cases import PlannedAlgorithm, cells, grid, own_hyperparameters
from ianvs.running.planning.named_files import unfound_files
from ianvs.running.planning.plan import Plan
from ianvs.running.planning.studies import is_searched, with_ends
from ianvs.running.scheduler import checks, column_checks, contract_checks, exam_checks, stream_checks
from ianvs.running.scheduler.case_loop import Listener
from ianvs.running.scheduler.checks import Check, Preflight
from ianvs.running.scheduler.create_engine import engine_class, engine_problems
from ianvs.running.scheduler.interpreter_checks import interpreter_problems
from ianvs.running.scheduler.sandbox_checks import sandbox_problems
from ianvs.running.scheduler.slots import cores_of, visible_gpus
from ianvs.running.scoring import missing_pictures
from ianvs.store import ExamStore

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
    flight = Preflight(job, inspector, engine, listener)
    flight.make(FILES + PLAN)
    if flight.problems or runs(flight.plan):
        runner = runner_of(job)
        flight.make(CODE + (ROUNDS if runner is None else contract_checks.of_code(runner)))
    return flight.checked_plan()


def require_files(job: JobSpec, inspector: Inspector, listener: Listener | None = None) -> Preflight:
    """Make those checks that cost no more than reading. Raises ConfigError with all slips."""
    flight = Preflight(job, inspector, listener=listener or Listener())
    flight.make(FILES)
    flight.insist()
    return flight


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


def _resource_problems(flight: Preflight) -> Iterator[ValidationError]:
    """What an algorithm's cases take and this machine never has, where they run on this machine."""
    job = flight.job
    if engine_class(job).elsewhere:
        return
    cards = len(job.gpus or visible_gpus())
    available = {"cpus": cores_of(job), "gpus": cards, "memory": psutil.virtual_memory().total}
    for algorithm in job.algorithms:
        for name, most in available.items():
            wanted = getattr(algorithm.resources, name, None) or 0
            if wanted > most and (name != "gpus" or cards):  # without any card, cases compute on the host
                reason = f"each case of {algorithm.name} takes {algorithm.resources}, and this machine has {most:.3g}"
                yield ValidationError(
                    f"{reason} ({name}). Lower its `resources`, or take another engine.",
                    algorithm.place,
                    code="insufficient-resources",
                )


# --- plugins ------------------------------------------------------------------------------------------------------


def _plugin_problems(flight: Preflight) -> Iterator[ValidationError]:
    """Import each algorithm's plugin, hold it against its contract and its grid, and build it."""
    job = flight.job
    if flight.problems:  # there is no plan: what the files name is looked at all the same
        facts = flight.inspector.paradigms(job.algorithms)
        subjects = [_subjects(job, *both) for both in zip(job.algorithms, facts, strict=True)]
    else:
        # The trials of a search are of one class, and within the ends of its ranges: one look is enough.
        planned = {
            (_key(each.spec, each.spec.modules[0]), 0 if is_searched(each.spec) else len(each)): each
            for each in flight.plan.algorithms
        }.values()
        subjects = [_subjects(job, each.spec, each.paradigm, each.choices) for each in planned]
    for subject in chain.from_iterable(subjects):
        result = _check(flight, subject)
        yield from result.problems
        if result.asks:
            flight.asking.add(_key(subject.algorithm, subject.module))


def _fit_problems(flight: Preflight) -> Iterator[ValidationError]:
    """Ask those plugins that have a check_exam() whether they can take the exams as they turned out to be.

    And a server that is to write their replies.
    """
    spec, server = flight.job.generation, None
    if spec.url is not None:
        try:
            server = ReplyServer(spec.url).served()._asdict()
        except ReplyServerError as error:
            yield ValidationError.from_exception(error, spec.places.get("url", spec.place), "unreachable-server")
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
                "conversations": _taught_texts(flight.plan, each, texts) if record.kind == "conversation" else None,
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
    is_local = not engine_class(flight.job).elsewhere
    return flight.inspector.check(subject if is_local else replace(subject, device="auto"))


def _subjects(
    job: JobSpec,
    algorithm: AlgorithmSpec,
    paradigm: ParadigmFacts,
    choices: tuple[Mapping[str, object], ...] | None = None,
    exam: Mapping[str, object] | None = None,
) -> Iterator[Subject]:
    """A subject for each module. choices: of the hyperparameters of an algorithm without a grid."""
    needed = dict.fromkeys(
        Needed(question.name, question.method, question.wanted, question.shows_labels)
        for testenv in job.testenvs
        for question in checks.questions_found(testenv)
        if not question.may_lack
    )
    modules = algorithm.modules
    if is_searched(algorithm):
        choices, modules = None, tuple(map(with_ends, modules))  # its trials are within the ends of its ranges
    kinds = [module.type for module in modules]
    for module in modules:
        if choices is None:
            built = tuple(_some(module))
        else:
            built = tuple(own_hyperparameters(choice, module.type, kinds) for choice in choices[:MOST_BUILT])
        methods = paradigm.methods.get(module.type, ())
        if job.sandboxed and module.type == "basemodel" and methods:
            methods = tuple(dict.fromkeys((*methods, "save", "load")))
        more = tuple(needed) if module.type == "basemodel" else ()
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


def _taught_texts(plan: Plan, algorithm: PlannedAlgorithm, by_exam: dict[str, _Rounds]) -> _Rounds | None:
    """The conversations of all rounds, for plugins of ianvs's own that look before training which they can take.

    None for a plugin of others, which is not told what it will be taught later. known: by exam, so
    that each is read once, and sent once to the process that looks.
    """
    if not all(_is_own(module.url or "") for module in algorithm.spec.modules):
        return None
    if algorithm.exam_id not in by_exam:
        exam = exam_checks.any_request(plan, algorithm).exam()
        x, y = exam.dataset.train.x, exam.dataset.train.y
        by_exam[algorithm.exam_id] = tuple(
            (_named(x[round_.train]), y[round_.train].tolist()) for round_ in exam.rounds
        )
    return by_exam[algorithm.exam_id]


def _named(samples: Iterable[Any]) -> list[Any]:
    """Conversations without what is in their images."""
    return [
        {**sample, "pictures": sample["pictures"].named()} if "pictures" in sample else sample for sample in samples
    ]


def _is_own(url: str) -> bool:
    if not url.endswith(".py"):
        return url.startswith("ianvs.testalgorithms.")
    name = own_name(Path(url).resolve())
    return name is not None and name.parts[:2] == ("ianvs", "testalgorithms")


FILES: tuple[Check, ...] = (
    # What the files say of themselves has been checked by load_job, which raises before there is a job; of those in
    # the form of another contract it goes on where it can.
    Check(lambda p: p.job.problems),
    Check(lambda p: engine_problems(p.job)),  # an engine of an author is imported here
    Check(checks.paradigm_problems),  # a file: as for metrics
    Check(contract_checks.setting_problems),
    Check(sandbox_problems),  # tries one
    Check(interpreter_problems),  # starts each, for its versions
    Check(lambda p: unfound_files(p.job)),
    Check(checks.data_problems),  # index files, images; an author's function, once
    Check(checks.scenario_problems),
    Check(checks.metric_problems),  # an author's file: a second in another process, once
    Check(column_checks.sort_problems, stands_on_others=True),
    Check(column_checks.rank_select_problems, stands_on_others=True),
    Check(column_checks.renamed_problems),
    Check(column_checks.search_problems, stands_on_others=True),
    Check(column_checks.published_problems, stands_on_others=True),
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
    Check(exam_checks.chosen_round_problems, stands_on_others=True),
)
"""What has to be known to tell what is finished."""

CODE: tuple[Check, ...] = (Check(_resource_problems),)
"""What has to be known only where something will run."""

ROUNDS: tuple[Check, ...] = (
    Check(_plugin_problems),  # imports them, torch too: seconds
    Check(exam_checks.exam_problems, stands_on_others=True),  # decodes the data, once
    Check(exam_checks.chosen_round_problems, stands_on_others=True),  # of those that are prepared now
    Check(_fit_problems, stands_on_others=True),  # asks those plugins that want to see the exam
)
"""What takes processes of an engine, or time, where `ianvs.running` runs the cases."""
