"""The engine of clusters with Slurm: tasks run in pilots (pilot.py), a few jobs that run many each; this is the
supervisor's side. docs/decisions/001-processes.md says why, docs/clusters.md#slurm what the options are.
"""

import contextlib
import math
import os
import secrets
import shlex
import shutil
import signal
import threading
import time as clock
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock

from ianvs.base.errors import IanvsError
from ianvs.config.spec import ResourcesSpec
from ianvs.processes.engines.engine import Engine, Event, Mailbox, Task, Workload, python_command
from ianvs.processes.engines.slurm.pilot import LOCK, Cancel, Hello, Leave, Orders, is_locked
from ianvs.processes.engines.slurm.pilot_door import Door
from ianvs.processes.engines.slurm.slurm_commands import NEVER, Job, arguments_of, sbatch, scancel, squeue

_FOLDER = ".slurm"  # below the workspace
_PILOTS = 8  # where nobody says how many
_ARRAY = 1000  # jobs, which every Slurm takes in one array
_LOOK = 1.0  # seconds from one look at the queue to the next, while something waits there
_SELDOM = 10.0  # the same, while nothing does
_TROUBLE = 600.0  # seconds that Slurm may fail to answer while pilots work
_CONNECT = 90.0  # seconds that a job may run without connecting
_IDLE = 20.0  # seconds that a pilot without work keeps its place
_FORCE = 10.0  # seconds after which what was to be ended is ended with its pilot
_MOST_STARTS = 3  # pilots in turn that end before they connect


@dataclass(eq=False)
class _Kind:
    """Tasks of the same needs. orders: what their pilots are told first."""

    arguments: list[str]  # of sbatch
    orders: Orders
    waiting: dict[str, tuple[Task, str]] = field(default_factory=dict)  # by key: and why, as it was said last


@dataclass(eq=False)
class _Pilot:
    """One job. missed: how often in turn the queue did not have it. until: a time by which it has to connect, is let
    go for want of work, or is ended by force, whichever it is up to.
    """

    id: str
    kind: _Kind
    reason: str = ""  # why it waits
    node: str = ""
    missed: int = 0
    until: float = math.inf
    connection: Connection | None = None
    task: Task | None = None
    lost: bool = False  # its place, of which the supervisor has been told


