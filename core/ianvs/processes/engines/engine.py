"""The contract of engines."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import subprocess
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

_TICK = 0.5  # seconds
_TOO_OFTEN = 0.1  # seconds from one report of how much is done to the next
# The caller's main script is not run again.
_BOOT = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from ianvs.processes.engines.engine import call_target
call_target(sys.argv[2])(*sys.argv[3:])
"""


@dataclass(frozen=True)
class Files:
    """What a task reads and writes below `root`, for engines whose workers may not see it.

    reads: files and folders that many tasks need and none changes. writes: those from which the task continues, if they
    exist, and which it replaces as a whole. notes: folders to which it adds small files. lock: a file that is locked
    while writing (filelock).
    """

    root: Path
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    notes: tuple[Path, ...] = ()
    lock: Path | None = None


@dataclass(frozen=True)
class Task:
    """A call of `target` ("package.module:function") with `argument` and a reporter, in a process of its own.

    Both are pickled for the process. The function's output goes to `log`. environment: variables set before the
    function is called, such as those for the visible accelerators. files: None for a task without files.
    secrets: texts that must not reach the log; anything that looks like a secret is hidden, too (ianvs.base.secrets).
    resources: what it takes of a machine, where its algorithm says so; else what the engine gives to each.
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

    queued    payload: why it waits, in the words of the system that has it. At any time before `started`, and again
              whenever the reason is another. An engine that starts tasks at once never says so.
    started   payload: process id, on whatever machine. Before all that the task itself says.
    progress  payload: whatever the task reports, small
    result    payload: what the function returned (None is not sent)
    lost      payload: why, in words. The place where it ran was taken away or is gone: a node that fails, a job whose
              time is over, preemption. That is no fault of the task, which may be submitted again. `ended` follows.
    ended     payload: exit code, negative for the signal that killed it. Always the last event of a task.
    """

    key: str
    kind: Literal["queued", "started", "progress", "result", "lost", "ended"]
    payload: Any = None


class Mailbox:
    """Events on their way from an engine's threads to its `events`; an error among them is raised there."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Event | IanvsError] = queue.SimpleQueue()
        self.put = self._queue.put

    def take(self, timeout: float) -> list[Event]:
        events: list[Event] = []
        with contextlib.suppress(queue.Empty):
            item = self._queue.get(timeout=timeout)
            while isinstance(item, Event):
                events.append(item)
                item = self._queue.get_nowait()
            raise item
        return events


class Reporter:
    """The second argument of a task's function. `ask` is the wish to stop, and may handle a signal."""

    def __init__(self, key: str, send: Callable[[Event], None]) -> None:
        self._key, self._send = key, send
        self._last, self._stop_requested = 0.0, False

    def __call__(self, payload: object) -> None:
        """Report progress to the supervisor. Cheap, and never blocks: reports may be dropped."""
        now = time.monotonic()
        if isinstance(payload, dict) and "fraction" in payload:  # for eyes; a flood would only fill the channel
            if now - self._last < _TOO_OFTEN:
                return
            self._last = now
        self._send(Event(self._key, "progress", payload))

    def stop_requested(self) -> bool:
        """Whether the task should end at its next checkpoint."""
        return self._stop_requested

    def ask(self, *_: object) -> None:
        self._stop_requested = True


