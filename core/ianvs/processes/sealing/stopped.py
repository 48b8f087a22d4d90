"""Stops processes with all that they have started, while others are examined."""

import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from ianvs.base.errors import IanvsError
from ianvs.processes.proc import below, state, threads

_PATIENCE = 10.0  # seconds until all have stopped
_RUNNING = {"R", "S", "D"}  # states of proc(5): running or waiting


@contextmanager
def stopped(top: int, but: Collection[int]) -> Iterator[None]:
    """Within, nothing below the process `top` runs but `but`, and what these start; it goes on afterwards.

    What loses its parent has to fall to `top` or to what is below it, as a subreaper sees to (prctl(2)). Raises
    IanvsError for one that does not stop.
    """
    found: list[int] = []
    try:
        while running := [pid for pid in below(top, but) if pid not in found and _running(pid)]:
            for pid in running:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            found += running
        latest = time.monotonic() + _PATIENCE
        # With one thread a process runs no more of its program once the signal is there; others it has to reach.
        while moving := [pid for pid in found if len(threads(pid)) > 1 and _running(pid)]:
            if time.monotonic() > latest:
                raise IanvsError(
                    f"what a learner has started can't be stopped (process {moving[0]})", code="failed-plugin"
                )
            time.sleep(0.0002)
        yield
    finally:
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _running(pid: int) -> bool:
    """Any of its threads, or it waits for something."""
    return any(state(f"{pid}/task/{thread}") in _RUNNING for thread in threads(pid))
