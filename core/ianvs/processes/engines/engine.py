"""The interface of engines."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ianvs.base.errors import IanvsError

if TYPE_CHECKING:
    from ianvs.config.spec import ResourcesSpec  # every process that starts imports this module

EXIT_INTERRUPTED = 130  # a case that stopped cleanly on request
EXIT_STORAGE = 74  # EX_IOERR of sysexits.h: results can't be written
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
"""Environment variables that limit the threads of numerical libraries. They are read at import."""

_TOO_OFTEN = 0.1  # minimum seconds between progress reports
# The caller's main script is not run again.
_BOOT = """
import json, pkgutil, sys
sys.path[:] = json.loads(sys.argv[1])
pkgutil.resolve_name(sys.argv[2])(*sys.argv[3:])
"""


@dataclass(frozen=True)
class Files:
    """The files of a task below `root`, for engines whose workers may not see that folder.

    Attributes:
        root: The folder.
        reads: Files and folders that many tasks read and none changes.
        writes: Files from which the task continues, if they exist, and which it replaces as a whole.
        notes: Folders to which it adds small files.
        lock: A file that is locked while the task writes (filelock).
    """

    root: Path
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    notes: tuple[Path, ...] = ()
    lock: Path | None = None


@dataclass(frozen=True)
class Task:
    """A call of a function in a process of its own, with `argument` and a `Reporter`.

    Attributes:
        key: Identifies the task among those of the engine.
        target: The function, "package.module:function".
        argument: Its first argument, which is pickled.
        log: The file for its output.
        environment: Variables that are set before the call, such as those for visible GPUs.
        files: What it reads and writes; None: no files, or the engine does not run tasks `elsewhere`.
        secrets: Strings that must not reach the log. Whatever looks like a secret is hidden, too.
        resources: What it needs of a machine; None: what the engine gives to every task.
    """

    key: str
    target: str
    argument: object
    log: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Files | None = None
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    resources: ResourcesSpec | None = None


@dataclass(frozen=True)
class Event:
    """Something that happened to a task.

    - `queued`: payload: why the task waits, in the words of the system. At any time before `started`, and again when
      the reason changes. Engines that start tasks at once never send it.
    - `started`: payload: the process id, on whatever machine. It precedes everything that the task reports.
    - `progress`: payload: what the task reports; small.
    - `result`: payload: what the function returned (None is not sent).
    - `restarting`: the engine has lost several tasks at once, any of which may be the cause, and runs this one again.
      `started` follows.
    - `lost`: payload: the reason. The machine failed, or the task was preempted or ran out of allotted time. The task
      may be submitted again. `ended` follows.
    - `ended`: payload: the exit code, negative for the signal that killed it. Always the last event of a task.

    Attributes:
        key: The key of the task.
        kind: The type of the event.
        payload: See above.
    """

    key: str
    kind: Literal["queued", "started", "progress", "result", "restarting", "lost", "ended"]
    payload: Any = None


class Mailbox:
    """Passes events from an engine's threads to `events`, where an error among them is raised."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Event | IanvsError] = queue.SimpleQueue()
        self.put = self._queue.put

    def take(self, timeout: float) -> list[Event]:
        """Return all events so far, waiting up to `timeout` seconds for the first one."""
        events: list[Event] = []
        with contextlib.suppress(queue.Empty):
            item = self._queue.get(timeout=timeout)
            while isinstance(item, Event):
                events.append(item)
                item = self._queue.get_nowait()
            raise item
        return events


class Reporter:
    """The second argument of a task's function: reports progress, and knows whether the task should stop."""

    def __init__(self, key: str, send: Callable[[Event], None]) -> None:
        self._key, self._send = key, send
        self._last, self._stop_requested = 0.0, False

    def __call__(self, payload: object) -> None:
        """Report progress to the supervisor. The call is cheap and never blocks; reports may be dropped."""
        now = time.monotonic()
        if isinstance(payload, dict) and "fraction" in payload:  # only for display: rate-limited
            if now - self._last < _TOO_OFTEN:
                return
            self._last = now
        self._send(Event(self._key, "progress", payload))

    def stop_requested(self) -> bool:
        """Return whether the task should end at its next checkpoint."""
        return self._stop_requested

    def ask(self, *_: object) -> None:
        """Request the end of the task. It can serve as a signal handler."""
        self._stop_requested = True


