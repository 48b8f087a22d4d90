"""The engine for a debugger: tasks run in this process, one after the other."""

import contextlib
import os
import pkgutil
import tempfile
import traceback
from collections import deque
from collections.abc import Iterator

from ianvs.processes.engines.engine import Engine, Event, Reporter, Task, Workload, preload_modules


class InlineEngine(Engine):
    """Runs everything in this process: breakpoints work, and output is visible. A plugin that exits ends the job.

    Modules are imported before the first task, so that its time does not include them. Temporary files of a task are
    deleted after it, as in other engines.
    """

    slots = 1
    isolates = False

    def __init__(self, workload: Workload) -> None:
        self._preload = workload.preload
        self._events: deque[Event] = deque()
        self._waiting: deque[Task] = deque()

    def submit(self, task: Task) -> None:
        self._waiting.append(task)

    def events(self, timeout: float) -> list[Event]:
        if self._waiting:
            self._run(self._waiting.popleft())
        events = list(self._events)
        self._events.clear()
        return events

    def cancel(self, key: str, *, force: bool = False) -> None:
        self._waiting = deque(task for task in self._waiting if task.key != key)

    def close(self) -> None:
        self._waiting.clear()

    def _run(self, task: Task) -> None:
        preload_modules(self._preload)
        self._preload = ()
        self._events.append(Event(task.key, "started", os.getpid()))
        code = 0
        try:
            with _temporary_files():
                result = pkgutil.resolve_name(task.target)(task.argument, Reporter(task.key, self._events.append))
            if result is not None:
                self._events.append(Event(task.key, "result", result))
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except Exception:
            traceback.print_exc()
            code = 1
        self._events.append(Event(task.key, "ended", code))


@contextlib.contextmanager
def _temporary_files() -> Iterator[None]:
    """Context manager: files of `tempfile` are in a folder that is removed afterwards."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="ianvs-", ignore_cleanup_errors=True) as tempfile.tempdir:
        try:
            yield
        finally:
            tempfile.tempdir = before
