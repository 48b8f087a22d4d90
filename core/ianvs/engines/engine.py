"""The contract of engines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

__all__ = ["Engine", "Event", "Reporter", "Task", "call_target", "preload_modules"]


@dataclass(frozen=True)
class Task:
    """A call of `target` ("package.module:function") with `argument` and a reporter, in a process of its own.

    Both travel to the process by pickle. What the function prints goes to `log`. environment: variables that are set
    before the function is called, such as the accelerators that it may see.
    """

    key: str
    target: str
    argument: Any
    log: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


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

    def __call__(self, payload: Any) -> None:
        """Tell the supervisor how far the task is. Cheap, and never an obstacle: reports may be dropped."""

    def stop_requested(self) -> bool:
        """Whether the task is asked to end at its next checkpoint."""


class Engine(Protocol):
    """Runs tasks somewhere, at least once each; a case's directory belongs to one live process at a time.

    An engine moves status, never results: those are files that the task writes itself. `submit` does not block.
    Every task ends with exactly one "ended" event, whatever its process does. After `close` nothing of a task remains
    running. Every engine passes tests/contracts/engines.
    """

    @property
    def slots(self) -> int:
        """How many tasks run at a time."""

    def submit(self, task: Task) -> None:
        """Start `task`; at most `slots` may be under way."""

    def events(self, timeout: float) -> list[Event]:
        """What happened since the last call; waits up to `timeout` seconds for the first event."""

    def cancel(self, key: str, *, force: bool = False) -> None:
        """Ask a task to end at its next checkpoint, or, with `force`, end it now with all that it started."""

    def close(self) -> None:
        """End everything that still runs."""


def preload_modules(names: Iterable[str]) -> None:
    """Import what tasks will need, so that no task pays for it; one that can't do without fails with the real error."""
    import importlib

    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def call_target(target: str) -> Any:
    """The function that "package.module:function" names."""
    import importlib

    module, _, function = target.partition(":")
    return getattr(importlib.import_module(module), function)
