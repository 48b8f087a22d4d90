"""The engine of a single machine: a process per task, forked on Linux, otherwise spawned."""

import platform
from typing import Literal

from ianvs.processes.engines.engine import Engine, Event, Task, Workload, usable_cores
from ianvs.processes.engines.forking import ForkEngine
from ianvs.processes.engines.spawning import SpawnEngine


class LocalEngine(Engine):
    """Runs tasks on this machine, each in a process of its own.

    start: "fork" needs Linux: a task begins within milliseconds. "spawn" runs on macOS and Windows, too: each task
    starts a python and imports what it needs, seconds with torch. Without it, whichever is better here. Without `jobs`,
    as many tasks run as the cores carry.
    """

    def __init__(self, workload: Workload, start: Literal["fork", "spawn"] | None = None) -> None:
        self.forks = start == "fork" or (start is None and platform.system() == "Linux")
        self._engine = ForkEngine(workload) if self.forks else SpawnEngine(workload)
        jobs = workload.jobs or max(1, usable_cores() // workload.threads)
        self.slots, self.gpus = min(jobs, workload.tasks or jobs), workload.gpus

    def submit(self, task: Task) -> None:
        self._engine.submit(task)

    def events(self, timeout: float) -> list[Event]:
        return self._engine.events(timeout)

    def cancel(self, key: str, *, force: bool = False) -> None:
        self._engine.cancel(key, force=force)

    def close(self) -> None:
        self._engine.close()
