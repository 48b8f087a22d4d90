"""One case, from its request to its result file."""

import contextlib
import importlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock

from ianvs.base.entry_points import entries, is_ours
from ianvs.base.errors import PluginError
from ianvs.config.contracts import runner_of
from ianvs.exam.data_types import data_type
from ianvs.exam.data_types.catalogue import ENTRY_POINTS as DATA_TYPES
from ianvs.exam.scenarios.exam import Exam
from ianvs.exam.scenarios.scenario_catalogue import ENTRY_POINTS as SCENARIOS
from ianvs.processes.engines.engine import EXIT_INTERRUPTED, Reporter
from ianvs.processes.interpreters.wire import RemoteError, error_text
from ianvs.processes.sandbox import missing_sandbox
from ianvs.running.loop import Case, CaseInterruptedError, Model, Phase, run_rounds
from ianvs.running.planning.case_request import ANSWERED, TRAINED, CaseRequest
from ianvs.running.session.case_failure import exceeded_memory, record_failure
from ianvs.running.session.case_learner import CaseLearner
from ianvs.running.session.contract_case import run_contract_case
from ianvs.running.session.examination import Examination
from ianvs.running.session.feed import DataFeed
from ianvs.running.session.gate import HeldOutGate
from ianvs.running.session.known_replies import Replies
from ianvs.running.session.learner import LocalLearner
from ianvs.running.session.measure import Spent, spent_so_far
from ianvs.running.session.memory_meter import MemoryMeter
from ianvs.running.session.reporting import RoundReporter
from ianvs.running.session.resume_check import missing_rounds, score_evaluated
from ianvs.running.session.round_summary import RoundSummarizer
from ianvs.running.session.sandboxed_learner import SandboxedLearner
from ianvs.running.session.session import ExamInfo
from ianvs.running.session.stored_rounds import StoredRounds
from ianvs.running.session.training_source import CaseTrainingSource
from ianvs.store import CaseStore

_COMPILED = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
"""Environment variables of libraries for the folder of compiled code."""


def warm_up() -> None:
    """Do once, in the process that cases are forked from, what each of them would do first.

    Scenarios and data types of other packages are imported by the cases, since they may start threads, which do not
    survive a fork.
    """
    for point in (*entries(SCENARIOS), *entries(DATA_TYPES)):
        if is_ours(point):
            with contextlib.suppress(Exception):  # a case that needs it reports the error
                importlib.import_module(point.module)
    importlib.import_module("numpy.ma")  # imported by the first call of np.unique
    FileLock(os.devnull)  # its first object inspects its class
    # The first isinstance() of an abstract class visits all its subclasses, and a fork would copy their pages.
    examples: tuple[object, ...] = ("", 0, 0.0, None, (), [], Path())
    for example in examples:
        isinstance(example, Mapping | os.PathLike)


def run_case(request: CaseRequest, report: Reporter) -> str | None:
    """Run or resume the phases of `request`. Results and failures are stored in the case's directory.

    Without a process of its own, the case is also scored.

    Returns:
        ANSWERED if another process, without plugin code, has to score it. TRAINED if it is to be
        evaluated later.

    Raises:
        SystemExit: With EXIT_INTERRUPTED, after a request to stop and the end of the current round.
    """
    store = CaseStore(request.workspace, request.secrets)
    with store.lock(request.case.id), record_failure(store, request, report), request.planned_code():
        try:
            with MemoryMeter(request.memory_mb, partial(exceeded_memory, store, request)) as memory:
                if missing := missing_rounds(request, store):
                    for phase in request.phases:
                        _evaluate_missing(request, store, report, memory, phase, is_new=missing == "all")
                    if request.phases[-1] == "train":
                        return TRAINED
                if request.apart:
                    return ANSWERED
                score_evaluated(request, store)
        except CaseInterruptedError:
            print("interrupted; the next run continues after the last complete round")
            raise SystemExit(EXIT_INTERRUPTED) from None
    return None