class SlurmEngine(Engine):
    """Tasks in jobs of a Slurm cluster. Options: docs/clusters.md#slurm. Nodes see the workspace under the same path.

    At most `pilots` jobs for each kind of resources. Raises IanvsError with Slurm's words where it refuses them.
    """

    elsewhere = True

    def __init__(
        self,
        workload: Workload,
        *,
        partition: str | None = None,
        account: str | None = None,
        qos: str | None = None,
        time: str | int | None = None,
        mem: str | None = None,
        cpus: int | None = None,
        gpus: int | str | None = None,
        constraint: str | None = None,
        extra: list[str] | None = None,
        setup: list[str] | None = None,
        pilots: int | None = None,
        signal_delay_s: int = 120,
        host: str | None = None,
        alone: Literal["finish", "stop"] = "finish",
    ) -> None:
        most = pilots or workload.jobs or _PILOTS
        self.slots = max(1, min(most, workload.tasks or most))
        wishes = {"partition": partition, "account": account, "qos": qos, "time": time, "mem": mem}
        wishes |= {"cpus-per-task": cpus or workload.threads, "gres": gpus and f"gpu:{gpus}", "constraint": constraint}
        script = ["#!/bin/bash", *(setup or [])]
        self._kinds: dict[ResourcesSpec | None, _Kind] = {}
        for kind in workload.resources:
            arguments = arguments_of(wishes, kind, workload.threads, signal_delay_s, extra or [])
            sbatch(["--test-only", *arguments], "\n".join([*script, "true\n"]))
            cards = any(word.startswith(("--gres", "--gpus")) for word in arguments)
            self._kinds[kind] = _Kind(arguments, Orders(workload, Path.cwd(), cards, alone))
        self._name = f"ianvs-{secrets.token_hex(4)}"
        root = (workload.workspace or Path.cwd()).absolute() / _FOLDER
        self._orphans = _look_after_orphans(root)
        self._folder = root / self._name
        self._folder.mkdir(parents=True, mode=0o700)
        self._lock = FileLock(self._folder / LOCK)
        self._lock.acquire()
        command = python_command("ianvs.processes.engines.slurm.pilot:main", os.fspath(self._folder))
        self._script = "\n".join([*script, f"exec {shlex.join(command)}\n"])
        self._pilots: dict[str, _Pilot] = {}
        self._doomed: set[str] = set()  # ids of jobs to be cancelled
        self._failures = 0  # of pilots in turn, before they connected
        self._mailbox = Mailbox()
        self._guard = threading.RLock()
        self._asking = threading.Lock()  # held until it is known what sbatch has called the pilots
        self._wish = threading.Event()  # to look at the queue now
        self._closing = False
        self._door = Door(self._folder, host, lambda *guest: self._live(self._serve, *guest))
        self._watcher = threading.Thread(target=self._live, args=(self._watch,), daemon=True)
        self._watcher.start()

    # --- the contract -------------------------------------------------------------------------------------------------

    def submit(self, task: Task) -> None:
        kind = self._kinds[task.resources]
        with self._guard:
            kind.waiting[task.key] = task, ""
            self._assign(kind)
        self._wish.set()

    def events(self, timeout: float) -> list[Event]:
        return self._mailbox.take(timeout)

    def cancel(self, key: str, *, force: bool = False) -> None:
        with self._guard:
            for kind in self._kinds.values():
                if kind.waiting.pop(key, None) is not None:
                    self._mailbox.put(Event(key, "ended", -(signal.SIGKILL if force else signal.SIGTERM)))
            for pilot in self._pilots.values():
                if pilot.task is not None and pilot.task.key == key:
                    if force:
                        pilot.until = min(pilot.until, clock.monotonic() + _FORCE)
                    self._say(pilot, Cancel(key, force))

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        with self._guard:
            for kind in self._kinds.values():
                kind.waiting.clear()
            for pilot in self._pilots.values():
                self._say(pilot, Leave())
        self._wish.set()
        self._watcher.join()  # which may just be asking for more
        with contextlib.suppress(IanvsError):  # a controller that is gone
            for which in (["--state=PENDING"], []):  # who runs leaves by itself, or else is ended
                scancel([f"--name={self._name}", *which])
                deadline = clock.monotonic() + _FORCE
                while _living(self._name) and clock.monotonic() < deadline:
                    clock.sleep(0.2)
            _look_after_orphans(self._folder.parent)
        self._door.close()
        self._lock.release()
        shutil.rmtree(self._folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            self._folder.parent.rmdir()  # unless another run is there

    def _live(self, life: Callable[..., None], *given: Any) -> None:
        """The life of a thread, whose end by an error is everybody's."""
        try:
            life(*given)
        except Exception as error:
            traceback.print_exc()
            self._fail(f"engine slurm can't go on: {type(error).__name__}: {error}")

    def _fail(self, message: str) -> None:
        self._mailbox.put(IanvsError(message, code="invalid-engine"))

    # --- what is said with pilots -------------------------------------------------------------------------------------

    def _serve(self, connection: Connection, hello: Hello) -> None:
        """The life of a thread: let a pilot in, and hear what it says until it is gone."""
        with self._asking, self._guard:
            pilot = self._pilots.get(hello.job)
            if self._closing or pilot is None:
                return
            if not hello.locked:
                self._fail(
                    f"a lock of {self._folder} is not seen on node {hello.node}: two machines could write the same "
                    "case. Mount the file system with locks (on Lustre, `-o flock`), or take another workspace."
                )
            pilot.connection, pilot.node, pilot.until = connection, hello.node, clock.monotonic() + _IDLE
            pilot.reason, self._failures = "", 0
            self._say(pilot, pilot.kind.orders)
            self._assign(pilot.kind)
        while pilot.connection is connection:
            try:
                message = connection.recv()
            except (EOFError, OSError):
                message = Leave("its pilot is gone")
            with self._guard:
                if pilot.connection is connection:
                    self._heard(pilot, message)

    def _heard(self, pilot: _Pilot, message: Event | Leave) -> None:
        if isinstance(message, Leave):
            self._part(pilot, message.why)
        elif message.kind == "lost":
            self._lose(pilot, message.payload)
        else:
            self._mailbox.put(message)
            if message.kind == "ended":
                pilot.task, pilot.until = None, clock.monotonic() + _IDLE
                self._assign(pilot.kind)

    def _part(self, pilot: _Pilot, why: str = "") -> None:
        """Nothing more is heard of a pilot, whose job is ended in any case. why: of use to who had a task there."""
        self._say(pilot, Leave())
        pilot.connection = None
        if pilot.task is not None:
            if pilot.until == math.inf:  # not ended by force
                self._lose(pilot, why)
            self._mailbox.put(Event(pilot.task.key, "ended", -signal.SIGKILL))
            pilot.task = None
        self._pilots.pop(pilot.id, None)
        self._doomed.add(pilot.id)
        self._wish.set()

    def _lose(self, pilot: _Pilot, why: str) -> None:
        if pilot.task is not None and not pilot.lost:
            pilot.lost = True
            self._mailbox.put(Event(pilot.task.key, "lost", f"{why} ({pilot.id} on {pilot.node})"))

    def _say(self, pilot: _Pilot, message: Any) -> None:
        if pilot.connection is not None:
            with contextlib.suppress(OSError):  # who is gone is found out by listening
                pilot.connection.send(message)

    def _ready(self, kind: _Kind) -> list[Task]:
        """What waits for a pilot, and not for a job of an earlier run to end it."""
        return [task for task, _ in kind.waiting.values() if task.key not in self._orphans]

    def _assign(self, kind: _Kind) -> None:
        """Give what waits to pilots that have nothing to do."""
        connected = [p for p in self._pilots.values() if p.kind is kind and p.connection is not None]
        idle = [p for p in connected if p.task is None and not p.lost]
        for pilot, task in zip(idle, self._ready(kind), strict=False):
            del kind.waiting[task.key]
            pilot.task, pilot.until = task, math.inf
            self._say(pilot, task)

    # --- what is in Slurm's queue -------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """The life of a thread: ask for pilots, and look at what becomes of them."""
        answered = clock.monotonic()
        while not self._closing:
            self._wish.clear()
            try:
                self._look()
                answered = clock.monotonic()
            except IanvsError as error:  # pilots go on while the controller is restarted, or has no time
                if not self._pilots or clock.monotonic() - answered > _TROUBLE:
                    self._mailbox.put(error)
            with self._guard:
                pilots = self._pilots.values()
                waits = any(pilot.connection is None or (pilot.task and pilot.until < math.inf) for pilot in pilots)
            self._wish.wait(_LOOK if waits or self._orphans else _SELDOM)

    def _look(self) -> None:
        with self._guard:
            for pilot in list(self._pilots.values()):
                over = pilot.connection is not None and clock.monotonic() > pilot.until
                if over and (pilot.task is not None or not pilot.kind.waiting):
                    self._part(pilot)
            doomed, self._doomed = self._doomed, set()
        if doomed:
            scancel(sorted(doomed))
        if self._pilots or self._orphans:
            jobs = squeue({self._name, *(name for name, _ in self._orphans.values())})
            with self._guard:
                for pilot in list(self._pilots.values()):
                    self._noticed(pilot, jobs.get(pilot.id))
                for key, (_, id_) in list(self._orphans.items()):
                    if id_ not in jobs or jobs[id_].over:
                        del self._orphans[key]
                for kind in self._kinds.values():
                    self._explain(kind)
                    self._assign(kind)
        for kind in self._kinds.values():
            self._ask_for_pilots(kind)

    def _ask_for_pilots(self, kind: _Kind) -> None:
        with self._guard:
            mine = [pilot for pilot in self._pilots.values() if pilot.kind is kind and not pilot.lost]
            wanted = len(self._ready(kind)) + sum(pilot.task is not None for pilot in mine)
            count = min(min(self.slots, wanted) - len(mine), _ARRAY)  # the next look asks for the rest
        if count < 1 or self._closing:
            return
        options = [f"--job-name={self._name}", f"--array=0-{count - 1}", f"--output={self._folder}/%A_%a.txt"]
        with self._asking:
            job = sbatch(["--parsable", *options, *kind.arguments], self._script).strip().partition(";")[0]
            with self._guard:
                self._pilots |= {id_: _Pilot(id_, kind) for id_ in (f"{job}_{number}" for number in range(count))}

    def _noticed(self, pilot: _Pilot, job: Job | None) -> None:
        """job: what the queue says of it."""
        if job is None or job.over:
            pilot.missed += 1
            if pilot.connection is None and (job is not None or pilot.missed > 1):
                self._failed_to_start(pilot, "ended before it connected")
            elif pilot.missed > 1:  # its processes go on where nobody watches over them, unless it is just leaving
                self._part(pilot, f"Slurm has ended its job{f' ({job.state})' if job else ''}")
            return
        pilot.missed, pilot.reason = 0, job.reason if job.state == "PENDING" else ""
        if pilot.reason in NEVER:
            self._part(pilot)
            self._fail(f"Slurm will never start a pilot: {job.reason}. `scontrol show partition` shows its limits.")
        elif job.state == "RUNNING" and pilot.connection is None:
            pilot.until = min(pilot.until, clock.monotonic() + _CONNECT)
            if clock.monotonic() > pilot.until:
                door = f"port {self._door.port} of {', '.join(self._door.hosts)}"
                remedy = "Set `host` of engine slurm to a name or address of this machine that nodes can reach"
                self._failed_to_start(pilot, f"has not connected to {door} for {_CONNECT:.0f} s. {remedy}")

    def _failed_to_start(self, pilot: _Pilot, outcome: str) -> None:
        self._part(pilot)
        self._failures += 1
        if self._failures >= _MOST_STARTS:
            output = ""
            with contextlib.suppress(OSError):
                output = " / ".join((self._folder / f"{pilot.id}.txt").read_text(errors="replace").splitlines()[-3:])
            outcome += f", and printed: {output}" if output else f", and printed nothing; do nodes see {self._folder}?"
            self._fail(f"{self._failures} pilots in turn did not start; job {pilot.id} {outcome}")

    def _explain(self, kind: _Kind) -> None:
        """Say of what waits why it does, where that is another reason than before, or was not said yet."""
        reasons = (pilot.reason for pilot in self._pilots.values() if pilot.kind is kind)
        reason = next((text for text in reasons if text not in ("", "None")), "")
        for key, (task, last_reason) in kind.waiting.items():
            orphan = self._orphans.get(key)
            why = f"job {orphan[1]} of a run that was killed still has it" if orphan else reason
            if why not in ("", last_reason):
                kind.waiting[key] = task, why
                self._mailbox.put(Event(key, "queued", why))


def _look_after_orphans(root: Path) -> dict[str, tuple[str, str]]:
    """Of what runs that were killed have left, cancel what waits, and let what has a task end it first.

    Returns the name and id of the job that has it, by key of the task.
    """
    orphans: dict[str, tuple[str, str]] = {}
    for lock in root.glob(f"ianvs-*/{LOCK}"):
        if is_locked(lock):
            continue
        folder, name = lock.parent, lock.parent.name
        notes = {note.stem: note.read_text() for note in folder.glob("*.task")}
        alive = _living(name) & notes.keys()
        orphans |= {notes[id_]: (name, id_) for id_ in alive}
        scancel([f"--name={name}", *(["--state=PENDING"] if alive else [])])
        if not alive:
            shutil.rmtree(folder, ignore_errors=True)
    return orphans


def _living(name: str) -> set[str]:
    """Ids of jobs of this name that are not over."""
    return {job.id for job in squeue([name]).values() if not job.over}
