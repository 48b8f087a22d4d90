"""The engine of clusters with Slurm: tasks run in pilots (pilot.py), a few jobs that run many each; this is the
supervisor's side. docs/decisions/016-slurm.md says why, docs/slurm.md what the options are.
"""

import contextlib
import os
import queue
import secrets
import shlex
import shutil
import signal
import threading
import time as clock
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from ianvs.base.errors import IanvsError
from ianvs.config.spec import ResourcesSpec
from ianvs.processes.engines.engine import Engine, Event, Mailbox, Task, Workload, python_command
from ianvs.processes.engines.slurm.pilot import LOCK, Cancel, Hello, Leave, Orders
from ianvs.processes.engines.slurm.pilot_door import Door
from ianvs.processes.engines.slurm.slurm_commands import NEVER, Job, arguments_of, sbatch, scancel, squeue, wishes_of

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


@dataclass
class _Pilot:
    """One job. began: when it was first seen to run. missed: how often in turn the queue did not have it."""

    id: str
    kind: ResourcesSpec | None
    asked: float
    reason: str = ""  # why it waits
    node: str = ""
    missed: int = 0
    began: float | None = None
    connection: Connection | None = None
    task: Task | None = None
    idle_since: float = 0.0
    forced_at: float | None = None
    lost: str = ""  # why, where the supervisor has been told

    @property
    def idle(self) -> bool:
        return self.connection is not None and self.task is None and not self.lost


@dataclass
class _Kind:
    """Tasks of the same needs, and what sbatch is told of them."""

    arguments: list[str]
    waiting: deque[Task] = field(default_factory=deque)
    said: dict[str, str] = field(default_factory=dict)  # why each waits, as it was said last


