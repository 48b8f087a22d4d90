"""Ends a case that takes more memory than its limit, before the machine runs out of it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import psutil

_PERIOD = 0.1  # seconds between looks
_SHARE = 0.02  # of the time that looking may take


def watch_memory(limit_bytes: float, exceeded: Callable[[float], None]) -> None:
    """From now on, call `exceeded(bytes)` once this process and its children together take more than the limit.

    Pages that several processes share count once (proportional set size, as the kernel reckons it). To add them up is
    slow, so it is done only while resident sizes, which count them in each process, are over the limit.
    Afterwards the whole process group is killed: there is no way to take memory back from a plugin.
    """

    import psutil

    def look() -> None:
        me = psutil.Process()
        while True:
            began = time.thread_time()
            with contextlib.suppress(psutil.Error):
                processes = [me, *me.children(recursive=True)]
                if sum(map(_resident, processes)) > limit_bytes:
                    taken = sum(map(_proportional, processes))
                    if taken > limit_bytes:
                        try:
                            exceeded(taken)
                        finally:
                            _end_all(processes)
            stop.wait(max(_PERIOD, (time.thread_time() - began) / _SHARE))

    def _resident(process: psutil.Process) -> int:
        try:
            return int(process.memory_info().rss)
        except psutil.Error:  # it has just ended
            return 0

    def _proportional(process: psutil.Process) -> int:
        try:
            with open(f"/proc/{process.pid}/smaps_rollup") as file:  # noqa: PTH123  (often: Path is slow)
                return next(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))
        except (OSError, StopIteration):
            try:
                told = process.memory_info()
            except psutil.Error:
                return 0
            return int(told.rss - getattr(told, "shared", 0))

    def _end_all(processes: Sequence[psutil.Process]) -> NoReturn:
        if hasattr(os, "killpg"):
            os.killpg(0, signal.SIGKILL)
        for process in processes[1:]:  # Windows
            with contextlib.suppress(psutil.Error):
                process.kill()
        os._exit(1)

    stop = threading.Event()
    threading.Thread(target=look, name="memory watchdog", daemon=True).start()
