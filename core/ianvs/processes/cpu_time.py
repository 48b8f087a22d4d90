"""Processor time of a process and of all that it has started."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

from ianvs.processes.engines.forked import children

resource: Any
try:
    import resource
except ImportError:  # Windows
    resource = None


def cpu_seconds(pid: int | None = None) -> float:
    """Processor time, user and system, of a process and all of its threads and child processes so far.

    pid: this process if None. On Linux children that still run, or that nobody has waited for, count too, and of a
    subreaper (PR_SET_CHILD_SUBREAPER) those that have outlived their parents; elsewhere those that have ended and were
    waited for, and on Windows none. 0 for a process that is gone.
    """
    if pid is None and resource is None:
        return time.process_time()
    if pid is None:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        of_ended = float(ended.ru_utime + ended.ru_stime)
        return time.process_time() + of_ended + seconds_below(os.getpid())
    try:
        # The clock of another process (clock_getcpuclockid): /proc counts in hundredths of a second.
        own = time.clock_gettime((~pid << 3) | 2)
        return own + sum(_stat(pid)[13:15]) / os.sysconf("SC_CLK_TCK") + seconds_below(pid)
    except OSError:
        return 0.0


def _stat(pid: int) -> list[int]:
    """Fields 3 and on of /proc/<pid>/stat as numbers, state being 0: utime to cstime are at 11 to 14."""
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123  (a round may be thousands of chunks: Path is slow)
        # After the name, which may hold blanks and brackets.
        return [0, *map(int, file.read().rpartition(")")[2].split()[1:])]


def seconds_below(pid: int, but: int | None = None) -> float:
    """Processor time of the processes below `pid`, and of those that they have waited for; without those of `but`."""
    seconds = 0.0
    for child in children(pid):
        with contextlib.suppress(OSError):  # it has just ended
            if child != but:
                seconds += sum(_stat(child)[11:15]) / os.sysconf("SC_CLK_TCK") + seconds_below(child)
    return seconds
