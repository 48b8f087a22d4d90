"""Runs what a plan says is to do: submits cases to an engine, follows them, and leaves none behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from core.config.spec import JobSpec
from core.errors import ConfigError, IanvsError, Place, Problem
from core.execution.case import EXIT_INTERRUPTED
from core.execution.engine import Engine, Event, Task
from core.execution.inline import InlineEngine
from core.execution.local import LocalEngine
from core.execution.request import CaseRequest, ExamRequest
from core.planning import Plan, PlannedAlgorithm, PlannedCase, make_plan
from core.planning.identity import train_ratio
from core.plugins.source import imported_names
from core.store import ExamStore
from core.types import Failure, Status

__all__ = ["Listener", "Outcome", "check_plugins", "open_engine", "run_job"]

CHECK = "core.plugins.check:check_task"
PREPARE = "core.execution.exams:prepare_exam"
RUN = "core.execution.case:run_case"
_TICK = 0.5  # seconds between looks at the clock while nothing happens


class Listener(Protocol):
    """Is told what happens, to show it."""

    def planned(self, plan: Plan, to_do: int) -> None: ...
    def preparing(self, what: str, fraction: float) -> None: ...
    def started(self, case: PlannedCase) -> None: ...
    def progressed(self, case: PlannedCase, payload: Any) -> None: ...
    def ended(self, case: PlannedCase, status: Status, failure: Failure | None) -> None: ...
    def stopping(self, running: int) -> None: ...


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
    plan = make_plan(job)
    to_do = sum(1 for planned in plan if planned.action != "nothing")
    if not to_do:
        listener.planned(plan, 0)
        return Outcome(plan, 0, 0, interrupted=False)
    engine = open_engine(job, to_do)
    try:
        problems = check_plugins(engine, [algorithm.spec for algorithm in plan.algorithms])
        if problems:
            raise ConfigError(problems)
        _prepare_exams(engine, plan, listener)
        listener.planned(plan, to_do)
        return _Run(engine, plan, listener, provenance).go()
    finally:
        engine.close()


def open_engine(job: JobSpec, tasks: int) -> Engine:
    """The engine that the job names, with what its tasks will import already loaded where that helps."""
    if job.engine == "inline":
        return InlineEngine()
    if job.engine != "local":
        raise ConfigError([Problem(f"engine '{job.engine}' is not there yet. Use local or inline.", Place(job.file))])
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    jobs = job.jobs or max(1, cores // job.threads)
    names = {"core.execution.case", "core.execution.exams", "core.plugins.check"}
    imported = {
        name
        for algorithm in job.algorithms
        for module in algorithm.modules
        for name in imported_names(module.url, module.name)
    }
    if "torch" in imported:
        # The first optimiser pulls in torch._dynamo, over a second that every case would pay.
        names |= {"torch", "torch._dynamo", "core.authoring"}
    if "torchvision" in imported:
        names.add("torchvision")
    return LocalEngine(min(jobs, tasks), job.threads, sorted(names))


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
        name = plan.job.exam.dataset.name or "data"
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
    if problems:
        raise ConfigError(dict.fromkeys(problems))


def _exam_request(plan: Plan, algorithm: PlannedAlgorithm) -> ExamRequest:
    return ExamRequest(
        exam_id=algorithm.exam_id,
        exam=plan.job.exam,
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


class _Run:
    """The loop over cases. Nothing of a finished case is kept in memory."""

    def __init__(self, engine: Engine, plan: Plan, listener: Listener, provenance: dict[str, Any]) -> None:
        self.engine, self.plan, self.listener = engine, plan, listener
        self.provenance = provenance
        self.running: dict[str, PlannedCase] = {}
        self.ran = self.failed = 0
        self.stop = False

    def go(self) -> Outcome:
        waiting = (planned for planned in self.plan if planned.action != "nothing")
        more = True
        while more or self.running:
            try:
                while more and not self.stop and len(self.running) < self.engine.slots:
                    planned = next(waiting, None)
                    if planned is None:
                        more = False
                        break
                    self._submit(planned)
                if self.stop:
                    more = False
                for event in self.engine.events(_TICK):
                    self._follow(event)
            except KeyboardInterrupt:
                self._interrupt()
        return Outcome(self.plan, self.ran, self.failed, self.stop)

    def _submit(self, planned: PlannedCase) -> None:
        job = self.plan.job
        case = planned.case
        request = CaseRequest(
            case=case,
            algorithm=planned.algorithm.spec,
            exam=_exam_request(self.plan, planned.algorithm),
            identity=planned.identity(),
            train_ratio=train_ratio(job, planned.algorithm.spec),
            scores=self.plan.scores,
            threads=job.threads,
            device=job.device,
            provenance=self.provenance,
        )
        self.running[case.id] = planned
        self.engine.submit(Task(case.id, RUN, request, self.plan.store.log(case.id)))
        self.listener.started(planned)

    def _follow(self, event: Event) -> None:
        planned = self.running.get(event.key)
        if planned is None:
            return
        if event.kind == "progress":
            self.listener.progressed(planned, event.payload)
        elif event.kind == "ended":
            del self.running[event.key]
            self._end(planned, event.payload)

    def _end(self, planned: PlannedCase, code: int) -> None:
        store, case = self.plan.store, planned.case
        self.ran += 1
        status: Status = store.status(case.id) or "unfinished"
        if code == EXIT_INTERRUPTED or (self.stop and code != 0):
            self.listener.ended(planned, "unfinished", None)
            return
        if code != 0:
            log = Path(os.path.relpath(store.log(case.id), store.workspace))
            store.fail(case.id, Failure("killed", _ending(code), "the process of the case ended early", log))
            status = "failed"
        self.failed += status == "failed"
        self.listener.ended(planned, status, store.failure(case.id))

    def _interrupt(self) -> None:
        """The first Ctrl-C lets running cases end their round; the second ends them now."""
        for key in self.running:
            self.engine.cancel(key, force=self.stop)
        self.listener.stopping(0 if self.stop else len(self.running))
        self.stop = True


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
