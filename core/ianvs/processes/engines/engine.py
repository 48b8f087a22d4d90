"""The contract of engines."""

from __future__ import annotations

import contextlib
import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

EXIT_INTERRUPTED = 130  # a case that was asked to end, and has ended in good order
EXIT_STORAGE = 74  # EX_IOERR of sysexits.h: results can't be written


@dataclass(frozen=True)
class Files:
    """What a task reads and leaves below `root`, for engines whose workers may not see it.

    reads: files and folders that many tasks need and none changes. writes: those that the task goes on with, if they
    are there, and leaves behind, each as a whole. notes: folders of small files to which it adds some. lock: a file
    that whoever writes has locked (filelock).
    """

    root: Path
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    notes: tuple[Path, ...] = ()
    lock: Path | None = None


@dataclass(frozen=True)
class Task:
    """A call of `target` ("package.module:function") with `argument` and a reporter, in a process of its own.

    Both travel to the process by pickle. What the function prints goes to `log`. environment: variables that are set
    before the function is called, such as the accelerators that it may see. files: None for a task that has none.
    secrets: texts that must not get into the log; what looks like a secret does not, either (ianvs.base.secrets).
    """

    key: str
    target: str
    argument: object
    log: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Files | None = None
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


@dataclass(frozen=True)
class Event:
    """Something that happened to a task.

    started   payload: process id
    progress  payload: whatever the task reports, small
    result    payload: what the function returned (None is not sent)
    ended     payload: exit code, negative for the signal that killed it. Always the last event of a task.
    """

    key: str
    kind: Literal["started", "progress", "result", "ended"]
    payload: Any = None


class Reporter(Protocol):
    """What a task's function is given beside its argument."""

    def __call__(self, payload: object) -> None:
        """Tell the supervisor how far the task is. Cheap, and never an obstacle: reports may be dropped."""

    def stop_requested(self) -> bool:
        """Whether the task is asked to end at its next checkpoint."""


@dataclass(frozen=True)
class Workload:
    """What an engine is opened for.

    jobs: tasks at a time that the user asks for; None: as many as there is room for. tasks: how many will come, None if
    nobody knows. threads: CPU threads of each. preload: modules that tasks will need, torch for instance, and functions
    to call, "module:function". device: "auto", "cpu" or "cuda". gpus: cards of this machine that tasks may use, as
    CUDA_VISIBLE_DEVICES names them. cases_per_gpu: how many share a card. code: files and folders of authors that tasks
    read, for workers that don't see
    them.
    """

    jobs: int | None = None
    tasks: int | None = None
    threads: int = 1
    preload: tuple[str, ...] = ()
    device: str = "auto"
    gpus: tuple[int | str, ...] = ()
    cases_per_gpu: int = 1
    code: tuple[Path, ...] = ()


class Engine(ABC):
    """Runs tasks somewhere, at least once each; a case's directory belongs to one live process at a time.

    An engine is opened with a Workload and, by name, with the options that its constructor has after that. It moves
    status, never results: those are files that the task writes itself. `submit` does not block. Every task ends with
    exactly one "ended" event, whatever its process does. After `close` nothing of a task remains running. Every engine
    passes tests/contracts/engines.

    slots: how many tasks run at a time. gpus: cards that the caller spreads tasks over, by their environment; () where
    the engine gives out cards itself. isolates: whether tasks have processes of their own. seals: whether a task may
    fork the processes by which the exam is kept from its learner; where it may not, learners run in the task's own.
    """

    slots: int
    gpus: tuple[int | str, ...] = ()
    isolates: ClassVar[bool] = True
    seals: bool = True

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Start `task`; at most `slots` may be under way."""

    @abstractmethod
    def events(self, timeout: float) -> list[Event]:
        """What happened since the last call; waits up to `timeout` seconds for the first event."""

    @abstractmethod
    def cancel(self, key: str, *, force: bool = False) -> None:
        """Ask a task to end at its next checkpoint, or, with `force`, end it now with all that it started."""

    @abstractmethod
    def close(self) -> None:
        """End everything that still runs."""


def preload_modules(names: Iterable[str]) -> None:
    """Import what tasks will need, so that no task pays for it; one that can't do without fails with the real error.

    names: "package.module", or "package.module:function", which is called.
    """
    for name in names:
        module, _, function = name.partition(":")
        with contextlib.suppress(Exception):
            imported = importlib.import_module(module)
            if function:
                getattr(imported, function)()


def call_target(target: str) -> Callable[[Any, Reporter], object]:
    """The function that "package.module:function" names."""
    module, _, name = target.partition(":")
    function: Callable[[Any, Reporter], object] = getattr(importlib.import_module(module), name)
    return function


def thread_limits(threads: int) -> dict[str, str]:
    """What thread pools of numerical libraries read when they are loaded, before any code of ours runs."""
    pools = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return dict.fromkeys(pools, str(threads))


def usable_cores() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
