"""What a case costs: time, memory, sizes."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "NOTHING_SPENT",
    "Spent",
    "Stopwatch",
    "cpu_seconds",
    "folder_bytes",
    "memory_size",
    "peak_gpu_bytes",
    "peak_host_bytes",
    "stopwatch",
]


@dataclass(frozen=True)
class Spent:
    """Seconds of wall-clock, and of processors (see `cpu_seconds`)."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds)


NOTHING_SPENT = Spent()


class Stopwatch:
    """What was spent between entering and leaving `stopwatch()`."""

    spent = NOTHING_SPENT


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Waits for the accelerator at both ends, so that work still queued there is counted where it belongs."""
    watch = Stopwatch()
    _synchronise()
    cpu, start = cpu_seconds(), time.perf_counter()
    try:
        yield watch
    finally:
        _synchronise()
        watch.spent = Spent(time.perf_counter() - start, max(0.0, cpu_seconds() - cpu))


def cpu_seconds() -> float:
    """Processor time, user and system, of this process and all of its threads and child processes so far.

    On Linux children that still run count too; elsewhere those that have ended and were waited for.
    """
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + _of_living_children(os.getpid())


def _of_living_children(pid: int) -> float:
    """Processor time of the processes below `pid`, and of those that they have waited for."""
    seconds = 0.0
    for child in _children(pid):
        with contextlib.suppress(OSError):  # it has just ended
            with open(f"/proc/{child}/stat") as file:  # noqa: PTH123  (a round may be thousands of chunks: Path is slow)
                # After the name, which may hold blanks and brackets: state is field 3, utime to cstime 14 to 17.
                fields = file.read().rpartition(")")[2].split()
            seconds += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + _of_living_children(child)
    return seconds


def _children(pid: int) -> list[int]:
    """Processes that `pid` has started, from any of its threads."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:  # noqa: PTH123
                found += map(int, file.read().split())
    return found


def peak_host_bytes() -> int:
    """Highest resident size of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def peak_gpu_bytes() -> int | None:
    """Highest memory that torch took on the accelerator so far; None if it took none."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    return int(torch.cuda.max_memory_allocated())


def memory_size(plugins: Iterable[object]) -> tuple[int | None, int | None]:
    """(samples, bytes) of the plugins' `memory`, their stores of old samples; None for what none of them tells."""
    held = (getattr(plugin, "memory", None) for plugin in plugins)
    memories = [memory for memory in held if isinstance(memory, Sized)]
    sizes = [int(size) for memory in memories if (size := getattr(memory, "nbytes", None)) is not None]
    return sum(map(len, memories)) if memories else None, sum(sizes) if sizes else None


def folder_bytes(folder: Path) -> int:
    """Size of all files below `folder`."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _synchronise() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
