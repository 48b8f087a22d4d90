"""How far a case is: for the supervisor, and for whoever asks `ianvs status`."""

import os
import time
from collections.abc import Callable, Mapping

from ianvs.processes.engines.engine import Reporter
from ianvs.store import CaseStore

_PERIOD = 5.0  # seconds between two notes of how far a round is


class RoundReporter:
    """Of one case (ianvs.running.loop.Reporter). rounds: how many it has. gpu_bytes: most of a card that it took."""

    def __init__(
        self, store: CaseStore, case_id: str, report: Reporter, rounds: int, gpu_bytes: Callable[[], int | None]
    ) -> None:
        self._store, self._id, self._report, self._rounds = store, case_id, report, rounds
        self._gpu_bytes = gpu_bytes
        self._now: dict[str, object] = {}
        self._noted = 0.0

    def stop_requested(self) -> bool:
        return self._report.stop_requested()

    def round(self, step: int, doing: str) -> None:
        now = {"round": step, "rounds": self._rounds, "doing": doing}
        self._report({**now, "peak_gpu_bytes": self._gpu_bytes()})
        self._now = {**now, "since": time.time(), "pid": os.getpid()}
        self._note({})

    def inside(self, round_: int, fraction: float, rounds: int | None, numbers: Mapping[str, float]) -> None:
        """How far the round is, and what the learner says of it."""
        said: dict[str, object] = {"round": round_, "fraction": fraction}
        said |= {"rounds": rounds} if rounds is not None else {}
        said |= {"numbers": dict(numbers)} if numbers else {}
        self._report(said)
        if time.monotonic() > self._noted + _PERIOD:
            self._note(said)

    def warn(self, said: str) -> None:
        self._report({"round": 0, "warning": said})

    def _note(self, inside: Mapping[str, object]) -> None:
        self._noted = time.monotonic()
        self._now |= inside
        self._store.note_running(self._id, self._now)
