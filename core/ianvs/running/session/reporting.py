"""Reports the progress of a case to the supervisor and to `ianvs status`."""

import os
import time
from collections.abc import Mapping

from ianvs.processes.engines.engine import Reporter
from ianvs.running.session.case_learner import CaseLearner
from ianvs.store import CaseStore

_NOTE_PERIOD = 5.0  # seconds between two status files within a round


class RoundReporter:
    """Implements `ianvs.running.loop.Reporter` for one case.

    Args:
        rounds: Number of rounds.
        learner: Its state has the peak GPU memory so far.
    """

    def __init__(self, store: CaseStore, case_id: str, report: Reporter, rounds: int, learner: CaseLearner) -> None:
        self._store, self._id, self._report, self._rounds = store, case_id, report, rounds
        self._learner, self.stop_requested = learner, report.stop_requested
        self._status: dict[str, object] = {}
        self._last_note = 0.0

    def round(self, step: int, doing: str) -> None:
        status = {"round": step, "rounds": self._rounds, "doing": doing}
        self._report({**status, "peak_gpu_bytes": self._learner.state.peak_gpu_bytes})
        self._status = {**status, "since": time.time(), "pid": os.getpid()}
        self._store.note_running(self._id, self._status)
        self._last_note = time.monotonic()

    def progress(self, step: int, fraction: float, rounds: int | None, numbers: Mapping[str, float]) -> None:
        """Report progress within a round, and the numbers that the learner reports."""
        payload: dict[str, object] = {"round": step, "fraction": fraction}
        payload |= {"rounds": rounds} if rounds is not None else {}
        payload |= {"numbers": dict(numbers)} if numbers else {}
        self._report(payload)
        if time.monotonic() > self._last_note + _NOTE_PERIOD:
            self._status |= payload
            self._store.note_running(self._id, self._status)
            self._last_note = time.monotonic()

    def report_disk_use(self, message: str) -> None:
        """Report the disk use of models; only the first report of a run is displayed."""
        self._report({"round": 1, "disk": message})

    def warn(self, message: str) -> None:
        self._report({"round": 0, "warning": message})
