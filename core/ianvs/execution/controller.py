"""Runs what a plan says is to do: submits cases to an engine, follows them, and leaves none behind."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ianvs.config.spec import JobSpec
from ianvs.errors import ConfigError, IanvsError, Place, Problem, shown_path
from ianvs.execution.case import EXIT_INTERRUPTED
from ianvs.execution.case_loop import CaseLoop, Listener
from ianvs.execution.case_request import CaseRequest, ExamRequest
from ianvs.execution.engine import Engine, Event, Task
from ianvs.execution.inline import InlineEngine
from ianvs.execution.local import LocalEngine
from ianvs.execution.preflight import misfits
from ianvs.execution.slots import Slots, visible_gpus
from ianvs.metrics.registry import outline
from ianvs.planning import Plan, PlannedAlgorithm, PlannedCase, make_plan
from ianvs.planning.identity import train_ratio
from ianvs.plugins.source import imported_names
from ianvs.store import ExamStore

__all__ = ["Listener", "Outcome", "check_plugins", "open_engine", "run_job"]

CHECK = "ianvs.plugins.check:check_task"
PREPARE = "ianvs.execution.exams:prepare_exam"
_HEAVY = ("torchvision", "transformers", "peft", "sentence_transformers")  # a second or more each to import
_TICK = 0.5  # seconds between looks at the clock while nothing happens


@dataclass(frozen=True)
class Outcome:
    """How a run of a job ended. Exit codes: 0 all good, 1 some case failed, 130 interrupted."""

    plan: Plan
    ran: int
    failed: int
    interrupted: bool

    @property
    def exit_code(self) -> int:
        return EXIT_INTERRUPTED if self.interrupted else int(self.failed > 0)


def run_job(job: JobSpec, listener: Listener, provenance: dict[str, Any]) -> Outcome:
    """Do what `make_plan(job)` finds to do. Raises ConfigError for anything that is wrong before the first case."""
    _require_writable(job)
    plan = make_plan(job)
    to_do = sum(1 for planned in plan if planned.action != "nothing")
    if not to_do:
        listener.planned(plan, 0)
        return Outcome(plan, 0, 0, interrupted=False)
    references = tuple(reference.spec for reference in plan.references.algorithms)  # their classes are to be there too
    engine = open_engine(replace(job, algorithms=(*job.algorithms, *references)), to_do)
    try:
        problems = check_plugins(engine, [algorithm.spec for algorithm in plan.algorithms])
        if problems:
            raise ConfigError(problems)
        _prepare_exams(engine, plan, listener)
        listener.planned(plan, to_do)
        slots = Slots(engine.slots, _gpus(job), job.cases_per_gpu)
        loop = CaseLoop(engine, plan, slots, listener, lambda planned: _case_request(plan, planned, provenance))
        loop.go()
        return Outcome(plan, loop.ran, loop.failed, loop.interrupted)
    finally:
        engine.close()


def _require_writable(job: JobSpec) -> None:
    """Find out before anything runs that results can't be stored."""
    try:
        job.workspace.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=job.workspace):
            pass
    except OSError as error:
        raise IanvsError(
            f"the workspace {shown_path(job.workspace)} can't be written: {error.strerror}. "
            "Choose another with `workspace` in the job file or with --workspace."
        ) from error


