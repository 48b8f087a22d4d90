"""Runs a job: checks it, searches, and runs the cases of its plan on an engine."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

import psutil

from ianvs.config.spec import JobSpec, ResourcesSpec
from ianvs.processes.engines.engine import EXIT_INTERRUPTED, Engine
from ianvs.processes.engines.inline import InlineEngine
from ianvs.processes.engines.local import LocalEngine
from ianvs.results.stored.job_results import HELD
from ianvs.running.inspector import Inspector
from ianvs.running.planning.plan import Plan, make_plan
from ianvs.running.planning.stored_cases import earlier_case_sentences
from ianvs.running.scheduler.case_loop import CaseLoop, Listener
from ianvs.running.scheduler.create_engine import SharedLocalEngine, builds_exams, open_checker, open_engine
from ianvs.running.scheduler.preflight import check_code, check_files, check_plan
from ianvs.running.scheduler.scorer import Scorer
from ianvs.running.scheduler.searching import run_searches
from ianvs.running.scheduler.slots import Sharing, Slots, cores_of, gpu_memory_bytes
from ianvs.store import CaseState, JobStore


@dataclass(frozen=True)
class Outcome:
    """The result of a run. Exit codes: 0 success, 1 a case failed, 130 interrupted.

    states: of cases that were finished before; a limited number.
    """

    plan: Plan
    ran: int
    failed: int
    interrupted: bool
    states: Mapping[str, CaseState] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        return EXIT_INTERRUPTED if self.interrupted else int(self.failed > 0)


def run_job(
    job: JobSpec, inspector: Inspector, early: SharedLocalEngine, listener: Listener, provenance: dict[str, object]
) -> Outcome:
    """Run all unfinished cases of a job, after its searches.

    Raises ConfigError with all errors that are found before the first case.
    """
    preflight = check_files(job, inspector, listener)
    check_plan(preflight)
    if preflight.problems:
        check_code(preflight, None)
        raise preflight.error()
    work = _unfinished_work(preflight.plan)
    if not work.anything:
        plan = preflight.checked_plan()
        listener.planned(plan, 0)
        return Outcome(plan, 0, 0, interrupted=False, states=work.states)
    with _engines(job, preflight.plan, early, work.tasks) as (engine, builder, scorer):
        check_code(preflight, builder)
        plan = preflight.checked_plan()
        inspector.close()  # frees memory for the cases
        listener.planned(plan, work.tasks, tuple(work.damaged), work.scored)
        for sentence in earlier_case_sentences(work.earlier) if work.earlier else ():
            listener.notified(f"{sentence}; they run anew")
        if not (work.tasks or plan.searches):  # only an exam
            return Outcome(plan, 0, 0, interrupted=False, states=work.states)
        ran = failed = 0

        def run_cases(plan: Plan) -> CaseLoop:
            nonlocal ran
            JobStore(job.workspace, job.name).begin(case.id for case, _ in plan.cases())
            loop = CaseLoop(engine, plan, _slots(plan, engine), listener, provenance, scorer)
            loop.run()
            ran += loop.ran
            return loop

        if plan.searches:
            interrupted = run_searches(plan, lambda wave: run_cases(wave).interrupted, listener, inspector)
            before, plan = plan, replace(make_plan(job, inspector), job=plan.job)
            # A failed trial is a result; only a search without any result is a failure.
            failed = sum(study.ended and study.stored.winner is None for study in plan.studies if study.stored)
            if interrupted:
                return Outcome(plan, ran, failed, interrupted=True)
            listener.more(sum(planned.runs for planned in plan) - sum(planned.runs for planned in before))
        last = run_cases(plan)
        return Outcome(plan, ran, failed + last.failed, last.interrupted)


def _slots(plan: Plan, engine: Engine) -> dict[ResourcesSpec | None, Slots]:
    """Return slots by required resources. Cases that need most are scheduled first."""
    job = plan.job
    # (GPUs, cores, bytes) of a case; without `resources` one GPU, if the engine has GPUs.
    needs: dict[ResourcesSpec | None, tuple[int, int, int]] = {
        wanted: (wanted.gpus, wanted.cpus or 0, wanted.memory or 0) if wanted else (len(engine.gpus[:1]), 0, 0)
        for wanted in (algorithm.spec.resources for algorithm in plan.algorithms)
    }
    kinds = sorted(needs, key=needs.__getitem__, reverse=True)
    if engine.elsewhere:  # other machines place tasks themselves, so kinds need not wait for each other
        return {kind: Slots(engine.slots) for kind in kinds}
    per_gpu, sharing = job.cases_per_gpu, None
    if per_gpu == "auto":
        per_gpu, sharing = 1, Sharing(engine.gpus, gpu_memory_bytes(engine.gpus))
    cpus, memory = math.inf, math.inf
    if kinds != [None]:  # only cases with `resources` wait for cores and memory
        cpus, memory = cores_of(job), psutil.virtual_memory().total
    slots = Slots(engine.slots, engine.gpus, per_gpu, sharing, cpus=cpus, memory=memory, threads=job.threads)
    return dict.fromkeys(kinds, slots)


def check_job(job: JobSpec, inspector: Inspector, listener: Listener) -> JobSpec:
    """Return the job with all warnings of `run_job`. Raises ConfigError with all errors."""
    preflight = check_files(job, inspector, listener)
    check_plan(preflight)
    with nullcontext() if preflight.problems else closing(open_checker(job)) as engine:
        check_code(preflight, engine)
    return preflight.checked_plan().job


@dataclass
class _Work:
    """The unfinished work of a plan. tasks: cases. scored: of these, those to be scored only.

    anything: also True for an exam alone. damaged: files to restore.

    states: of the first finished cases. earlier: descriptions of cases that the job has stored before a change.
    """

    tasks: int = 0
    scored: int = 0
    anything: bool = False
    earlier: Counter[str] = field(default_factory=Counter)
    damaged: dict[str, None] = field(default_factory=dict)
    states: dict[str, CaseState] = field(default_factory=dict)


def _unfinished_work(plan: Plan) -> _Work:
    work = _Work(anything=plan.searches)
    for planned in plan:
        work.tasks += planned.runs
        work.scored += planned.action == "score"
        work.anything |= planned.action != "nothing"
        work.damaged |= dict.fromkeys(planned.damaged)
        if planned.earlier is not None:
            work.earlier[planned.earlier.description] += 1
        if planned.stored is not None and len(work.states) < HELD:
            work.states[planned.case.id] = planned.stored
    return work


@contextmanager
def _engines(
    job: JobSpec, plan: Plan, early: SharedLocalEngine, tasks: int
) -> Iterator[tuple[Engine, Engine, Scorer | None]]:
    """Context manager: the engine for cases, the one that builds exams, and the scorer.

    There is no scorer if cases are scored in their own process. tasks: unfinished cases, without those of searches.
    """
    references = (reference.spec for reference in plan.references.algorithms)  # their classes are loaded too
    job = replace(job, algorithms=(*job.algorithms, *references))
    tasks += sum(study.cases_left for study in plan.studies)
    with ExitStack() as stack:
        engine = early.forking(job, tasks) or stack.enter_context(closing(open_engine(job, tasks)))
        builder, on_this_machine, scorer = engine, engine, None
        if not isinstance(engine, LocalEngine | InlineEngine):
            on_this_machine = stack.enter_context(closing(open_checker(job, opened=True)))
            builder = engine if builds_exams(engine, job) else on_this_machine
        if engine.isolates:
            scorer = stack.enter_context(closing(Scorer(on_this_machine, separate=on_this_machine is not engine)))
        yield engine, builder, scorer
