"""One case, from its request to its result file."""

import contextlib
import importlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ianvs.base.entry_points import entries, is_ours
from ianvs.config.contracts import runner_named
from ianvs.exam.metrics.registry import GROUP as METRICS
from ianvs.exam.scenarios.exam import Exam
from ianvs.exam.scenarios.scenario_catalogue import find_scenario
from ianvs.plugins.loader import importable_by_others
from ianvs.processes.engines.engine import EXIT_INTERRUPTED, Reporter
from ianvs.processes.interpreters.wire import RemoteError, error_text
from ianvs.running.loop import Case, Interrupted, run_rounds
from ianvs.running.planning.case_request import ANSWERED, CaseRequest
from ianvs.running.session.contract_case import run_contract_case
from ianvs.running.session.examination import Examination
from ianvs.running.session.failing import failing, memory_meter
from ianvs.running.session.feed import DataFeed
from ianvs.running.session.gate import HeldOutGate
from ianvs.running.session.known_replies import Replies
from ianvs.running.session.learner import LocalLearner
from ianvs.running.session.measure import Spent, spent_so_far
from ianvs.running.session.memory_meter import MemoryMeter
from ianvs.running.session.own_folder import working_in
from ianvs.running.session.reporting import RoundReporter
from ianvs.running.session.round_summary import RoundSummarizer
from ianvs.running.session.session import brief_of
from ianvs.running.session.stored_answers import score_answers, to_answer
from ianvs.running.session.stored_rounds import StoredRounds
from ianvs.running.session.training_source import CaseTrainingSource
from ianvs.store import CaseStore

_COMPILED = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
"""What libraries read to know where they keep code that they have compiled."""


def warm_up() -> None:
    """Import our scenarios and metrics in the process that cases are forked from.

    What others have is left to the cases that ask for it: it may start threads, which no fork survives.
    """
    find_scenario("")
    for point in entries(METRICS):
        if is_ours(point):
            with contextlib.suppress(Exception):  # a case that needs it fails with the real error
                importlib.import_module(point.module)
    importlib.import_module("numpy.ma")  # by np.unique, when it is first called


def run_case(request: CaseRequest, report: Reporter) -> str | None:
    """Run or resume the case until all is answered; what becomes of it stands in its directory, an exception too.

    It is scored, too, where it has no process of its own.

    Returns:
        ANSWERED if it is to be scored by a process that has run none of its author's code.

    Raises:
        SystemExit: With EXIT_INTERRUPTED, when it was asked to stop: after the round that was under way.
    """
    store = CaseStore(request.workspace, request.secrets)
    with store.lock(request.case.id), failing(store, request, report), request.planned_code():
        try:
            with memory_meter(store, request) as memory:
                if to_answer(request, store):
                    _answer(request, store, report, memory)
                if request.apart:
                    return ANSWERED
                score_answers(request, store)
        except Interrupted:
            print("interrupted; the next run continues after the last complete round")
            raise SystemExit(EXIT_INTERRUPTED) from None
    return None


def _answer(request: CaseRequest, store: CaseStore, report: Reporter, memory: MemoryMeter) -> None:
    """Answer whatever has not been answered yet; the author's code runs in this process."""
    case = request.case
    if (runner := runner_named(request.algorithm.contract)) is not None:
        run_contract_case(runner, request, store, report, memory)
        return
    exam = request.exam()
    report({"round": 0, "doing": "start"})  # ready: the clocks of the limits begin
    own = store.files(case.id)
    with working_in(own), importable_by_others(), _one_cache_of_compiled_code(request.workspace):
        try:
            began, learner = spent_so_far(), LocalLearner(request, brief_of(exam), memory)
            ready = learner.prepare(own)
            rounds, source = _rounds_of(request, exam, learner, store, report, began)
            run_rounds(rounds)
        except SystemExit as error:  # Python's own report of it is lost where a fork ends
            raise RemoteError("SystemExit", error_text(error)) from error
    if rounds.last < rounds.steps:  # it pauses
        return
    provenance = {**request.provenance, "device": ready.card, "threads": request.threads}
    if rounds.resumed_after is not None:
        provenance["resumed_after_round"] = rounds.resumed_after
    facts = {
        "bound": source.bound,
        "basemodel": learner.state.basemodel,
        "measures": {name: vars(one) for name, one in ready.measures.items()},
        "finished_at": _now(),
        "provenance": provenance,
    }
    store.note_answered(case.id, facts)


def _rounds_of(
    request: CaseRequest, exam: Exam, learner: LocalLearner, store: CaseStore, report: Reporter, began: Spent
) -> tuple[Case, CaseTrainingSource]:
    """Who takes part in the loop of this case."""
    spec, steps = request.testenv, len(learner.ready.steps)
    feed = DataFeed(exam, request.train_ratio, request.case.seed, exam.rules.passes, spec.dataset.data_type)
    examination = Examination(exam, spec, feed, learner, request.case.seed, Replies(request))
    reporter = RoundReporter(store, request.case.id, report, steps, lambda: learner.state.peak_gpu_bytes)
    source = CaseTrainingSource(request, exam, feed, learner, examination, reporter)
    learner.learn_from(source)
    stored = StoredRounds(request, store, reporter)
    return Case(
        steps=steps,
        learner=learner,
        examination=examination,
        source=source,
        rounds=stored,
        summarizer=RoundSummarizer(request, exam, learner, examination, source, stored, began),
        reporter=reporter,
        gate=None if spec.gate is None or learner.ready.reference else HeldOutGate(spec.gate, examination, feed),
        until=request.until,
    ), source


@contextlib.contextmanager
def _one_cache_of_compiled_code(workspace: Path) -> Iterator[None]:
    """Context manager: code that is compiled within is kept for all cases, unless the user has named a place."""
    added = [name for name in _COMPILED if name not in os.environ]
    for name in added:
        os.environ[name] = str(workspace / "cache" / "compiled" / name.partition("_")[0].lower())
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
