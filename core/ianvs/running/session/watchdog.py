"""Ends a case that takes more memory than its limit, before the machine runs out of it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import psutil

_PERIOD = 0.1  # seconds between looks
_SHARE = 0.02  # of the time that looking may take


def watch_memory(limit_bytes: float, exceeded: Callable[[float], None]) -> None:
    """From now on, call `exceeded(bytes)` once this process and its children together take more than the limit.

    What counts is `memory_of` them: mapped files don't. Afterwards the whole process group is killed: there is no way
    to take memory back from a plugin.
    """
    import psutil

    def look() -> None:
        me = psutil.Process()
        while True:
            began = time.thread_time()
            with contextlib.suppress(psutil.Error):
                processes = [me, *me.children(recursive=True)]
                taken = memory_of([process.pid for process in processes], limit_bytes)
                if taken > limit_bytes:
                    try:
                        exceeded(taken)
                    finally:
                        _end_all(processes)
            time.sleep(max(_PERIOD, (time.thread_time() - began) / _SHARE))

    def _end_all(processes: Sequence[psutil.Process]) -> NoReturn:
        if hasattr(os, "killpg"):
            os.killpg(0, signal.SIGKILL)
        for process in processes[1:]:  # Windows
            with contextlib.suppress(psutil.Error):
                process.kill()
        os._exit(1)

    threading.Thread(target=look, name="memory watchdog", daemon=True).start()


def memory_of(pids: Sequence[int], enough: float = 0.0) -> int:
    """Bytes of anonymous and shared memory of the processes, and of memory files that they hold (memfd).

    Mapped files don't count: the kernel gives their pages to who needs them. What several processes share counts once;
    to add that up is slow, so up to `enough` the sum over processes is told, which is more. Elsewhere than on Linux,
    resident sizes.
    """
    held = _memory_files(pids)
    most = sum(map(_resident, pids)) + sum(held.values())
    if most <= enough:
        return most
    for pid in pids if held else ():
        for inode, mapped in _mapped_memory_files(pid):
            if inode in held:  # it is among the shared memory of this process
                held[inode] = max(0, held[inode] - mapped)
    names = ("Pss_Anon:", "Pss_Shmem:")  # what processes share is divided among them, as the kernel reckons it
    return sum(_added(f"/proc/{pid}/smaps_rollup", names) or _resident(pid) for pid in pids) + sum(held.values())


def _resident(pid: int) -> int:
    if (own := _added(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:"))) or _added("/proc/self/status", ("VmRSS:",)):
        return own  # 0 of one that has just ended
    import psutil

    with contextlib.suppress(psutil.Error):  # it has just ended
        return int(psutil.Process(pid).memory_info().rss)
    return 0


def _added(path: str, names: tuple[str, ...]) -> int:
    """The lines of these names, in bytes; 0 where there are none."""
    with contextlib.suppress(OSError), open(path) as file:  # noqa: PTH123  (often: Path is slow)
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith(names))
    return 0


def _memory_files(pids: Iterable[int]) -> dict[int, int]:
    """Bytes of each memfd that any of them has open, by inode."""
    found: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as files:
            for file in files:
                with contextlib.suppress(OSError):  # it has just been closed
                    if os.readlink(file.path).startswith("/memfd:"):  # noqa: PTH115
                        stat = os.stat(file.path)  # noqa: PTH116
                        found[stat.st_ino] = stat.st_blocks * 512
    return found


def _mapped_memory_files(pid: int) -> Iterator[tuple[int, int]]:
    """(inode, bytes in memory, shared ones divided) of each map of a memfd."""
    inode = 0
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps") as file:  # noqa: PTH123
        for line in file:
            words = line.split(maxsplit=5)
            if line.startswith("Pss:") and inode:
                yield inode, int(words[1]) << 10
            elif "-" in words[0]:
                inode = int(words[4]) if len(words) > 5 and words[5].startswith("/memfd:") else 0
