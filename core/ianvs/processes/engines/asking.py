"""Runs one task of an engine alone, and waits for its answer no longer than it may take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ianvs.processes.engines.engine import Engine, Task

_TICK = 0.5  # seconds between looks at the clock while nothing happens


@dataclass(frozen=True)
class Answer:
    """How a task ended. said: the last that it reported; result: what it returned, None if it came to no end.

    overran: it was ended because a step took too long.
    """

    code: int
    result: Any = None
    said: Any = None
    overran: bool = False


def ask(engine: Engine, task: Task, seconds: float | None = None, told: Callable[[Any], None] | None = None) -> Answer:
    """The answer of `task`. A step, from one report to the next, may take `seconds`; `told` hears what is reported."""
    result = said = None
    overran, began = False, None
    engine.submit(task)
    while True:
        for event in engine.events(_TICK):
            if event.key != task.key:
                continue
            began = time.monotonic()
            if event.kind == "progress":
                said = event.payload
                if told is not None:
                    told(said)
            elif event.kind == "result":
                result = event.payload
            elif event.kind == "ended":
                return Answer(event.payload, result, said, overran)
        if seconds is not None and not overran and began is not None and time.monotonic() - began > seconds:
            overran = True
            engine.cancel(task.key, force=True)
