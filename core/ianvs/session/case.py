"""One case inside one process, from its request to its result file."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from ianvs.config.secrets import hide_secrets
from ianvs.engines.engine import EXIT_INTERRUPTED, EXIT_STORAGE, Reporter
from ianvs.errors import IanvsError
from ianvs.paradigms import find_paradigm
from ianvs.planning.case_request import CaseRequest
from ianvs.plugins.check import NO_CUDA
from ianvs.scoring.scoring import score_case
from ianvs.session.rounds import CaseRounds, Interrupted, StartOver
from ianvs.session.session import CaseSession
from ianvs.session.watchdog import watch_memory
from ianvs.store import CaseStore
from ianvs.types import Failure

__all__ = ["run_case"]

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG, errno.EIO)


def run_case(request: CaseRequest, report: Reporter) -> None:
    """Run, resume or score the case; what becomes of it stands in its directory, an exception too.

    Ends the process with EXIT_INTERRUPTED when it was asked to stop: after the round that was under way.
    """
    store = CaseStore(request.workspace)
    with store.lock(request.case.id):
        try:
            _sit(request, store, report)
            score_case(request)
        except Interrupted:
            print("interrupted; the next run continues after the last complete round")
            raise SystemExit(EXIT_INTERRUPTED) from None
        except Exception as error:
            with contextlib.suppress(OSError):  # the log may be on the disk that is full
                if isinstance(error, IanvsError):
                    print(f"{type(error).__name__}: {error}", file=sys.stderr)
                else:
                    traceback.print_exc()
            _store_failure(store, request, error)


def _sit(request: CaseRequest, store: CaseStore, report: Reporter) -> None:
    case = request.case
    if store.status(case.id) == "finished":
        return
    store.begin(case, request.identity)
    _watch(store, request)
    device = _prepare_process(request)
    exam = request.exam()
    paradigm = find_paradigm(request.algorithm.paradigm)
    options = paradigm.options.model_validate(dict(request.algorithm.paradigm.options))
    report({"round": 0, "doing": "start"})  # ready: the clocks of the limits begin
    for may_take_over in (True, False):
        session = CaseSession(request, exam, paradigm(), options, device, store.files(case.id), report)
        try:
            CaseRounds(request, exam, session, report, may_take_over=may_take_over).go()
        except StartOver:
            continue
        break
    facts = {
        "bound": session.bound,
        "basemodel": session.modules.basemodel,
        "measures": {name: vars(measure) for name, measure in paradigm.measures.items()},
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "provenance": {**request.provenance, "device": _device_name(device), "threads": request.threads},
    }
    score_case(request)  # before the result is declared: a metric that fails is a failure of the case
    store.finish(case.id, facts)


def _store_failure(store: CaseStore, request: CaseRequest, error: Exception) -> None:
    """If even the failure can't be written, the exit status has to tell."""
    if isinstance(error, OSError) and error.errno in _UNWRITABLE:
        raise SystemExit(EXIT_STORAGE) from error
    try:
        store.fail(request.case.id, _failure(error, store, request))
    except OSError as unwritable:
        raise SystemExit(EXIT_STORAGE) from unwritable


def _watch(store: CaseStore, request: CaseRequest) -> None:
    limit = request.memory_mb
    if limit is None:
        return

    def exceeded(taken: float) -> None:
        error = MemoryError(f"the case took {taken / 1e6:.0f} MB, more than limits.memory_mb: {limit:g}")
        store.fail(request.case.id, _failure(error, store, request))

    watch_memory(limit * 1e6, exceeded)


def _prepare_process(request: CaseRequest) -> str:
    """Fix what changes the last bits of a result; the device that the case runs on."""
    torch = sys.modules.get("torch")
    if torch is None:
        return "cpu"
    torch.set_num_threads(request.threads)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    if request.device == "cpu":
        return "cpu"
    available = torch.cuda.is_available()
    if request.device == "cuda" and not available:
        raise IanvsError(NO_CUDA)  # the check before a run says the same; a node of a cluster may be unlike others
    if available:
        torch.cuda.init()  # so that its generators are there to be seeded
    return "cuda" if available else "cpu"


def _device_name(device: str) -> str:
    torch = sys.modules.get("torch")
    return str(torch.cuda.get_device_name()) if device == "cuda" and torch is not None else "cpu"


def _failure(error: Exception, store: CaseStore, request: CaseRequest) -> Failure:
    kind: Literal["memory", "exception"] = "exception"
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        kind = "memory"
    log = Path(os.path.relpath(store.log(request.case.id), store.workspace))
    message = hide_secrets(str(error), request.case.hyperparameters) or "(no message)"
    return Failure(kind=kind, error=type(error).__name__, message=message, log=log)