def open_engine(job: JobSpec, tasks: int) -> Engine:
    """The engine that the job names, with what its tasks will import already loaded where that helps."""
    preload = _preload(job)
    if job.engine == "inline":
        return InlineEngine(preload)
    if job.engine == "ray":
        return _ray_engine(job, preload)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    jobs = job.jobs or max(1, cores // job.threads)
    return LocalEngine(min(jobs, tasks), job.threads, preload)


def _ray_engine(job: JobSpec, preload: list[str]) -> Engine:
    """Ray gives out cards itself: a share of one for each case that is said to need one."""
    from ianvs.execution.ray_code import files_of
    from ianvs.execution.ray_engine import RayEngine

    options = dict(job.engine_options)
    if job.device == "cuda":
        options.setdefault("gpu_share", 1 / job.cases_per_gpu)
    return RayEngine(jobs=job.jobs, threads=job.threads, preload=preload, code=files_of(job), **options)


def _preload(job: JobSpec) -> list[str]:
    names = {"ianvs.execution.case", "ianvs.execution.exams", "ianvs.plugins.check"}
    imported = _imports(job)
    if "torch" in imported:
        # The first optimiser pulls in torch._dynamo, over a second that every case would pay.
        names |= {"torch", "torch._dynamo", "ianvs.authoring"}
    metrics = [outline(metric) for exam in job.exams for metric in exam.metrics]
    if any(metric.batch is not None for metric in metrics):
        imported.add("sentence_transformers")
    return sorted(names | {name for name in _HEAVY if name in imported and importlib.util.find_spec(name)})


def check_plugins(engine: Engine, algorithms: Iterable[Any]) -> list[Problem]:
    """What is wrong with the algorithms' plugins, found in a process of its own: importing them runs their code."""
    problems: list[Problem] = []
    for number, algorithm in enumerate(algorithms):
        found = _call(engine, Task(f"check-{number}", CHECK, algorithm))
        if found is None:
            place = algorithm.place or Place(algorithm.file)
            problems.append(Problem(f"importing the plugin of {algorithm.name} ended the process.", place))
        else:
            problems.extend(found)
    return problems


def _prepare_exams(engine: Engine, plan: Plan, listener: Listener) -> None:
    exams = ExamStore(plan.job.workspace)
    problems: list[Problem] = []
    for algorithm in {algorithm.exam_id: algorithm for algorithm in plan.algorithms}.values():
        if exams.exists(algorithm.exam_id):
            continue
        name = algorithm.exam_spec.dataset.name or "data"
        if algorithm.exam_name:
            name = f"{name} for {algorithm.exam_name}"
        listener.preparing(name, 0.0)
        log = plan.job.workspace / "exams" / f"{algorithm.exam_id}.log"
        request = _exam_request(plan, algorithm)
        for event in _events(engine, Task(f"exam-{algorithm.exam_id}", PREPARE, request, log)):
            if event.kind == "progress":
                listener.preparing(name, float(event.payload))
            elif event.kind == "result":
                problems.extend(event.payload)
            elif event.kind == "ended" and event.payload != 0:
                raise IanvsError(f"reading the data failed; the reason is at the end of {log}.")
    for algorithm in plan.algorithms:  # also of an exam that an earlier job has prepared
        record = exams.record(algorithm.exam_id)
        problems.extend(() if record is None else misfits(record, algorithm.exam_spec))
    if problems:
        raise ConfigError(dict.fromkeys(problems))


def _gpus(job: JobSpec) -> tuple[int, ...]:
    """The cards that cases are spread over; none where nothing would use them."""
    if job.engine != "local" or job.device == "cpu" or "torch" not in _imports(job):
        return ()
    return job.gpus if job.gpus is not None else visible_gpus()


def _imports(job: JobSpec) -> set[str]:
    modules = [module for algorithm in job.algorithms for module in algorithm.modules]
    return {name for module in modules for name in imported_names(module.url, module.name)}


def _case_request(plan: Plan, planned: PlannedCase, provenance: dict[str, Any]) -> CaseRequest:
    job = plan.job
    return CaseRequest(
        case=planned.case,
        algorithm=planned.algorithm.spec,
        exam=_exam_request(plan, planned.algorithm),
        identity=planned.identity(),
        train_ratio=train_ratio(planned.algorithm.exam_spec, planned.algorithm.spec),
        scores=plan.scores_of(planned.algorithm),
        threads=job.threads,
        device=job.device,
        memory_mb=job.limits.memory_mb,
        provenance=provenance,
    )


def _exam_request(plan: Plan, algorithm: PlannedAlgorithm) -> ExamRequest:
    return ExamRequest(
        exam_id=algorithm.exam_id,
        exam=algorithm.exam_spec,
        splitting_method=algorithm.exam["splitting_method"],
        single_task=algorithm.exam["single_task"],
        workspace=plan.job.workspace,
    )


def _events(engine: Engine, task: Task) -> Iterator[Event]:
    """All events of one task, run alone."""
    engine.submit(task)
    while True:
        for event in engine.events(_TICK):
            yield event
            if event.kind == "ended":
                return


def _call(engine: Engine, task: Task) -> Any:
    results = [event.payload for event in _events(engine, task) if event.kind == "result"]
    return results[0] if results else None
