"""A pilot: the program of a Slurm job. It connects to the supervisor and runs tasks one after another, as the local
engine does. It ends on request, when Slurm ends its job, or when the supervisor has ended.
"""

import contextlib
import os
import signal
import socket
import sys
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, NamedTuple

from filelock import FileLock, Timeout

from ianvs.processes.engines.engine import EXIT_INTERRUPTED, Event, Task, Workload
from ianvs.processes.engines.local import LocalEngine
from ianvs.processes.engines.slurm.pilot_server import connect_to_supervisor

LOCK = "lock"  # held by the supervisor while it runs
_PATIENCE = 30.0  # seconds to connect to the supervisor
_TICK = 0.1  # seconds between polls of the supervisor's messages while a task runs


class Hello(NamedTuple):
    """First message of a pilot. locked: whether it sees the supervisor's lock."""

    job: str
    node: str
    locked: bool


class Orders(NamedTuple):
    """First message to a pilot. without_supervisor: what to do with its task if the supervisor has ended."""

    workload: Workload
    folder: Path  # working directory
    requests_gpus: bool
    without_supervisor: Literal["finish", "stop"]


class Cancel(NamedTuple):
    key: str
    force: bool


class Leave(NamedTuple):
    """To a pilot: end now, with the running task. From a pilot: it ends, and why."""

    why: str = ""


def main(place: str) -> None:
    """Run a pilot. place: the folder of the run, below its workspace."""
    ending: list[str] = []
    signal.signal(signal.SIGUSR1, lambda *_: ending.append("the time of its job is nearly over"))
    signal.signal(signal.SIGTERM, lambda *_: ending.append("Slurm ends its job"))
    folder = Path(place)
    try:
        supervisor = connect_to_supervisor(folder, _PATIENCE)
    except ConnectionError as error:
        sys.exit(str(error))
    job = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{os.environ['SLURM_ARRAY_TASK_ID']}"
    with supervisor:
        supervisor.send(Hello(job, socket.gethostname(), is_locked(folder / LOCK)))
        try:
            orders: Orders = supervisor.recv()
        except (EOFError, OSError):
            return
        if not orders.requests_gpus:  # not every Slurm hides GPUs that a job has not requested
            os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
        with contextlib.suppress(OSError):
            os.chdir(orders.folder)
        with contextlib.closing(LocalEngine(replace(orders.workload, jobs=1, gpus=()))) as engine:
            _Pilot(engine, supervisor, orders, folder / f"{job}.task", ending).run()


class _Pilot:
    def __init__(
        self, engine: LocalEngine, supervisor: Connection, orders: Orders, note: Path, ending: list[str]
    ) -> None:
        """note: file with the key of the running task, for later runs. ending: the reason of Slurm's request to end."""
        self._engine, self._supervisor, self._orders = engine, supervisor, orders
        self._note, self._ending = note, ending
        self._key: str | None = None
        self._alone = self._lost = self._cancelled = False

    def run(self) -> None:
        while self._key is not None or not (self._ending or self._alone):
            if not self._alone and not self._handle_messages():
                return
            if self._key is None:
                continue
            if self._ending and not self._lost:
                self._report_lost(self._key, self._ending[0])
                self._engine.cancel(self._key)
            for event in self._engine.events(_TICK):
                if event.kind == "ended":
                    # Slurm signals all processes of a job at once, so the task may have ended already.
                    if event.payload == EXIT_INTERRUPTED and not (self._cancelled or self._lost):
                        self._report_lost(event.key, "Slurm ends its job")
                    self._key = None
                    self._note.unlink(missing_ok=True)
                self._send(event)
        self._send(Leave(*self._ending[:1]))

    def _report_lost(self, key: str, why: str) -> None:
        self._lost = True
        self._send(Event(key, "lost", why))

    def _handle_messages(self) -> bool:
        """Handle messages of the supervisor. Returns whether to continue."""
        wish: Any = None
        try:
            if self._supervisor.poll(0 if self._key else 1.0):
                wish = self._supervisor.recv()
        except (EOFError, OSError):
            self._handle_supervisor_loss()
        if isinstance(wish, Task):
            self._key, self._cancelled = wish.key, False
            self._note.write_text(wish.key)
            self._engine.submit(wish)
        elif isinstance(wish, Cancel) and wish.key == self._key:
            self._cancelled = True
            self._engine.cancel(wish.key, force=wish.force)
        return not isinstance(wish, Leave)  # closing the engine ends the task

    def _handle_supervisor_loss(self) -> None:
        self._alone = True
        if self._key is not None and self._orders.without_supervisor == "stop":
            self._engine.cancel(self._key)

    def _send(self, message: Event | Leave) -> None:
        if not self._alone:
            try:
                self._supervisor.send(message)
            except OSError:
                self._handle_supervisor_loss()


def is_locked(lock: Path) -> bool:
    """Return whether another process holds the lock, as seen from this machine."""
    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True