@dataclass(frozen=True)
class Workload:
    """The expected tasks, for which an engine is constructed.

    jobs: number of concurrent tasks that the user requested; None: as many as fit. tasks: total number, None if
    unknown. threads: CPU threads of each. preload: modules that tasks will need, such as torch, and functions
    to call, "module:function". device: "auto", "cpu" or "cuda". gpus: cards of this machine that tasks may use, as
    named in CUDA_VISIBLE_DEVICES. cases_per_gpu: how many share a card. code: files and folders of authors that tasks
    read, for workers that don't see them. workspace: where all tasks read and write, and an engine may keep files
    of its own while it is open; None: tasks have no files in common. resources: all that tasks may ask for.
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

    @property
    def slots(self) -> int:
        """How many tasks run at a time on this machine: without `jobs`, as many as the cores carry."""
        jobs = self.jobs or max(1, usable_cores() // self.threads)
        return min(jobs, self.tasks or jobs)


class Engine(ABC):
    """Runs tasks somewhere, at least once each; a case's directory belongs to one live process at a time.

    The constructor takes a Workload, followed by the engine's options as keyword arguments. An engine transports
    status, never results: tasks write these to files themselves. `submit` does not block, and a task begins and goes on
    though nobody calls `events`, unless it runs in this very process. Every task ends with exactly one "ended" event,
    whatever its process does. After `close` no process of a task is running. Every engine passes
    tests/contract/engines.

    slots: how many tasks run at a time. gpus: cards among which the caller distributes tasks, by their environment; ()
    if the engine assigns cards itself. isolates: whether tasks have separate processes. forks: whether a task begins
    with what is imported already. elsewhere: whether tasks run on machines that the engine finds, and of which nothing
    is known here.
    """

    slots: int
    gpus: tuple[int | str, ...] = ()
    isolates: ClassVar[bool] = True
    elsewhere: ClassVar[bool] = False
    forks: bool = False

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Start `task`; at most `slots` may be running, and on the local engine the scorer beside them."""

    @abstractmethod
    def events(self, timeout: float) -> list[Event]:
        """Return the events since the last call, waiting up to `timeout` seconds for the first one."""

    @abstractmethod
    def cancel(self, key: str, *, force: bool = False) -> None:
        """Ask a task to end at its next checkpoint or, with `force`, kill it now with all that it started."""

    @abstractmethod
    def close(self) -> None:
        """End all tasks that are still running."""


def run_alone(engine: Engine, task: Task, on_progress: Callable[[Any], None]) -> tuple[int, Any]:
    """(exit code, result) of `task`, waited for; `on_progress` gets its reports. Nothing else may run on `engine`."""
    result = None
    engine.submit(task)
    while True:
        for event in engine.events(_TICK):
            if event.key != task.key:
                continue
            if event.kind == "progress":
                on_progress(event.payload)
            elif event.kind == "result":
                result = event.payload
            elif event.kind == "ended":
                return event.payload, result


_PLACE_OF_COMPILED_CODE = "TORCHINDUCTOR_CACHE_DIR"


def preload_modules(names: Iterable[str]) -> None:
    """Import what tasks will need, once for all; an import that fails is left to the task, which then raises the error.

    names: "package.module", or "package.module:function", which is also called.
    """
    place = os.environ.get(_PLACE_OF_COMPILED_CODE)
    for name in names:
        module, _, function = name.partition(":")
        with contextlib.suppress(Exception):
            imported = importlib.import_module(module)
            if function:
                getattr(imported, function)()
    if place is None:  # torch's compiler names one when it is imported, and a task would take it for the user's
        os.environ.pop(_PLACE_OF_COMPILED_CODE, None)


def call_target(target: str) -> Callable[..., object]:
    """The function named by "package.module:function"."""
    module, _, name = target.partition(":")
    function: Callable[..., object] = getattr(importlib.import_module(module), name)
    return function


def python_command(target: str, *arguments: str) -> list[str]:
    """What starts a python that sees the modules which this one does, and calls `target` with `arguments`."""
    return [sys.executable, "-P", "-c", _BOOT, json.dumps(sys.path), target, *arguments]


def start_python(target: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """A new python, as `python_command` describes it, in a session of its own.

    So a Ctrl-C in the terminal reaches the supervisor alone. options: of Popen.
    """
    return subprocess.Popen(python_command(target, *arguments), start_new_session=os.name != "nt", **options)


def thread_limits(threads: int) -> dict[str, str]:
    """Environment variables that numerical libraries read when they are loaded, before any code of ours runs."""
    pools = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return dict.fromkeys(pools, str(threads))


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
