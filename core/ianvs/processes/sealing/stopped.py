"""Stops processes with all that they have started, while others are examined."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from ianvs.base.errors import IanvsError
from ianvs.processes.engines.forked import children

_PATIENCE = 10.0  # seconds until all have stopped
_RUNNING = "RSD"  # or waiting


@contextmanager
def stopped(top: int, but: Collection[int]) -> Iterator[None]:
    """Within, nothing below the process `top` runs but `but`, and what these start; it goes on afterwards.

    What loses its parent has to fall to `top` or to what is below it, as a subreaper sees to (prctl(2)). Raises
    IanvsError for one that does not stop.
    """
    found: list[int] = []
    try:
        while running := [pid for pid in below(top, but) if pid not in found and _threads(pid, _RUNNING)]:
            for pid in running:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            found += running
        latest = time.monotonic() + _PATIENCE
        # With one thread a process runs no more of its program once the signal is there; others it has to reach.
        while moving := [pid for pid in found if len(_threads(pid)) > 1 and _threads(pid, _RUNNING)]:
            if time.monotonic() > latest:
                raise IanvsError(f"what a learner has started can't be stopped (process {moving[0]})")
            time.sleep(0.0002)
        yield
    finally:
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def end_below(top: int, but: Collection[int] = ()) -> None:
    """End all processes below `top`, and what they start meanwhile."""
    latest = time.monotonic() + _PATIENCE
    while (
        living := {pid for pid in below(top, but) if _state(pid) not in ("", "Z", "X")}
    ) and time.monotonic() < latest:
        for pid in living:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.0002)


def below(top: int, but: Collection[int] = ()) -> Iterator[int]:
    """Processes below `top`, without `but` and what is below these."""
    for pid in children(top):
        if pid not in but:
            yield pid
            yield from below(pid, but)


def _threads(pid: int, states: Collection[str] = "") -> list[str]:
    """Of a process, by number, those in one of the `states`; without, all."""
    try:
        found = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return []
    return [thread for thread in found if not states or _state(f"{pid}/task/{thread}") in states]


def _state(process: int | str) -> str:
    """The letter of proc(5); "" for one that is gone."""
    try:
        with open(f"/proc/{process}/stat") as file:  # noqa: PTH123 - for each round, and Path is slow
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""
