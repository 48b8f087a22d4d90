"""Processor time of a process and of all that it has started."""

from __future__ import annotations

import os
import time
from typing import Any

from ianvs.processes.proc import below, stat

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
        return own + _ticks(pid, 13) / os.sysconf("SC_CLK_TCK") + seconds_below(pid)
    except OSError:
        return 0.0


def seconds_below(pid: int, but: int | None = None) -> float:
    """Processor time of the processes below `pid`, and of those that they have waited for; without those of `but`."""
    return sum(_ticks(one, 11) for one in below(pid, [but] if but else [])) / os.sysconf("SC_CLK_TCK")


def _ticks(pid: int, first: int) -> int:
    """From that field of `stat` on to the time of children that were waited for; 0 of a process that is gone."""
    return sum(map(int, stat(pid)[first:15]))