@dataclass(frozen=True)
class Workload:
    """The expected tasks, for which an engine is constructed.

    Attributes:
        jobs: Number of concurrent tasks that the user requested; None: as many as fit.
        tasks: Total number; None if unknown.
        threads: CPU threads of each task.
        preload: Modules that tasks import, such as torch, and functions to call first, "module:function".
        device: "auto", "cpu" or "cuda".
        gpus: GPUs of this machine that tasks may use, as named in CUDA_VISIBLE_DEVICES.
        cases_per_gpu: How many tasks share a GPU.
        code: Files and folders of authors that tasks read, for an engine that runs them `elsewhere`.
        workspace: The folder in which tasks read and write, and an open engine may keep its own files; None: no files.
        resources: All that tasks may ask for.
    """

    jobs: int | None = None
    tasks: int | None = None
    threads: int = 1
    preload: tuple[str, ...] = ()
    device: str = "auto"
    gpus: tuple[int | str, ...] = ()
    cases_per_gpu: int = 1
    code: tuple[Path, ...] = ()
    workspace: Path | None = None
    resources: tuple[ResourcesSpec | None, ...] = (None,)


class Engine(ABC):
    """Runs tasks, each at least once. A case's folder belongs to one running process at a time.

    The constructor takes a Workload, then the engine's options as keyword arguments. An engine transports status, never
    results: tasks write these to files. `submit` does not block, and tasks run even if nobody calls `events`, except
    for an engine that runs them in the calling process. Every task ends with exactly one "ended" event. After `close`
    no process of a task is running. Every engine passes tests/contract/engines.

    Attributes:
        slots: How many tasks run at a time.
        gpus: GPUs that the caller assigns to tasks by their environment; () if the engine assigns them itself.
        isolates: Whether tasks have separate processes.
        elsewhere: Whether tasks run on other machines, whose hardware is unknown.
        forks: Whether a task starts with the modules that are imported already.
    """

    slots: int
    gpus: tuple[int | str, ...] = ()
    isolates: ClassVar[bool] = True
    elsewhere: ClassVar[bool] = False
    forks: bool = False

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Start a task. At most `slots` may be running; a local engine also runs the scorer."""

    @abstractmethod
    def events(self, timeout: float) -> list[Event]:
        """Return the events since the last call.

        Args:
            timeout: Seconds to wait for the first one.
        """

    @abstractmethod
    def cancel(self, key: str, *, force: bool = False) -> None:
        """Ask a task to end at its next checkpoint.

        Args:
            key: The key of the task.
            force: Kill it now, with all processes that it started.
        """

    @abstractmethod
    def close(self) -> None:
        """End all tasks that are still running."""


_PLACE_OF_COMPILED_CODE = "TORCHINDUCTOR_CACHE_DIR"


def preload_modules(names: Iterable[str]) -> None:
    """Import what tasks will need. A failing import is ignored: the task raises its error.

    Args:
        names: "package.module", or "package.module:function", which is also called.
    """
    place = os.environ.get(_PLACE_OF_COMPILED_CODE)
    for name in names:
        module, _, function = name.partition(":")
        with contextlib.suppress(Exception):
            imported = importlib.import_module(module)
            if function:
                getattr(imported, function)()
    if place is None:  # importing torch's compiler sets the variable, which a task would mistake for the user's
        os.environ.pop(_PLACE_OF_COMPILED_CODE, None)


def python_command(target: str, *arguments: str) -> list[str]:
    """Return the command that calls `target`, "package.module:function", in a new python with the same module path."""
    return [sys.executable, "-P", "-c", _BOOT, json.dumps(sys.path), target, *arguments]


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
