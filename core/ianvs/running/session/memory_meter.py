"""Measures the memory of a case. Nothing else does: `Peak_memory_mb` and `limits.memory_mb` are both from here.

It counts anonymous and shared memory of the case's process and all its descendants, minus the level at `begin`. Mapped
files and memory from before are not counted, and shared memory is counted once.

A thread polls every tenth of a second, less often if a poll is slow. Between polls the kernel records the peak resident
size of each process (VmHWM), so that allocations of a millisecond are included in the peak. VmHWM alone would count
mapped files and can't be summed over processes. A file that is mapped and unmapped between two polls looks like an
allocation: it counts in the peak, but does not end a case.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import NoReturn

from ianvs.processes.proc import descendants, stat

_PERIOD = 0.1  # seconds between two polls
_SHARE = 0.01  # maximum share of the time for polling
_PARENT, _STACK_ADDRESS = 1, 25  # indices in `stat`; the address is equal in processes that were forked from each other


class MemoryMeter:
    """Context manager: measures this process and its descendants.

    Args:
        limit_mb: How far above the level the case may go, in 10^6 bytes; None for no limit.
        exceeded: Called with the bytes above the level when it goes further, in the meter's thread. Afterwards the
            process group is killed: there is no way to take memory back from a plugin.
    """

    def __init__(self, limit_mb: float | None = None, exceeded: Callable[[int], None] = lambda _: None) -> None:
        self._limit_bytes = sys.maxsize if limit_mb is None else int(limit_mb * 1e6)
        self._exceeded = exceeded
        self._lock, self._over = threading.Lock(), threading.Event()
        self._resident = partial(_resident_bytes, {}) if sys.platform == "linux" else _resident_elsewhere
        self._level = self._peak = 0
        self._thread = threading.Thread(target=self._watch, name="memory meter", daemon=True)
        self.begin()

    def __enter__(self) -> MemoryMeter:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def begin(self) -> None:
        """Use the present level as the baseline."""
        with self._lock:
            self._level, _ = self._resident()
            self._peak = 0

    def peak_bytes(self) -> int:
        """Return the peak above the baseline since `begin`."""
        self._look()
        return self._peak

    def _look(self) -> int:
        """Return the present memory above the baseline."""
        with self._lock:
            now, highest = self._resident(enough=self._level + min(self._peak, self._limit_bytes))
            self._peak = max(self._peak, highest - self._level)
            return now - self._level

    def _watch(self) -> None:
        pause = 0.0
        while not self._over.wait(pause):
            began = time.thread_time()
            taken = self._look()
            if taken > self._limit_bytes:
                try:
                    self._exceeded(taken)
                finally:
                    _end_all()
            pause = max(_PERIOD, (time.thread_time() - began) / _SHARE)


def _resident_bytes(seen: dict[int, tuple[int, int]], enough: int = 0) -> tuple[int, int]:
    """Return anonymous and shared bytes of this process and its descendants: now, and the peak since the last call.

    A forked process shares pages with its parent; only its private memory counts. Reading that takes some 20 ms per
    gigabyte, so at first all of its memory is counted.

    Args:
        seen: The highest resident size and the mapped files of each process at the last call; is updated.
        enough: Up to this number an overestimate is acceptable.
    """
    processes = [os.getpid(), *descendants(os.getpid())]
    images: set[str] = set()
    roots: list[int] = []
    forked: list[int] = []
    for pid in processes:
        fields = stat(pid)
        if not fields or (pid != processes[0] and _is_about_to_start_another(pid, fields[_PARENT])):
            continue
        image = fields[_STACK_ADDRESS]
        (forked if image in images else roots).append(pid)
        images.add(image)
    for pid in seen.keys() - set(processes):
        del seen[pid]
    now = highest = 0
    for pid in roots:
        sizes = _kilobytes(f"/proc/{pid}/status", ("VmHWM:", "RssAnon:", "RssFile:", "RssShmem:"))
        peak, mapped = sizes.get("VmHWM:", 0), sizes.get("RssFile:", 0)
        peak_before, mapped_before = seen.get(pid, (peak, mapped))
        seen[pid] = peak, mapped
        resident = sizes.get("RssAnon:", 0) + sizes.get("RssShmem:", 0)
        spike = peak - max(mapped, mapped_before) if peak > peak_before else 0
        now += resident << 10
        highest += max(resident, spike) << 10
    of_forked = sum(_added(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:")) for pid in forked)
    if highest + of_forked > enough:
        of_forked = sum(map(_unshared, forked))
    return now + of_forked, highest + of_forked


def _resident_elsewhere(enough: int = 0) -> tuple[int, int]:
    """Return resident bytes on other systems, including mapped files, with shared memory counted for each process."""
    import psutil

    process, total = psutil.Process(), 0
    for each in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):  # the process has just ended
            total += int(each.memory_info().rss)
    return total, total


def _unshared(pid: int) -> int:
    """Return the private bytes of a process.

    Two other numbers would be too high: one counts recently written files, the other a part of shared memory.
    """
    sizes = _kilobytes(f"/proc/{pid}/smaps_rollup", ("Private_Dirty:", "Pss_Anon:", "Pss_Shmem:"))
    return min(sizes.get("Private_Dirty:", 0), sizes.get("Pss_Anon:", 0) + sizes.get("Pss_Shmem:", 0)) << 10


def _is_about_to_start_another(pid: int, parent: str) -> bool:
    """Return whether a child still uses its parent's memory (vfork) instead of a copy: then all sizes agree."""
    try:
        with open(f"/proc/{pid}/statm") as its, open(f"/proc/{parent}/statm") as of_parent:  # noqa: PTH123
            return its.read() == of_parent.read()
    except OSError:  # a process has just ended
        return False


def _added(path: str, names: Iterable[str]) -> int:
    return sum(_kilobytes(path, names).values()) << 10


def _kilobytes(path: str, names: Iterable[str]) -> dict[str, int]:
    """Return the values with these names; {} for a process that has just ended."""
    names = tuple(names)
    with contextlib.suppress(OSError), open(path) as file:  # noqa: PTH123  (often: Path is slow)
        return {line.split()[0]: int(line.split()[1]) for line in file if line.startswith(names)}
    return {}


def _end_all() -> NoReturn:
    """Kill the process group; without process groups, each process."""
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    import psutil

    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.kill()
    os._exit(1)
