"""The process that computes scores from stored predictions, one for all cases of a run. It imports no plugin."""

import contextlib
import os
import random
import sys
from contextlib import AbstractContextManager
from functools import partial
from multiprocessing.connection import Listener
from pathlib import Path

import numpy as np

from ianvs.processes.engines.engine import Reporter
from ianvs.processes.engines.forked import log_to
from ianvs.running.planning.case_request import SCORED, SCORER_ADDRESS, SCORER_OUTPUT, UNANSWERED, CaseRequest
from ianvs.running.session.case_failure import exceeded_memory, record_failure
from ianvs.running.session.memory_meter import MemoryMeter
from ianvs.running.session.resume_check import missing_rounds, score_evaluated
from ianvs.store import CaseStore
from ianvs.store.files import write_note


def serve(folder: Path, report: Reporter) -> None:
    """Score one case after another, until the supervisor closes the connection.

    Reports only wake the supervisor, and may be dropped. Replies are sent through the connection.
    """
    log_to(os.open(folder / SCORER_OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    with Listener() as listener:
        write_note(folder / SCORER_ADDRESS, {"address": listener.address})
        report({"scorer": "ready"})
        channel = listener.accept()
    started_in = Path.cwd()
    while True:
        try:
            request: CaseRequest = channel.recv()
        except EOFError:
            return
        # The working directory and random state are restored, so that a metric can't affect the next case.
        os.chdir(started_in)
        random.seed(request.case.seed)
        np.random.seed(request.case.seed % 2**32)
        reply = _reply(request, report)
        sys.stdout.flush()
        sys.stderr.flush()
        channel.send_bytes(reply.encode())
        report({"scorer": "idle"})


def _reply(request: CaseRequest, report: Reporter) -> str:
    store = CaseStore(request.workspace, request.secrets)
    limited: AbstractContextManager[object] = contextlib.nullcontext()
    if request.memory_mb is not None:
        limited = MemoryMeter(request.memory_mb, partial(exceeded_memory, store, request))
    with store.lock(request.case.id), record_failure(store, request, report), request.planned_code(), limited:
        if missing_rounds(request, store):
            return UNANSWERED
        score_evaluated(request, store)
    return SCORED
