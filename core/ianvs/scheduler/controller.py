"""Runs what a plan says is to do: submits cases to an engine, follows them, and leaves none behind."""

from __future__ import annotations

import importlib.util
import os
import platform
from contextlib import closing
from dataclasses import dataclass, replace

from ianvs.config.spec import JobSpec
from ianvs.engines.engine import Engine
from ianvs.engines.inline import InlineEngine
from ianvs.engines.local import LocalEngine
from ianvs.metrics.registry import outline
from ianvs.planning import Plan, PlannedCase
from ianvs.planning.case_request import CaseRequest, case_request
from ianvs.plugins.source import imported_names
from ianvs.scheduler.case_loop import CaseLoop, Listener
from ianvs.scheduler.preflight import Watcher, preflight
from ianvs.scheduler.slots import Slots, visible_gpus
from ianvs.session.case import EXIT_INTERRUPTED

__all__ = ["Listener", "Outcome", "check_job", "open_engine", "run_job"]

_HEAVY = ("torchvision", "transformers", "peft", "sentence_transformers")  # a second or more each to import


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


def run_job(job: JobSpec, listener: Listener, provenance: dict[str, object]) -> Outcome:
    """Do what `make_plan(job)` finds to do. Raises ConfigError for anything that is wrong before the first case."""
    with closing(_Engines(job)) as engines:
        plan = preflight(job, engines.checker, listener, lambda plan: engines.tasks(plan) > 0)
        to_do = engines.tasks(plan)
        listener.planned(plan, to_do)
        if not to_do:
            return Outcome(plan, 0, 0, interrupted=False)
        engine = engines.runner(plan)
        slots = Slots(engine.slots, _gpus(job), job.cases_per_gpu)

        def request(planned: PlannedCase) -> CaseRequest:
            return case_request(plan, planned.case, planned.algorithm, provenance)

        loop = CaseLoop(engine, plan, slots, listener, request)
        loop.go()
        return Outcome(plan, loop.ran, loop.failed, loop.interrupted)


def check_job(job: JobSpec, watcher: Watcher) -> None:
    """Everything for which `run_job` would refuse the job, were none of its cases finished. Raises ConfigError."""
    with closing(_Engines(job)) as engines:
        preflight(job, lambda plan: engines.checker(None), watcher)


class _Engines:
    """The engine that cases run on, and the one whose processes look at authors' code: the same one where it can be."""

    def __init__(self, job: JobSpec) -> None:
        self._job = job
        self._runner: Engine | None = None
        self._checker: Engine | None = None
        self._tasks: int | None = None

    def tasks(self, plan: Plan) -> int:
        """How many cases have something to do."""
        if self._tasks is None:
            self._tasks = sum(1 for planned in plan if planned.action != "nothing")
        return self._tasks

    def runner(self, plan: Plan) -> Engine:
        if self._runner is None:
            references = (reference.spec for reference in plan.references.algorithms)  # their classes are loaded too
            job = replace(self._job, algorithms=(*self._job.algorithms, *references))
            self._runner = open_engine(job, self.tasks(plan))
        return self._runner

    def checker(self, plan: Plan | None) -> Engine:
        """plan: of what will run; None: nothing will, and what only running cases need is not loaded."""
        if plan is not None and self._job.engine != "inline":
            return self.runner(plan)
        if self._checker is None:
            self._checker = _open_checker(self._job)
        return self._checker

    def close(self) -> None:
        for engine in (self._runner, self._checker):
            if engine is not None:
                engine.close()


def _open_checker(job: JobSpec) -> Engine:
    """Processes for authors' code beside a job that runs nothing, or runs in this very process."""
    if job.engine == "ray":
        return open_engine(job, tasks=1)
    if platform.system() == "Linux":
        torch = ("torch", "ianvs.authoring") if "torch" in _imports(job) else ()  # plugins are looked at twice
        return LocalEngine(1, job.threads, ("ianvs.plugins.check", *torch))
    return InlineEngine()


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
    from ianvs.engines.ray.ray_code import files_of
    from ianvs.engines.ray.ray_engine import RayEngine

    options = dict(job.engine_options)
    if job.device == "cuda":
        options.setdefault("gpu_share", 1 / job.cases_per_gpu)
    return RayEngine(jobs=job.jobs, threads=job.threads, preload=preload, code=files_of(job), **options)


def _preload(job: JobSpec) -> list[str]:
    names = {"ianvs.session.case", "ianvs.session.exams", "ianvs.plugins.check"}
    imported = _imports(job)
    if "torch" in imported:
        # The first optimiser pulls in torch._dynamo, over a second that every case would pay.
        names |= {"torch", "torch._dynamo", "ianvs.authoring"}
    metrics = [outline(metric) for exam in job.testenvs for metric in exam.metrics]
    if any(metric.batch is not None for metric in metrics):
        imported.add("sentence_transformers")
    return sorted(names | {name for name in _HEAVY if name in imported and importlib.util.find_spec(name)})


def _gpus(job: JobSpec) -> tuple[int, ...]:
    """The cards that cases are spread over; none where nothing would use them."""
    if job.engine != "local" or job.device == "cpu" or "torch" not in _imports(job):
        return ()
    return job.gpus if job.gpus is not None else visible_gpus()


def _imports(job: JobSpec) -> set[str]:
    modules = [module for algorithm in job.algorithms for module in algorithm.modules]
    return {name for module in modules for name in imported_names(module.url, module.name)}
