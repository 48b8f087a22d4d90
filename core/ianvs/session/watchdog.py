"""Ends a case that takes more memory than its limit, before the machine runs out of it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

__all__ = ["watch_memory"]

_PERIOD = 0.1  # seconds between looks


def watch_memory(limit_bytes: float, exceeded: Callable[[float], None]) -> None:
    """From now on, call `exceeded(bytes)` once this process and its children together take more than the limit.

    Afterwards the whole process group is killed: there is no way to take memory back from a plugin.
    """

    def look() -> None:
        import psutil

        me = psutil.Process()
        while True:
            taken = 0
            for process in (me, *me.children(recursive=True)):
                try:
                    taken += process.memory_info().rss
                except psutil.Error:
                    continue
            if taken > limit_bytes:
                try:
                    exceeded(taken)
                finally:
                    os.killpg(0, signal.SIGKILL)
            stop.wait(_PERIOD)

    stop = threading.Event()
    threading.Thread(target=look, name="memory watchdog", daemon=True).start()
