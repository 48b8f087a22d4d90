"""The checks that `validate` and `run` share, in their order.

Cheap checks come first. All checks run, so that a user sees all errors at once, except for checks that need an
error-free job. `plan`, `report` and similar commands run only those of FILES. Nothing is trained, and no plugin code
runs in this process, unless the job has `engine: inline`.
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
from ianvs.running.inspector.plugin_check import CheckResult, Needed, Subject
from ianvs.running.planning.cases import PlannedAlgorithm, grid, grid_size, own_hyperparameters
from ianvs.running.planning.named_files import missing_file_warnings
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

MAX_BUILT = 32  # limit of hyperparameter choices to build; of a larger grid each value is built once
_Rounds = tuple[tuple[list[Any], list[Any]], ...]  # for each round: user turns and replies


def preflight(
    job: JobSpec,
    inspector: Inspector,
    engine: Callable[[Plan | None], Engine],
    listener: Listener,
    runs: Callable[[Plan], bool] = lambda plan: True,
) -> Plan:
    """Run all checks and return the plan of `job`, which has all warnings. Raises ConfigError with all errors.

    runs: whether the plan has unfinished cases; otherwise plugin code is not checked.
    """
    preflight = Preflight(job, inspector, engine, listener)
    preflight.run_checks(FILES + PLAN)
    if preflight.problems or runs(preflight.plan):
        runner = runner_of(job.algorithms[0])
        preflight.run_checks(CODE + (ROUNDS if runner is None else contract_checks.code_checks(runner)))
    return preflight.checked_plan()


def require_files(job: JobSpec, inspector: Inspector, listener: Listener | None = None) -> Preflight:
    """Run only the checks of files. Raises ConfigError with all errors."""
    preflight = Preflight(job, inspector, listener=listener or Listener())
    preflight.run_checks(FILES)
    preflight.raise_errors()
    return preflight


def _workspace(preflight: Preflight) -> Iterable[ValidationError]:
    """Check that results can be stored."""
    workspace = preflight.job.workspace
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


def _plan(preflight: Preflight) -> Iterable[ValidationError]:
    """Plan the job; find duplicate exams and unreadable data."""
    try:
        _ = preflight.plan
    except ConfigError as error:
        return error.problems
    return ()


def _resource_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Find resources of local cases that exceed those of this machine."""
    job = preflight.job
    if engine_class(job).elsewhere:
        return
    gpu_count = len(job.gpus or visible_gpus())
    available = {"cpus": cores_of(job), "gpus": gpu_count, "memory": psutil.virtual_memory().total}
    for algorithm in job.algorithms:
        for name, most in available.items():
            wanted = getattr(algorithm.resources, name, None) or 0
            if wanted and name == "gpus" and not gpu_count:
                reason = f"resources.gpus of {algorithm.name} is {wanted}, but there is no CUDA device on this machine"
                message = f"{reason}: its cases use the CPU. Use `gpus: 0`, or another machine."
                yield ValidationError(message, algorithm.place, warning=True, code="missing-device")
            elif wanted > most:
                reason = f"each case of {algorithm.name} takes {algorithm.resources}, and this machine has {most:.3g}"
                yield ValidationError(
                    f"{reason} ({name}). Lower its `resources`, or take another engine.",
                    algorithm.place,
                    code="insufficient-resources",
                )


# --- plugins ------------------------------------------------------------------------------------------------------


def _plugin_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Import each algorithm's plugin, check it against its contract and its grid, and build it."""
    job = preflight.job
    if preflight.problems:  # without a plan, all plugins in the files are checked
        facts = preflight.inspector.paradigms(job.algorithms)
        subjects = [_subjects(job, *both) for both in zip(job.algorithms, facts, strict=True)]
    else:
        # All trials of a search have one class and values within its ranges, so one check is enough.
        planned = {
            (_key(each.spec, each.spec.modules[0]), 0 if is_searched(each.spec) else len(each)): each
            for each in preflight.plan.algorithms
        }.values()
        subjects = [_subjects(job, each.spec, each.paradigm, each.choices) for each in planned]
    for subject in chain.from_iterable(subjects):
        result = _check(preflight, subject)
        yield from result.problems
        if result.asks:
            preflight.with_check_exam.add(_key(subject.algorithm, subject.module))


