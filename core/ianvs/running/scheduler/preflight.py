"""The checks that `validate` and `run` share, in their order.

Cheap checks come first. All checks run, so that a user sees all errors at once, except for checks that need an
error-free job. `plan`, `report` and similar commands run only `check_files`. Nothing is trained, and no plugin code
runs in this process, unless the job has `engine: inline`.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import psutil

from ianvs.base.errors import ConfigError, IanvsError, ReplyServerError, ValidationError, shown_path
from ianvs.base.package import own_name
from ianvs.config.contracts import runner_of
from ianvs.config.models.contract_name import NATIVE
from ianvs.config.spec import AlgorithmSpec, EngineSpec, JobSpec
from ianvs.exam.scenarios import check_scenario
from ianvs.processes.engines.engine import Engine
from ianvs.processes.reply_server import ReplyServer
from ianvs.running.inspector import Inspector, ParadigmFacts
from ianvs.running.inspector.plugin_check import Needed, Subject
from ianvs.running.planning.cases import PlannedAlgorithm, grid, grid_size, own_hyperparameters
from ianvs.running.planning.named_files import missing_file_warnings
from ianvs.running.planning.plan import Plan
from ianvs.running.planning.studies import is_searched, with_ends
from ianvs.running.scheduler import checks, column_checks, contract_checks, exam_checks, stream_checks
from ianvs.running.scheduler.case_loop import Listener
from ianvs.running.scheduler.checks import Preflight
from ianvs.running.scheduler.create_engine import engine_class, engine_problems
from ianvs.running.scheduler.interpreter_checks import interpreter_problems
from ianvs.running.scheduler.sandbox_checks import sandbox_problems
from ianvs.running.scheduler.slots import cores_of, visible_gpus
from ianvs.running.scoring import missing_pictures
from ianvs.store import ExamStore

MAX_BUILT = 32  # limit of hyperparameter choices to build; of a larger grid each value is built once
_Rounds = tuple[tuple[list[Any], list[Any]], ...]  # for each round: user turns and replies


def check_files(job: JobSpec, inspector: Inspector, listener: Listener | None = None) -> Preflight:
    """Run the checks that only read files. A check of a setting runs if the job has it."""
    preflight = Preflight(job, inspector, listener or Listener(), warnings=list(job.warnings))
    add, testenvs, algorithms, rank = preflight.add, job.testenvs, job.algorithms, job.rank
    # The form of the files was checked by load_job, which raises before there is a job; for files in the form of
    # another contract it continues where possible.
    add(job.problems)
    if job.engine != EngineSpec("local"):
        add(engine_problems(job))  # imports a custom engine
    add(checks.paradigm_problems(preflight))  # a custom file: as for metrics
    if (runner := runner_of(algorithms[0])) is not None:
        add(runner.setting_problems(job))
        add(contract_checks.unused_keys(job, runner))
    elif rank.style not in (NATIVE, "proposal"):
        add([contract_checks.style_problem(job)])
    if job.sandboxed:
        add(sandbox_problems(job))  # starts one
    if any(algorithm.python is not None or algorithm.contract != NATIVE for algorithm in algorithms):
        add(interpreter_problems(preflight))  # starts each
    hyperparameters = any(module.grid or module.constants for each in algorithms for module in each.modules)
    if hyperparameters:
        add(missing_file_warnings(job))
    add(checks.data_problems(preflight))  # index files, images; calls a custom function once
    for exam in testenvs:
        add(check_scenario(exam.scenario, exam.incremental_rounds, exam.dataset.using))
    add(checks.metric_problems(preflight))  # a custom file: a second in another process, once
    if any(exam.gate is not None for exam in testenvs):
        add(checks.gate_problems(preflight))
    add(column_checks.sort_problems(preflight), needs_error_free=True)
    if rank.select is not None:
        add(column_checks.rank_select_problems(preflight, rank.select), needs_error_free=True)
    if rank.columns:
        add(column_checks.renamed_problems(preflight))
    if job.search is not None:
        add(column_checks.search_problems(preflight, job.search), needs_error_free=True)
    elif hyperparameters:
        add(column_checks.range_problems(job), needs_error_free=True)
    if job.published:
        add(column_checks.published_problems(preflight), needs_error_free=True)
    if any(len(exam.metrics) > 1 for exam in testenvs) or len(testenvs) > 1:
        add(checks.quantity_problems(preflight), needs_error_free=True)
    if job.references:
        add(checks.reference_problems(preflight), needs_error_free=True)
    if any(exam.evaluation_tasks or exam.dataset.data_type for exam in testenvs):
        add(checks.task_problems(preflight))
    add(checks.link_problems(preflight), needs_error_free=True)
    if any(exam.all_evaluation_tasks for exam in testenvs):
        add(checks.combined_model_problems(preflight), needs_error_free=True)
    if any("protocol" in exam.dataset.options for exam in testenvs):
        add(checks.protocol_problems(preflight), needs_error_free=True)
    if any(exam.prequential for exam in testenvs):
        add(stream_checks.prequential_problems(preflight), needs_error_free=True)
    elif any(algorithm.stream_cost != 1 for algorithm in algorithms):
        add(stream_checks.cost_warnings(job), needs_error_free=True)
    return preflight


def check_plan(preflight: Preflight) -> None:
    """Run the checks that are needed to know which cases are finished: plan the job, unless there are errors."""
    job = preflight.job
    if preflight.problems:
        return
    try:
        job.workspace.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=job.workspace):
            pass
    except OSError as error:
        raise IanvsError(
            f"the workspace {shown_path(job.workspace)} can't be written: {error.strerror}. "
            "Choose another with `workspace` in the job file or with --workspace.",
            code="unwritable-file",
        ) from error
    try:
        plan = preflight.plan  # reads all data once, ever, for their digests; finds duplicate exams
    except ConfigError as error:
        preflight.add(error.problems)
        return
    if any(metric.url is not None for exam in job.testenvs for metric in exam.metrics):
        preflight.add(missing_pictures(plan, preflight.inspector))
    if job.rank.select is not None or job.search is not None:
        preflight.add(exam_checks.chosen_round_problems(preflight), needs_error_free=True)


def check_code(preflight: Preflight, engine: Engine | None) -> None:
    """Run the checks that are needed only if cases will run: slow ones, and those in processes of an engine.

    engine: builds exams; None if there are errors, since none is built then. An open engine does its imports while
    plugins are checked.
    """
    job, add = preflight.job, preflight.add
    if any(algorithm.resources is not None for algorithm in job.algorithms):
        add(_resource_problems(job))
    if (runner := runner_of(job.algorithms[0])) is not None:
        add(runner.code_problems(job))
        add(runner.import_problems(job), needs_error_free=True)  # runs authors' code
        return
    add(_plugin_problems(preflight))  # imports them, torch too: seconds
    if engine is not None:
        add(exam_checks.exam_problems(preflight, engine), needs_error_free=True)  # decodes the data, once
    if job.rank.select is not None or job.search is not None:  # of the exams that are prepared now
        add(exam_checks.chosen_round_problems(preflight), needs_error_free=True)
    if preflight.with_check_exam or job.generation.url is not None:
        add(_fit_problems(preflight), needs_error_free=True)  # asks those plugins that want to see the exam


def _resource_problems(job: JobSpec) -> Iterator[ValidationError]:
    """Find resources of local cases that exceed those of this machine."""
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
    job, paradigm = preflight.job, preflight.inspector.paradigm
    if preflight.problems:  # without a plan, all plugins in the files are checked
        subjects = [_subjects(job, each, paradigm(each)) for each in job.algorithms]
    else:
        subjects = [_subjects(job, each.spec, each.paradigm, each.choices) for each in preflight.plan.algorithms]
    checked: list[Subject] = []
    for subject in chain.from_iterable(subjects):
        if subject in checked:  # in another testenv, or for another trial of a search
            continue
        checked.append(subject)
        result = preflight.inspector.check(subject)
        yield from result.problems
        if result.asks:
            preflight.with_check_exam.add((subject.module.url, subject.module.name))


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
                asks = (subject.module.url, subject.module.name) in preflight.with_check_exam
                if asks and subject not in subjects:
                    subjects.append(subject)
    for subject in subjects:
        yield from preflight.inspector.check(subject).problems


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
        if testenv.all_evaluation_tasks
        for task in checks.known_tasks(testenv)
        if not task.may_lack
    )
    # Other machines may have other GPUs, which each case checks itself.
    device = "cuda" if job.device == "cuda" and not engine_class(job).elsewhere else "auto"
    modules = algorithm.modules
    if is_searched(algorithm):
        choices, modules = None, tuple(map(with_ends, modules))  # trials are within the ranges
    kinds = [module.type for module in modules]
    for module in modules:
        if choices is not None:
            built = tuple(own_hyperparameters(choice, module.type, kinds) for choice in choices[:MAX_BUILT])
        elif grid_size((module,)) <= MAX_BUILT:
            built = tuple(grid((module,)))
        else:  # a few choices that cover each value
            longest = min(max(len(values) for _, values in module.grid), 8 * MAX_BUILT)
            built = tuple(
                {**module.constants, **{name: values[index % len(values)] for name, values in module.grid}}
                for index in range(longest)
            )
        methods = paradigm.methods.get(module.type, ())
        if job.sandboxed and module.type == "basemodel" and methods:
            methods = tuple(dict.fromkeys((*methods, "save", "load")))
        more = tuple(needed) if module.type == "basemodel" else ()
        yield Subject(algorithm, module, methods, built, device, job.places.get("device"), exam, more)


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
