"""One case, from its request to its result file: the keeper of its exam. A learner's code runs in other processes."""

import contextlib
import errno
import faulthandler
import importlib
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from ianvs.base.digests import CHANGED
from ianvs.base.entry_points import entries, is_ours
from ianvs.base.errors import IanvsError, PluginError
from ianvs.base.secrets import hide_secrets
from ianvs.base.types import Failure, FailureKind, Sealing
from ianvs.config.contracts import contract_named
from ianvs.exam.metrics.registry import GROUP as METRICS
from ianvs.exam.scenarios.scenario_catalogue import find_scenario
from ianvs.processes.engines.engine import EXIT_INTERRUPTED, EXIT_STORAGE, Reporter
from ianvs.processes.sealing.peer import Handler, RemoteError
from ianvs.processes.sealing.places import closed_paths
from ianvs.processes.sealing.seal import prepare_seals
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.scoring import score_case
from ianvs.running.session.contract_case import run_contract_case
from ianvs.running.session.processes import LearnerSpawner
from ianvs.running.session.remote import Ended, InlineLearner, Learner, SealedLearner, error_kind
from ianvs.running.session.rounds import CaseRounds, Interrupted, StartOver
from ianvs.running.session.session import Brief
from ianvs.running.session.watchdog import watch_memory
from ianvs.store import CaseStore

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG, errno.EIO)


def warm_up() -> None:
    """Import our scenarios and metrics, and prepare seals, in the process that cases are forked from.

    What others have is left to the cases that ask for it: it may start threads, which no fork survives.
    """
    find_scenario("")
    for point in entries(METRICS):
        if is_ours(point):
            with contextlib.suppress(Exception):  # a case that needs it fails with the real error
                importlib.import_module(point.module)
    importlib.import_module("numpy.ma")  # by np.unique, when it is first called
    prepare_seals()


def run_case(request: CaseRequest, report: Reporter) -> None:
    """Run, resume or score the case; what becomes of it stands in its directory, an exception too.

    Ends the process with EXIT_INTERRUPTED when it was asked to stop: after the round that was under way.
    """
    store = CaseStore(request.workspace)
    with store.lock(request.case.id), contextlib.ExitStack() as stack:
        try:
            stack.enter_context(request.planned_code())
            paused = store.has_come_to(request.case.id, request.until)
            facts = None if paused else _run_or_resume(request, store, report)
            if facts is None:
                score_case(request)
                return
            if not contract_named(request.algorithm.contract).runs_cases:
                score_case(request)  # before the result is declared: a metric that fails is a failure of the case
            store.finish(request.case.id, facts)
        except Interrupted:
            print("interrupted; the next run continues after the last complete round")
            raise SystemExit(EXIT_INTERRUPTED) from None
        except Ended as ended:
            _end_alike(ended.code)
        except Exception as error:
            with contextlib.suppress(OSError):  # the log may be on the disk that is full
                traced = not isinstance(error, IanvsError | RemoteError)  # of the latter the traceback is there already
                said = traceback.format_exc() if traced else f"{error_kind(error)}: {error}\n"
                sys.stderr.write(hide_secrets(said, known=request.secrets))
            _store_failure(store, request, error)


def _run_or_resume(request: CaseRequest, store: CaseStore, report: Reporter) -> Mapping[str, object] | None:
    """Answer whatever has not been answered yet. What is to be said in the result, beside scores; None: it pauses."""
    case = request.case
    store.unpack(case.id)
    state = store.state(case.id, thoroughly=True)
    if (contract := contract_named(request.algorithm.contract)).runs_cases:
        if state.status is None or state.damaged:
            store.reset(case.id)
        store.begin(case, request.identity)
        _watch(store, request)
        return run_contract_case(contract, request, store, report)
    for name in state.damaged:
        print(f"cases/{case.id}/{name} {CHANGED}; it is made again")
    store.drop(case.id, state.damaged)
    if state.status == "finished" or (state.damaged and state.is_whole):
        store.name(case, request.identity)
        return store.facts(case.id)
    store.begin(case, request.identity)
    if request.sealing == "none":
        return _examined(request, store, report, None)
    with contextlib.closing(LearnerSpawner(request)) as spawner:  # before this process holds anything of the exam
        return _examined(request, store, report, spawner)