def _fit_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Call check_exam() of plugins with the facts of the prepared exams, and check the server for replies."""
    spec, server = preflight.job.generation, None
    if spec.url is not None:
        try:
            server = ReplyServer(spec.url).served()._asdict()
        except ReplyServerError as error:
            yield ValidationError.from_exception(error, spec.places.get("url", spec.place), "unreachable-server")
            return
    exams = ExamStore(preflight.job.workspace)
    subjects: list[Subject] = []
    texts: dict[str, _Rounds] = {}
    for each in preflight.plan.algorithms:
        record = exams.record(each.exam_id)
        if record is not None:
            facts = {
                "kind": record.kind,
                "shape": record.shape,
                "classes": record.classes,
                "num_classes": len(record.classes),
                "rounds": len(record.rounds),
                "conversations": _training_conversations(preflight.plan, each, texts)
                if record.kind == "conversation"
                else None,
                "feedback": each.testenv.prequential.feedback if each.testenv.prequential else "",
                "server": server,
            }
            for subject in _subjects(preflight.job, each.spec, each.paradigm, each.choices, facts):
                if _key(each.spec, subject.module) in preflight.with_check_exam and subject not in subjects:
                    subjects.append(subject)
    for subject in subjects:
        yield from _check(preflight, subject).problems


def _check(preflight: Preflight, subject: Subject) -> CheckResult:
    _ = preflight.engine  # opened early, so that it does its imports meanwhile
    # Other machines may have other GPUs, which each case checks itself.
    is_local = not engine_class(preflight.job).elsewhere
    return preflight.inspector.check(subject if is_local else replace(subject, device="auto"))


def _subjects(
    job: JobSpec,
    algorithm: AlgorithmSpec,
    paradigm: ParadigmFacts,
    choices: tuple[Mapping[str, object], ...] | None = None,
    exam: Mapping[str, object] | None = None,
) -> Iterator[Subject]:
    """Yield a subject for each module. choices: hyperparameters of an algorithm without a grid."""
    needed = dict.fromkeys(
        Needed(task.name, task.method, task.wanted, task.shows_labels)
        for testenv in job.testenvs
        for task in checks.known_tasks(testenv)
        if not task.may_lack
    )
    modules = algorithm.modules
    if is_searched(algorithm):
        choices, modules = None, tuple(map(with_ends, modules))  # trials are within the ranges
    kinds = [module.type for module in modules]
    for module in modules:
        if choices is None:
            built = tuple(_representative_choices(module))
        else:
            built = tuple(own_hyperparameters(choice, module.type, kinds) for choice in choices[:MAX_BUILT])
        methods = paradigm.methods.get(module.type, ())
        if job.sandboxed and module.type == "basemodel" and methods:
            methods = tuple(dict.fromkeys((*methods, "save", "load")))
        more = tuple(needed) if module.type == "basemodel" else ()
        yield Subject(algorithm, module, methods, built, job.device, job.places.get("device"), exam, more)


def _representative_choices(module: ModuleSpec) -> Iterator[dict[str, object]]:
    """Yield the module's grid; of a large one, a few choices that cover each value."""
    if grid_size((module,)) <= MAX_BUILT:
        yield from grid((module,))
        return
    longest = max(len(values) for _, values in module.grid)
    for index in range(min(longest, 8 * MAX_BUILT)):
        yield {**module.constants, **{name: values[index % len(values)] for name, values in module.grid}}


