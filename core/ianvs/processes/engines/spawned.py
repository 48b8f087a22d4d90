"""The process of a task that the local engine has started anew."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import signal
import sys
import threading
import time
from typing import BinaryIO, NoReturn

from ianvs.processes.engines.engine import Event, call_target, preload_modules
from ianvs.processes.engines.forked import CHILD_SUBREAPER, live, prctl

MARK = "IANVS_TASK"
"""A variable in the environment of a task's process, and so of all that it starts, with a value for each task."""

_PATIENCE = 10.0  # seconds for processes that don't die


def main(orders: BinaryIO) -> NoReturn:
    """The life of the process. orders: what is to be done, then the wish to stop; they end with the supervisor."""
    events = os.fdopen(os.dup(1), "wb", buffering=0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)  # the supervisor keeps what comes there as the log
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    faulthandler.enable(sys.stderr)  # a segfault leaves its stack in the log
    prctl(CHILD_SUBREAPER, 1)  # what outlives its parent stays below this process, and its time counts
    live(lambda: _work(orders, events))


def end_marked(mark: str) -> None:
    """Kill every process but this one that has `mark` in its environment, and those that these have started since."""
    import psutil

    deadline = time.monotonic() + _PATIENCE
    found = True
    while found and time.monotonic() < deadline:
        found = False
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                    process.kill()  # not waited for: its exit status is its parent's to read
                    found = True
        time.sleep(0.01 * found)


def _work(orders: BinaryIO, events: BinaryIO) -> None:
    preload, task = pickle.load(orders)
    reporter = _Reporter(task.key, events)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's to handle
    signal.signal(signal.SIGTERM, reporter.ask)
    threading.Thread(target=_obey, args=(orders, reporter), daemon=True).start()
    preload_modules(preload)
    reporter.tell(Event(task.key, "started", os.getpid()))
    result = call_target(task.target)(task.argument, reporter)
    if result is not None:
        reporter.tell(Event(task.key, "result", result))


def _obey(orders: BinaryIO, reporter: _Reporter) -> None:
    while orders.read(1):
        reporter.ask()
    end_marked(os.environ[MARK])  # the supervisor is gone
    os._exit(1)


class _Reporter:
    """Reports through a pipe, a pickle each; whatever comes through the other one is the wish to stop."""

    def __init__(self, key: str, events: BinaryIO) -> None:
        self._key, self._events = key, events
        self._lock = threading.Lock()
        self._last = 0.0
        self._asked = False

    def __call__(self, payload: object) -> None:
        now = time.monotonic()
        if isinstance(payload, dict) and "fraction" in payload:  # for eyes
            if now - self._last < 0.1:
                return
            self._last = now
        self.tell(Event(self._key, "progress", payload))

    def tell(self, event: Event) -> None:
        message = pickle.dumps(event)
        with self._lock, contextlib.suppress(OSError):  # the task may have closed it
            while message:
                message = message[self._events.write(message) :]

    def stop_requested(self) -> bool:
        return self._asked

    def ask(self, *_: object) -> None:
        self._asked = True
