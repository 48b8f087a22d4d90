"""A pilot: what runs in a job of Slurm. It connects to the supervisor, and runs tasks one after another, as the local
engine does. It leaves when it is told to, when Slurm takes its place away, or when the supervisor is gone.
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
from ianvs.processes.engines.slurm.pilot_door import knock

LOCK = "lock"  # which the supervisor holds for as long as it lives
_PATIENCE = 30.0  # seconds to find the supervisor
_TICK = 0.1  # seconds from one look at the supervisor's wishes to the next, while a task runs


class Hello(NamedTuple):
    """What a pilot says of itself. locked: whether it sees the lock."""

    job: str
    node: str
    locked: bool


class Orders(NamedTuple):
    """What a pilot is told first. alone: what it does with its task when the supervisor is gone."""

    workload: Workload
    folder: Path  # to work in
    cards: bool  # whether cards were asked for
    alone: Literal["finish", "stop"]


class Cancel(NamedTuple):
    key: str
    force: bool


class Leave(NamedTuple):
    """To the pilot: end what is running, now. From the pilot: it goes, and why."""

    why: str = ""


def main(place: str) -> None:
    """place: the folder of the run, below its workspace."""
    ending: list[str] = []
    signal.signal(signal.SIGUSR1, lambda *_: ending.append("the time of its job is nearly over"))
    signal.signal(signal.SIGTERM, lambda *_: ending.append("Slurm ends its job"))
    folder = Path(place)
    try:
        supervisor = knock(folder, _PATIENCE)
    except ConnectionError as error:
        sys.exit(str(error))
    job = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{os.environ['SLURM_ARRAY_TASK_ID']}"
    with supervisor:
        supervisor.send(Hello(job, socket.gethostname(), is_locked(folder / LOCK)))
        try:
            orders: Orders = supervisor.recv()
        except (EOFError, OSError):
            return
        if not orders.cards:  # not every Slurm hides cards that a job has not asked for
            os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
        with contextlib.suppress(OSError):
            os.chdir(orders.folder)
        with contextlib.closing(LocalEngine(replace(orders.workload, jobs=1, gpus=()))) as engine:
            _Pilot(engine, supervisor, orders, folder / f"{job}.task", ending).go()


class _Pilot:
    def __init__(
        self, engine: LocalEngine, supervisor: Connection, orders: Orders, note: Path, ending: list[str]
    ) -> None:
        """note: the file that says which task is here, for who looks for it later. ending: why Slurm wants it to go."""
        self._engine, self._supervisor, self._orders = engine, supervisor, orders
        self._note, self._ending = note, ending
        self._key: str | None = None
        self._alone = self._lost = self._cancelled = False

    def go(self) -> None:
        while self._key is not None or not (self._ending or self._alone):
            if not self._alone and not self._listen():
                return
            if self._key is None:
                continue
            if self._ending and not self._lost:
                self._lose(self._key, self._ending[0])
                self._engine.cancel(self._key)
            for event in self._engine.events(_TICK):
                if event.kind == "ended":
                    # Slurm tells all processes of a job at once: the task may have obeyed before this one hears of it.
                    if event.payload == EXIT_INTERRUPTED and not (self._cancelled or self._lost):
                        self._lose(event.key, "Slurm ends its job")
                    self._key = None
                    self._note.unlink(missing_ok=True)
                self._say(event)
        self._say(Leave(*self._ending[:1]))

    def _lose(self, key: str, why: str) -> None:
        self._lost = True
        self._say(Event(key, "lost", why))

    def _listen(self) -> bool:
        """Do what the supervisor wants; whether to go on."""
        wish: Any = None
        try:
            if self._supervisor.poll(0 if self._key else 1.0):
                wish = self._supervisor.recv()
        except (EOFError, OSError):
            self._left_alone()
        if isinstance(wish, Task):
            self._key, self._cancelled = wish.key, False
            self._note.write_text(wish.key)
            self._engine.submit(wish)
        elif isinstance(wish, Cancel) and wish.key == self._key:
            self._cancelled = True
            self._engine.cancel(wish.key, force=wish.force)
        return not isinstance(wish, Leave)  # closing the engine ends what runs

    def _left_alone(self) -> None:
        self._alone = True
        if self._key is not None and self._orders.alone == "stop":
            self._engine.cancel(self._key)

    def _say(self, message: Event | Leave) -> None:
        if not self._alone:
            try:
                self._supervisor.send(message)
            except OSError:
                self._left_alone()


def is_locked(lock: Path) -> bool:
    """Whether another process holds it, as far as this machine can see."""
    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True
