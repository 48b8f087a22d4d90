"""Facts of processes: descendants, state and CPU time, mostly from Linux's /proc.

It is read in each round, and a stream may have thousands: `open` and `os.listdir` are faster than Path.
"""

import contextlib
import os
import signal
import time
from collections.abc import Collection, Iterator
from typing import Any

resource: Any
try:
    import resource
except ImportError:  # Windows
    resource = None

_PATIENCE = 10.0  # seconds to wait for killed processes


def stat(process: int | str) -> list[str]:
    """Return fields 3 and on of /proc/<process>/stat: state at 0, utime to cstime at 11 to 14; [] if it has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{process}/stat") as file:  # noqa: PTH123
        return file.read().rpartition(")")[2].split()  # after the name, which may contain blanks and brackets
    return []


def state(process: int | str) -> str:
    """Return the state letter of proc(5); "" if the process has ended."""
    return (stat(process) or [""])[0]


def descendants(top: int, but: Collection[int] = ()) -> Iterator[int]:
    """Yield the descendants of `top`, its children first, except for `but` and their descendants."""
    waiting = [top]
    while waiting:
        pid = waiting.pop(0)
        try:
            if pid == os.getpid():
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)  # a fast check for no children
            threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
        except (OSError, AttributeError):  # no children, an ended process, or a system without this call
            continue
        for thread in threads:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:  # noqa: PTH123
                children = [child for child in map(int, file.read().split()) if child not in but]
                waiting += children
                yield from children


def kill_descendants(top: int, but: Collection[int] = ()) -> None:
    """Kill all descendants of `top`, including those that start meanwhile."""
    latest = time.monotonic() + _PATIENCE
    while (
        living := {pid for pid in descendants(top, but) if state(pid) not in ("", "Z", "X")}
    ) and time.monotonic() < latest:
        for pid in living:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.0002)


def cpu_seconds(pid: int | None = None) -> float:
    """Return the CPU time, user and system, of a process with its threads and child processes so far.

    pid: None for this process. On Linux running and unreaped children count, too, and, for a subreaper
    (PR_SET_CHILD_SUBREAPER), those that have outlived their parents; elsewhere only reaped ones, and on Windows none. 0
    for an ended process.
    """
    seconds = time.process_time() if pid is None else own_cpu_seconds(pid)
    if not seconds or (pid is None and resource is None):
        return seconds
    ticks = sum(_ticks(each, 11) for each in descendants(os.getpid() if pid is None else pid))
    if pid is None:
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds += float(reaped.ru_utime + reaped.ru_stime)
    else:
        ticks += _ticks(pid, 13)
    return seconds + ticks / os.sysconf("SC_CLK_TCK")


def own_cpu_seconds(pid: int | None = None) -> float:
    """Return the CPU time of a process and its threads without child processes, with microsecond resolution.

    0 if the clock of another process can't be read, or the process has ended.
    """
    try:
        # The clock of another process (clock_getcpuclockid): /proc counts in hundredths of a second.
        return time.process_time() if pid is None else time.clock_gettime((~pid << 3) | 2)
    except (OSError, AttributeError):
        return 0.0


def _ticks(pid: int, first: int) -> int:
    """Return the sum of fields of `stat` from `first` on, including reaped children; 0 for an ended process."""
    return sum(map(int, stat(pid)[first:15]))