def _evaluate_missing(
    request: CaseRequest, store: CaseStore, report: Reporter, memory: MemoryMeter, phase: Phase, *, is_new: bool
) -> None:
    """Train and evaluate missing rounds. The plugin's code runs in this process, or in sandboxes.

    is_new: whether nothing of the case is stored.
    """
    case = request.case
    if (runner := runner_of(request.algorithm)) is not None:
        run_contract_case(runner, request, store, report, memory)
        return
    exam = request.exam()
    report({"round": 0, "doing": "start"})  # ready: time limits start
    names, streams = tuple(round_.name for round_ in exam.rounds), exam.stream is not None
    brief = ExamInfo(exam.dataset.kind, names, exam.dataset.classes, exam.rules, streams)
    folder = store.files(case.id)
    if phase == "train" and len(store.trained_rounds(case.id)) > len(brief.rounds):
        return
    began, started = spent_so_far(), datetime.now(UTC).isoformat(timespec="milliseconds")
    with ExitStack() as stack:
        learner: CaseLearner
        if phase == "all":
            learner = LocalLearner(request, brief, memory)
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(contextlib.chdir(folder))  # files of two cases do not conflict
            for name in set(_COMPILED).difference(os.environ):  # all cases share compiled code
                os.environ[name] = str(request.workspace / "cache" / "compiled" / name.partition("_")[0].lower())
                stack.callback(os.environ.pop, name, None)
        else:
            learner = stack.enter_context(_in_sandboxes(request, brief, memory, store))
        try:
            learner.prepare(folder)
            rounds, source = _round_loop_of(request, exam, learner, store, report, began, phase)
            run_rounds(rounds, is_new=is_new)
        except SystemExit as error:  # a forked process would not print it
            raise RemoteError("SystemExit", error_text(error)) from error
    if phase == "train":
        return
    if rounds.last < rounds.steps:  # a trial that pauses
        return
    learner_facts = learner.facts
    provenance: dict[str, Any] = {**request.provenance, "device": learner_facts.device_name, "threads": request.threads}
    if phase == "evaluate":
        times = {"trained_at": store.trained_at(case.id, len(brief.rounds)), "evaluated_at": started}
        provenance["sandboxes"] = {**provenance["sandboxes"], **times}
    if rounds.resumed_after is not None:
        provenance["resumed_after_round"] = rounds.resumed_after
    facts = {
        "bound": source.bound,
        "basemodel": learner.state.basemodel,
        "measures": {name: vars(measure) for name, measure in learner_facts.measures.items()},
        "finished_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "provenance": provenance,
    }
    store.store_evaluated(case.id, facts)


@contextlib.contextmanager
def _in_sandboxes(
    request: CaseRequest, brief: ExamInfo, memory: MemoryMeter, store: CaseStore
) -> Iterator[SandboxedLearner]:
    """Context manager: a learner whose code runs in sandboxes. Raises PluginError if sandboxes are not available."""
    if missing := missing_sandbox():
        raise PluginError(f"{missing[0].upper()}{missing[1:]}", code="missing-package")
    case_id, scratch = request.case.id, store.scratch(request.case.id)
    store.files(case_id).mkdir(parents=True, exist_ok=True)
    scratch.mkdir(parents=True, exist_ok=True)

    def stored_model(step: int) -> Model:
        return Model(store.modules(case_id, step) or (), store.model_folder(case_id, step))

    with contextlib.closing(SandboxedLearner(request, brief, memory, stored_model, scratch)) as learner:
        try:
            yield learner
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _round_loop_of(
    request: CaseRequest,
    exam: Exam,
    learner: CaseLearner,
    store: CaseStore,
    report: Reporter,
    began: Spent,
    phase: Phase,
) -> tuple[Case, CaseTrainingSource]:
    """Assemble the parts of the loop for this case."""
    spec, steps = request.testenv, len(learner.facts.steps)
    feed = DataFeed(exam, request.train_ratio, request.case.seed, exam.rules.passes, spec.dataset.data_type)
    writes = data_type(exam.dataset.kind, spec.dataset.data_type).shows == "replies" or request.generation.url
    replies = Replies(request) if writes else None
    examination = Examination(exam, spec, feed, learner, request.case.seed, replies)
    reporter = RoundReporter(store, request.case.id, report, steps, learner)
    source = CaseTrainingSource(request, exam, feed, learner, examination, reporter)
    learner.learn_from(source)
    stored = StoredRounds(request, store, reporter, phase, steps)
    return Case(
        steps=steps,
        learner=learner,
        examination=examination,
        source=source,
        rounds=stored,
        summarizer=RoundSummarizer(request, exam, learner, examination, source, stored, began),
        reporter=reporter,
        gate=None if spec.gate is None or learner.facts.reference else HeldOutGate(spec.gate, examination, feed),
        last=steps if request.until is None else min(request.until, steps),
        phase=phase,
    ), source