def _key(algorithm: AlgorithmSpec, module: ModuleSpec) -> tuple[Any, ...]:
    return algorithm.name, algorithm.file, algorithm.paradigm.name, module.type, module.name


def _training_conversations(plan: Plan, algorithm: PlannedAlgorithm, by_exam: dict[str, _Rounds]) -> _Rounds | None:
    """Return the conversations of all rounds, for plugins of ianvs that check their length before training.

    None for other plugins, which must not see later rounds in advance. by_exam: cache, so that each exam is read and
    sent only once.
    """
    if not all(_is_own(module.url or "") for module in algorithm.spec.modules):
        return None
    if algorithm.exam_id not in by_exam:
        exam = exam_checks.any_request(plan, algorithm).exam()
        x, y = exam.dataset.train.x, exam.dataset.train.y
        by_exam[algorithm.exam_id] = tuple(
            (_without_pixels(x[round_.train]), y[round_.train].tolist()) for round_ in exam.rounds
        )
    return by_exam[algorithm.exam_id]


def _without_pixels(samples: Iterable[Any]) -> list[Any]:
    """Return conversations without the pixels of their images."""
    return [
        {**sample, "pictures": sample["pictures"].named()} if "pictures" in sample else sample for sample in samples
    ]


def _is_own(url: str) -> bool:
    if not url.endswith(".py"):
        return url.startswith("ianvs.testalgorithms.")
    name = own_name(Path(url).resolve())
    return name is not None and name.parts[:2] == ("ianvs", "testalgorithms")


FILES: tuple[Check, ...] = (
    # The form of the files was checked by load_job, which raises before there is a job; for files in
    # the form of another contract it continues where possible.
    Check(lambda p: p.job.problems),
    Check(lambda p: engine_problems(p.job)),  # imports a custom engine
    Check(checks.paradigm_problems),  # a custom file: as for metrics
    Check(contract_checks.setting_problems),
    Check(sandbox_problems),  # starts one
    Check(interpreter_problems),  # starts each
    Check(lambda p: missing_file_warnings(p.job)),
    Check(checks.data_problems),  # index files, images; calls a custom function once
    Check(checks.scenario_problems),
    Check(checks.metric_problems),  # a custom file: a second in another process, once
    Check(column_checks.sort_problems, needs_error_free=True),
    Check(column_checks.rank_select_problems, needs_error_free=True),
    Check(column_checks.renamed_problems),
    Check(column_checks.search_problems, needs_error_free=True),
    Check(column_checks.published_problems, needs_error_free=True),
    Check(checks.quantity_problems, needs_error_free=True),
    Check(checks.reference_problems, needs_error_free=True),
    Check(checks.task_problems),
    Check(checks.link_problems, needs_error_free=True),
    Check(checks.combined_model_problems, needs_error_free=True),
    Check(checks.protocol_problems, needs_error_free=True),
    Check(stream_checks.prequential_problems, needs_error_free=True),
)
"""Checks that only read files."""

PLAN: tuple[Check, ...] = (
    Check(_workspace, needs_error_free=True),
    Check(_plan, needs_error_free=True),  # reads all data once, ever, for their digests
    Check(lambda p: missing_pictures(p.plan, p.inspector), needs_error_free=True),
    Check(exam_checks.chosen_round_problems, needs_error_free=True),
)
"""Checks that are needed to know which cases are finished."""

CODE: tuple[Check, ...] = (Check(_resource_problems),)
"""Checks that are needed only if cases will run."""

ROUNDS: tuple[Check, ...] = (
    Check(_plugin_problems),  # imports them, torch too: seconds
    Check(exam_checks.exam_problems, needs_error_free=True),  # decodes the data, once
    Check(exam_checks.chosen_round_problems, needs_error_free=True),  # of those that are prepared now
    Check(_fit_problems, needs_error_free=True),  # asks those plugins that want to see the exam
)
"""Slow checks, or checks in processes of an engine, if `ianvs.running` runs the cases."""
