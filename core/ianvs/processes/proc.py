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


def children(pid: int) -> list[int]:
    """Return the child processes of all threads of `pid`."""
    pids: list[int] = []
    try:
        if pid == os.getpid():
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)  # a fast check for no children
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except (OSError, AttributeError):  # no children, an ended process, or a system without this call
        return pids
    for thread in threads:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:  # noqa: PTH123
            pids += map(int, file.read().split())
    return pids


def descendants(top: int, but: Collection[int] = ()) -> Iterator[int]:
    """Yield the descendants of `top`, except for `but` and their descendants."""
    for pid in children(top):
        if pid not in but:
            yield pid
            yield from descendants(pid, but)


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
    if pid is None and resource is None:
        return time.process_time()
    if pid is None:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        of_ended = float(ended.ru_utime + ended.ru_stime)
        return time.process_time() + of_ended + descendant_cpu_seconds(os.getpid())
    seconds = own_cpu_seconds(pid)
    return seconds + _ticks(pid, 13) / os.sysconf("SC_CLK_TCK") + descendant_cpu_seconds(pid) if seconds else 0.0


def own_cpu_seconds(pid: int | None = None) -> float:
    """Return the CPU time of a process and its threads without child processes, with microsecond resolution.

    0 if the clock of another process can't be read, or the process has ended.
    """
    try:
        # The clock of another process (clock_getcpuclockid): /proc counts in hundredths of a second.
        return time.process_time() if pid is None else time.clock_gettime((~pid << 3) | 2)
    except (OSError, AttributeError):
        return 0.0


def descendant_cpu_seconds(pid: int, but: int | None = None) -> float:
    """Return the CPU time of the descendants of `pid`, including reaped ones; without those of `but`."""
    return sum(_ticks(descendant, 11) for descendant in descendants(pid, [but] if but else [])) / os.sysconf(
        "SC_CLK_TCK"
    )


def _ticks(pid: int, first: int) -> int:
    """Return the sum of fields of `stat` from `first` on, including reaped children; 0 for an ended process."""
    return sum(map(int, stat(pid)[first:15]))