class SlurmEngine(Engine):
    """Tasks in jobs of a Slurm cluster. Options: docs/slurm.md. Nodes see the workspace under the same path.

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
        self._workload, self._alone = workload, alone
        wishes = {"partition": partition, "account": account, "qos": qos, "time": time, "mem": mem}
        wishes |= {"cpus-per-task": cpus or workload.threads, "gres": gpus and f"gpu:{gpus}", "constraint": constraint}
        self._kinds = {
            kind: _Kind(arguments_of(wishes | wishes_of(kind, workload.threads), signal_delay_s, extra or []))
            for kind in workload.resources
        }
        script = ["#!/bin/bash", *(setup or [])]
        for kind in self._kinds.values():
            sbatch(["--test-only", *kind.arguments], "\n".join([*script, "true\n"]))
        self._name = f"ianvs-{secrets.token_hex(4)}"
        root = (workload.workspace or Path.cwd()).absolute() / _FOLDER
        self._orphans: dict[str, tuple[str, str]] = {}  # by key of the task: the name and id of the job that has it
        self._left: dict[str, Path] = {}  # their folders, by name
        self._adopt(root)
        self._folder = root / self._name
        self._folder.mkdir(parents=True, mode=0o700)
        self._lock = FileLock(self._folder / LOCK)
        self._lock.acquire()
        command = python_command("ianvs.processes.engines.slurm.pilot:main", os.fspath(self._folder))
        self._script = "\n".join([*script, f"exec {shlex.join(command)}"])  # and the number of the kind
        self._pilots: dict[str, _Pilot] = {}
        self._gone: set[str] = set()  # ids of those that were
        self._stale: list[Connection] = []  # theirs, which one thread listens to and closes
        self._doomed: set[str] = set()  # ids of jobs to be cancelled
        self._failures = 0  # of pilots in turn, before they connected
        self._found = Mailbox()
        self._guard = threading.RLock()
        self._wish = threading.Event()  # to look at the queue now
        self._awake, self._waker = os.pipe()
        self._closing = self._stopped = False
        self._door = Door(self._folder, host, self._wake)
        lives = (self._converse, self._watch)
        self._threads = [threading.Thread(target=self._live, args=(life,), daemon=True) for life in lives]
        for thread in self._threads:
            thread.start()

    # --- the contract -------------------------------------------------------------------------------------------------

    def submit(self, task: Task) -> None:
        with self._guard:
            self._kinds[task.resources].waiting.append(task)
            self._assign(task.resources)
        self._wish.set()

    def events(self, timeout: float) -> list[Event]:
        return self._found.take(timeout)

    def cancel(self, key: str, *, force: bool = False) -> None:
        with self._guard:
            for kind in self._kinds.values():
                for task in [task for task in kind.waiting if task.key == key]:
                    kind.waiting.remove(task)
                    self._found.put(Event(key, "ended", -(signal.SIGKILL if force else signal.SIGTERM)))
            for pilot in [one for one in self._pilots.values() if one.task is not None and one.task.key == key]:
                if force:
                    pilot.forced_at = pilot.forced_at or clock.monotonic()
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
        self._threads[1].join()  # which may just be asking for more
        deadline = clock.monotonic() + 2 * _FORCE
        with contextlib.suppress(IanvsError):  # a controller that is gone
            scancel([f"--name={self._name}", "--state=PENDING"])
            while self._connected() and clock.monotonic() < deadline:
                clock.sleep(0.05)
            scancel([f"--name={self._name}"])
            while _living([self._name]) and clock.monotonic() < deadline:
                clock.sleep(0.2)
            for name, folder in self._left.items():
                if not _living([name]):
                    shutil.rmtree(folder, ignore_errors=True)
        self._stopped = True
        self._wake()
        for thread in self._threads:
            thread.join()
        self._door.close()
        os.close(self._waker)
        os.close(self._awake)
        self._lock.release()
        shutil.rmtree(self._folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            self._folder.parent.rmdir()  # unless another run is there

    def _live(self, life: Callable[[], None]) -> None:
        try:
            life()
        except Exception as error:
            traceback.print_exc()
            self._fail(f"engine slurm can't go on: {type(error).__name__}: {error}")

    def _connected(self) -> dict[Connection, _Pilot]:
        with self._guard:
            return {one.connection: one for one in self._pilots.values() if one.connection is not None}

    # --- what is said with pilots -------------------------------------------------------------------------------------

    def _converse(self) -> None:
        """The life of a thread: let pilots in and hear what they say."""
        while not self._stopped:
            while self._stale:
                self._stale.pop().close()
            pilots = self._connected()
            for ready in wait([*pilots, self._awake]):
                if not isinstance(ready, Connection):
                    os.read(self._awake, 1)
                    continue
                try:
                    said = ready.recv()
                except (EOFError, OSError):
                    said = None
                with self._guard:
                    if pilots[ready].connection is ready:
                        self._heard(pilots[ready], said)
            with contextlib.suppress(queue.Empty):
                while True:
                    self._welcome(*self._door.came.get_nowait())

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._waker, b".")

    def _welcome(self, connection: Connection, hello: Hello) -> None:
        with self._guard:
            kind = list(self._kinds)[hello.kind]
            if self._closing or hello.job in self._gone:
                connection.close()
                return
            # It may be here before sbatch has told what it is called.
            pilot = self._pilots.setdefault(hello.job, _Pilot(hello.job, kind, clock.monotonic()))
            if not hello.locked:
                self._fail(
                    f"a lock of {self._folder} is not seen on node {hello.node}: two machines could write the same "
                    "case. Mount the file system with locks (on Lustre, `-o flock`), or take another workspace."
                )
            pilot.connection, pilot.node, pilot.idle_since = connection, hello.node, clock.monotonic()
            pilot.reason, self._failures = "", 0
            cards = any(word.startswith(("--gres", "--gpus")) for word in self._kinds[pilot.kind].arguments)
            self._say(pilot, Orders(self._workload, Path.cwd(), cards, self._alone))
            self._assign(pilot.kind)

    def _heard(self, pilot: _Pilot, said: Any) -> None:
        """said: an event of its task, that it leaves, or None: it is gone."""
        if isinstance(said, Event):
            if said.kind == "lost":
                pilot.lost = f"{said.payload} ({pilot.id} on {pilot.node})"
                said = Event(said.key, "lost", pilot.lost)
            self._found.put(said)
            if said.kind == "ended":
                pilot.task, pilot.forced_at, pilot.idle_since = None, None, clock.monotonic()
                self._assign(pilot.kind)
            return
        self._part(pilot, said.why if isinstance(said, Leave) and said.why else "its pilot is gone")

    def _part(self, pilot: _Pilot, why: str) -> None:
        """Nothing more is heard of a pilot, whose job is ended in any case."""
        if pilot.connection is not None:
            self._stale.append(pilot.connection)
            pilot.connection = None
            self._wake()
        if pilot.task is not None:
            if not pilot.lost and pilot.forced_at is None:
                self._found.put(Event(pilot.task.key, "lost", f"{why} ({pilot.id} on {pilot.node})"))
            self._found.put(Event(pilot.task.key, "ended", -signal.SIGKILL))
            pilot.task = None
        self._dismissed(pilot)
        self._wish.set()

    def _dismissed(self, pilot: _Pilot) -> None:
        self._pilots.pop(pilot.id, None)
        self._gone.add(pilot.id)
        self._doomed.add(pilot.id)

    def _say(self, pilot: _Pilot, said: Any) -> None:
        if pilot.connection is not None:
            with contextlib.suppress(OSError):  # who is gone is found out by listening
                pilot.connection.send(said)

    def _assign(self, kind: ResourcesSpec | None) -> None:
        """Give what waits to pilots that have nothing to do."""
        waiting = self._kinds[kind].waiting
        for pilot in self._pilots.values():
            if pilot.kind == kind and pilot.idle and (task := self._next(waiting)) is not None:
                pilot.task = task
                self._say(pilot, task)

    def _next(self, waiting: deque[Task]) -> Task | None:
        """The first that no job of an earlier run has."""
        for task in waiting:
            if task.key not in self._orphans:
                waiting.remove(task)
                return task
        return None

    # --- what is in Slurm's queue -------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """The life of a thread: ask for pilots, and look at what becomes of them."""
        troubled: float | None = None
        while not self._closing:
            self._wish.clear()
            try:
                self._look()
                troubled = None
            except IanvsError as error:  # pilots go on while the controller is restarted, or has no time
                troubled = troubled or clock.monotonic()
                if not self._pilots or clock.monotonic() - troubled > _TROUBLE:
                    self._found.put(error)
            with self._guard:
                waits = any(one.connection is None for one in self._pilots.values()) or bool(self._orphans)
                waits = waits or any(one.forced_at is not None for one in self._pilots.values())
            self._wish.wait(_LOOK if waits else _SELDOM)

    def _look(self) -> None:
        with self._guard:
            self._dismiss()
            doomed, self._doomed = self._doomed, set()
        if doomed:
            scancel(sorted(doomed))
        if self._pilots or self._orphans:
            self._see()
        for kind in self._kinds:
            self._ask_for_pilots(kind)

    def _see(self) -> None:
        """What the queue says of pilots and orphans."""
        names = {self._name, *(name for name, _ in self._orphans.values())}
        asked = clock.monotonic()
        jobs = squeue(names)
        with self._guard:
            for pilot in list(self._pilots.values()):
                if pilot.asked < asked:
                    self._noticed(pilot, jobs.get(pilot.id))
            for key, (_, id_) in list(self._orphans.items()):
                if id_ not in jobs or jobs[id_].over:
                    del self._orphans[key]
            for kind in self._kinds:
                self._explain(kind)
                self._assign(kind)

    def _ask_for_pilots(self, kind: ResourcesSpec | None) -> None:
        with self._guard:
            mine = [one for one in self._pilots.values() if one.kind == kind and not one.lost]
            busy = sum(one.task is not None for one in mine)
            held = sum(task.key in self._orphans for task in self._kinds[kind].waiting)
            count = min(self.slots, busy + len(self._kinds[kind].waiting) - held) - len(mine)
        while count > 0 and not self._closing:
            some, count = min(count, _ARRAY), count - _ARRAY
            own = [f"--job-name={self._name}", f"--array=0-{some - 1}", f"--output={self._folder}/%A_%a.txt"]
            script = f"{self._script} {list(self._kinds).index(kind)}\n"
            said = sbatch(["--parsable", *own, *self._kinds[kind].arguments], script)
            job = said.strip().partition(";")[0]
            with self._guard:
                for number in range(some):
                    pilot = _Pilot(f"{job}_{number}", kind, clock.monotonic())
                    if pilot.id not in self._gone:
                        self._pilots.setdefault(pilot.id, pilot)

    def _dismiss(self) -> None:
        """Let go of pilots without work, and of those whose task does not end."""
        now = clock.monotonic()
        for pilot in list(self._pilots.values()):
            if pilot.forced_at is not None and now - pilot.forced_at > _FORCE:
                self._part(pilot, "")
            elif pilot.idle and not self._kinds[pilot.kind].waiting and now - pilot.idle_since > _IDLE:
                self._say(pilot, Leave())
                self._part(pilot, "")

    def _noticed(self, pilot: _Pilot, job: Job | None) -> None:
        """job: what the queue says of it."""
        now = clock.monotonic()
        if job is None or job.over:
            pilot.missed += 1
            if job is None and pilot.missed < 2:
                return
            if pilot.connection is None:
                self._dismissed(pilot)
                self._failed_to_start(pilot, "ended before it connected")
            elif pilot.missed > 1:  # its processes go on where nobody watches over them, unless it is just leaving
                self._say(pilot, Leave())
                self._part(pilot, f"Slurm has ended its job{f' ({job.state})' if job else ''}")
            return
        pilot.missed, pilot.reason = 0, job.reason if job.state == "PENDING" else ""
        if pilot.reason in NEVER:
            self._dismissed(pilot)
            self._fail(f"Slurm will never start a pilot: {job.reason}. `scontrol show partition` shows its limits.")
        elif job.state == "RUNNING" and pilot.connection is None:
            pilot.began = pilot.began or now
            if now - pilot.began > _CONNECT:
                self._dismissed(pilot)
                told = (
                    f"has not connected to port {self._door.port} of {', '.join(self._door.hosts)} for {_CONNECT:.0f} s"
                )
                remedy = "Set `host` of engine slurm to a name or address of this machine that nodes can reach"
                self._failed_to_start(pilot, f"{told}. {remedy}")

    def _failed_to_start(self, pilot: _Pilot, what: str) -> None:
        self._failures += 1
        if self._failures >= _MOST_STARTS:
            said = ""
            with contextlib.suppress(OSError):
                said = " / ".join((self._folder / f"{pilot.id}.txt").read_text(errors="replace").splitlines()[-3:])
            what += f", and printed: {said}" if said else f", and printed nothing; do nodes see {self._folder}?"
            self._fail(f"{self._failures} pilots in turn did not start; job {pilot.id} {what}")

    def _explain(self, kind: ResourcesSpec | None) -> None:
        """Say of what waits why it does, where that is another reason than before, or was not said yet."""
        mine = self._kinds[kind]
        reasons = (one.reason for one in self._pilots.values() if one.kind == kind)
        reason = next((one for one in reasons if one not in ("", "None")), "")
        mine.said = {task.key: mine.said.get(task.key, "") for task in mine.waiting}
        for task in mine.waiting:
            if (orphan := self._orphans.get(task.key)) is not None:
                said = f"job {orphan[1]} of a run that was killed still has it"
            else:
                said = reason
            if said and mine.said[task.key] != said:
                mine.said[task.key] = said
                self._found.put(Event(task.key, "queued", said))

    def _fail(self, said: str) -> None:
        self._found.put(IanvsError(said))

    # --- earlier runs -------------------------------------------------------------------------------------------------

    def _adopt(self, root: Path) -> None:
        """Find what runs that were killed have left: what waits is cancelled, what has a task ends it first."""
        left = {one.name: one for one in root.glob("ianvs-*") if _is_left(one)}
        living = _living(left) if left else set()
        for name, folder in left.items():
            notes = {note.stem: note.read_text() for note in folder.glob("*.task")}
            alive = living & notes.keys()
            self._orphans |= {notes[id_]: (name, id_) for id_ in alive}
            scancel([f"--name={name}", *(["--state=PENDING"] if alive else [])])
            self._left[name] = folder
            if not alive:
                shutil.rmtree(folder, ignore_errors=True)


def _living(names: Iterable[str]) -> set[str]:
    """Ids of jobs of these names that are not over."""
    return {job.id for job in squeue(names).values() if not job.over}


def _is_left(folder: Path) -> bool:
    """Whether the supervisor of the run is gone."""
    try:
        with FileLock(folder / LOCK, timeout=0):
            return True
    except Timeout:
        return False