def _examined(
    request: CaseRequest, store: CaseStore, report: Reporter, spawner: LearnerSpawner | None
) -> Mapping[str, object] | None:
    case = request.case
    _watch(store, request)
    exam = request.exam()
    brief = Brief(
        kind=exam.dataset.kind,
        rounds=tuple(round_.name for round_ in exam.rounds),
        classes=exam.dataset.classes,
        rules=exam.rules,
        streams=exam.stream is not None,
    )

    def learner(handler: Handler) -> Learner:
        scratch = store.scratch(case.id)
        if spawner is None:
            return InlineLearner(request, brief, scratch, handler)
        closed = closed_paths(request.workspace, [request.testenv.dataset], exam.dataset.folders)
        return SealedLearner(request, brief, scratch, handler, spawner, closed)

    report({"round": 0, "doing": "start"})  # ready: the clocks of the limits begin
    for may_take_over in (True, False):
        rounds = CaseRounds(request, exam, learner, report, may_take_over=may_take_over)
        try:
            rounds.go()
        except StartOver:
            rounds.learner.close()
            continue
        break
    shutil.rmtree(store.scratch(case.id), ignore_errors=True)
    if rounds.paused:
        return None
    learned, ready = rounds.learner, rounds.ready
    sealing = Sealing.weakest(one.sealing for one in store.complete_rounds(case.id) if one.sealing)
    if sealing.denied:
        print(f"audit: sealed copies would have been denied {', '.join(f'{name} ({n})' for name, n in sealing.denied)}")
    return {
        "bound": rounds.bound,
        "basemodel": hide_secrets(learned.state.basemodel, known=request.secrets),
        "measures": {name: vars(one) for name, one in ready.measures.items()},
        "sealing": vars(sealing),
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "provenance": {**request.provenance, "device": ready.card, "threads": request.threads},
    }


def _end_alike(code: int) -> NoReturn:
    """End this process as the learner's has ended, which says all that there is to say."""
    if code < 0:
        faulthandler.disable()
        with contextlib.suppress(OSError, ValueError):  # some can't be handled
            signal.signal(-code, signal.SIG_DFL)
        sys.stdout.flush()
        os.kill(os.getpid(), -code)
    raise SystemExit(code if code not in (0, EXIT_STORAGE) else 1)  # of storage the keeper alone can tell


def _store_failure(store: CaseStore, request: CaseRequest, error: Exception) -> None:
    """If even the failure can't be written, the exit status has to tell."""
    if _is_of_storage(error, store.workspace):
        raise SystemExit(EXIT_STORAGE) from error
    try:
        store.fail(request.case.id, _failure(error, store, request))
    except OSError as unwritable:
        raise SystemExit(EXIT_STORAGE) from unwritable


def _is_of_storage(error: Exception, workspace: Path) -> bool:
    """Whether it is a result that can't be written, and not a file of a plugin's own."""
    if not isinstance(error, OSError) or error.errno not in _UNWRITABLE:
        return False
    if error.filename is None:  # of a write; of any other reason a plugin in this process may be the author
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return Path(os.fsdecode(error.filename)).is_relative_to(workspace)


def _watch(store: CaseStore, request: CaseRequest) -> None:
    limit = request.memory_mb
    if limit is None:
        return

    def exceeded(taken: float) -> None:
        error = MemoryError(f"the case took {taken / 1e6:.0f} MB, more than limits.memory_mb: {limit:g}")
        store.fail(request.case.id, _failure(error, store, request))

    watch_memory(limit * 1e6, exceeded)


def _failure(error: Exception, store: CaseStore, request: CaseRequest) -> Failure:
    kind: FailureKind = "memory" if error_kind(error) in ("MemoryError", "OutOfMemoryError") else "exception"
    log = Path(os.path.relpath(store.log(request.case.id), store.workspace))
    message = hide_secrets(str(error), known=request.secrets) or "(no message)"
    if isinstance(error, FileNotFoundError | PluginError | RemoteError) and store.status(request.case.id) is None:
        message = (
            f"the folder {store.folder(request.case.id)} was removed while the case ran; the next run does it again"
        )
    return Failure(kind=kind, error=error_kind(error), message=message, log=log)
