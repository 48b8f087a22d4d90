"""One case, from its request to its result file."""

import contextlib
import errno
import importlib
import os
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ianvs.base.digests import CHANGED
from ianvs.base.entry_points import entries, is_ours
from ianvs.base.errors import IanvsError, PluginError
from ianvs.base.secrets import hide_secrets
from ianvs.base.types import Failure, FailureKind
from ianvs.config.contracts import runner_named
from ianvs.exam.metrics.registry import GROUP as METRICS
from ianvs.exam.scenarios.exam import Exam
from ianvs.exam.scenarios.scenario_catalogue import find_scenario
from ianvs.plugins.loader import importable_by_others
from ianvs.processes.engines.engine import EXIT_INTERRUPTED, EXIT_STORAGE, Reporter
from ianvs.processes.interpreters.wire import RemoteError, error_kind, error_text
from ianvs.running.loop import Case, Interrupted, run_rounds
from ianvs.running.planning.case_request import ANSWERED, UNWRITABLE, CaseRequest
from ianvs.running.scoring import score_case
from ianvs.running.session.contract_case import run_contract_case
from ianvs.running.session.examination import Examination
from ianvs.running.session.feed import DataFeed
from ianvs.running.session.gate import HeldOutGate
from ianvs.running.session.known_replies import Replies
from ianvs.running.session.learner import LocalLearner
from ianvs.running.session.measure import Spent, spent_so_far
from ianvs.running.session.memory_meter import MemoryMeter
from ianvs.running.session.own_folder import missing_file_hint, working_in
from ianvs.running.session.reporting import RoundReporter
from ianvs.running.session.round_summary import RoundSummarizer
from ianvs.running.session.session import brief_of
from ianvs.running.session.stored_rounds import StoredRounds
from ianvs.running.session.training_source import CaseTrainingSource
from ianvs.store import CaseStore

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG, errno.EIO)
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
    """Run, resume or score the case; what becomes of it stands in its directory, an exception too.

    ANSWERED: all is answered, and the case is to be called once more, in a process that has run none of its author's
    code, to be scored there. Ends the process with EXIT_INTERRUPTED when it was asked to stop: after the round that was
    under way.
    """
    store = CaseStore(request.workspace)
    with store.lock(request.case.id), contextlib.ExitStack() as stack:
        try:
            stack.enter_context(request.planned_code())
            memory = stack.enter_context(_memory_meter(store, request))
            if (runner := runner_named(request.algorithm.contract)) is not None:
                return run_contract_case(runner, request, store, report, memory)
            if _to_answer(request, store):
                _answer(request, store, report, memory)
                if request.apart:
                    return ANSWERED
            _score(request, store)
        except Interrupted:
            print("interrupted; the next run continues after the last complete round")
            raise SystemExit(EXIT_INTERRUPTED) from None
        except Exception as error:
            with contextlib.suppress(OSError):  # the log may be on the disk that is full
                traced = not isinstance(error, IanvsError | RemoteError)  # of the latter the traceback is there already
                said = traceback.format_exc() if traced else f"{error_kind(error)}: {error}\n"
                sys.stderr.write(hide_secrets(said, known=request.secrets))
            _store_failure(store, request, error, report)
    return None


def _to_answer(request: CaseRequest, store: CaseStore) -> bool:
    """Whether anything has to be answered, after what can't be believed was dropped."""
    case = request.case
    if store.has_come_to(case.id, request.until):
        return False
    if store.answered(case.id) is not None and store.broken_round(case.id) is None:
        return False
    if store.is_earlier(case.id):
        print("an earlier version of ianvs stored this case, which can be read and not continued; it starts over")
        store.reset(case.id)
    state = store.state(case.id, thoroughly=True)
    for name in state.damaged:
        print(f"cases/{case.id}/{name} {CHANGED}; it is made again")
    store.drop(case.id, state.damaged)
    if state.status == "finished" or (state.damaged and state.is_whole):
        store.name(case, request.identity)
        store.note_answered(case.id, store.facts(case.id))
        return False
    store.begin(case, request.identity)
    return True


def _answer(request: CaseRequest, store: CaseStore, report: Reporter, memory: MemoryMeter) -> None:
    """Answer whatever has not been answered yet; the author's code runs in this process."""
    case = request.case
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
        "basemodel": hide_secrets(learner.state.basemodel, known=request.secrets),
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


def _score(request: CaseRequest, store: CaseStore) -> None:
    """Score what was answered and, unless it pauses, declare the result: a metric that fails is a failure of the
    case."""
    facts = store.answered(request.case.id)
    score_case(request)
    if facts is not None:  # else it pauses
        store.finish(request.case.id, facts)


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


def _store_failure(store: CaseStore, request: CaseRequest, error: Exception, report: Reporter) -> None:
    """If even the failure can't be written, the exit status has to tell."""
    try:
        if _is_of_storage(error, store.workspace):
            raise error
        store.fail(request.case.id, _failure(error, store, request))
    except OSError as unwritable:
        report(UNWRITABLE)
        raise SystemExit(EXIT_STORAGE) from unwritable


def _is_of_storage(error: Exception, workspace: Path) -> bool:
    """Whether it is a result that can't be written, and not a file of a plugin's own."""
    if not isinstance(error, OSError) or error.errno not in _UNWRITABLE:
        return False
    if error.filename is None:  # of a write; of any other reason a plugin in this process may be the author
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return Path(os.fsdecode(error.filename)).is_relative_to(workspace)


def _memory_meter(store: CaseStore, request: CaseRequest) -> MemoryMeter:
    limit = request.memory_mb
    if limit is None:
        return MemoryMeter()

    def exceeded(taken: int) -> None:
        error = MemoryError(f"the case took {taken / 1e6:.0f} MB, more than limits.memory_mb: {limit:g}")
        store.fail(request.case.id, _failure(error, store, request))

    return MemoryMeter(limit * 1e6, exceeded)


def _failure(error: Exception, store: CaseStore, request: CaseRequest) -> Failure:
    kind: FailureKind = "memory" if error_kind(error) in ("MemoryError", "OutOfMemoryError") else "exception"
    log = Path(os.path.relpath(store.log(request.case.id), store.workspace))
    said = error_text(error) + missing_file_hint(error, store.files(request.case.id), request.started_in)
    message = hide_secrets(said, known=request.secrets) or "(no message)"
    if isinstance(error, FileNotFoundError | PluginError | RemoteError) and store.status(request.case.id) is None:
        message = (
            f"the folder {store.folder(request.case.id)} was removed while the case ran; the next run does it again"
        )
    return Failure(kind=kind, error=error_kind(error), message=message, log=log)
