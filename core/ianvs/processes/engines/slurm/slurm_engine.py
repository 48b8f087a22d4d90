"""The Slurm engine, supervisor side. Tasks run in pilots (pilot.py), a few Slurm jobs that run many tasks each.

docs/decisions/001-processes.md has the reasons, docs/clusters.md#slurm the options.
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
from ianvs.processes.engines.slurm.pilot_server import PilotListener
from ianvs.processes.engines.slurm.slurm_commands import (
    HOPELESS_REASONS,
    Job,
    sbatch,
    sbatch_arguments,
    scancel,
    squeue,
)

_FOLDER = ".slurm"  # below the workspace
_DEFAULT_PILOTS = 8
_MAX_ARRAY_SIZE = 1000  # jobs of an array that every Slurm accepts
_POLL_SECONDS = 1.0  # seconds between polls of the queue while jobs wait in it
_IDLE_POLL_SECONDS = 10.0  # seconds between polls otherwise
_CONTROLLER_TIMEOUT = 600.0  # seconds that Slurm may not respond while pilots work
_CONNECT_TIMEOUT = 90.0  # seconds in which a running job has to connect
_IDLE_TIMEOUT = 20.0  # seconds after which a pilot without work is ended
_KILL_DELAY = 10.0  # seconds after which a task that does not end is killed with its pilot
_MAX_FAILED_STARTS = 3  # consecutive pilots that end before they connect


@dataclass(eq=False)
class _ResourceClass:
    """Tasks with the same resources. orders: the start message of their pilots."""

    arguments: list[str]  # of sbatch
    orders: Orders
    waiting: dict[str, tuple[Task, str]] = field(default_factory=dict)  # key -> (task, last reported reason)


@dataclass(eq=False)
class _Pilot:
    """A Slurm job that runs tasks.

    Attributes:
        id: Id of the job.
        kind: The class of tasks that it runs.
        reason: Why it waits in the queue.
        node: Its host.
        missing_polls: Consecutive polls of the queue without this job.
        deadline: For connecting, idling, or a forced end, depending on its state.
        connection: None before it connects and after it ends.
        task: The running task.
        lost: Whether its loss has been reported.
    """

    id: str
    kind: _ResourceClass
    reason: str = ""
    node: str = ""
    missing_polls: int = 0
    deadline: float = math.inf
    connection: Connection | None = None
    task: Task | None = None
    lost: bool = False


class SlurmEngine(Engine):
    """Tasks in jobs of a Slurm cluster. Options: docs/clusters.md#slurm. Nodes see the workspace under the same path.

    There are at most `pilots` jobs for each class of resources. Raises IanvsError with Slurm's message on rejection.
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
        without_supervisor: Literal["finish", "stop"] = "finish",
    ) -> None:
        max_pilots = pilots or workload.jobs or _DEFAULT_PILOTS
        self.slots = max(1, min(max_pilots, workload.tasks or max_pilots))
        sbatch_options = {"partition": partition, "account": account, "qos": qos, "time": time, "mem": mem}
        sbatch_options |= {
            "cpus-per-task": cpus or workload.threads,
            "gres": gpus and f"gpu:{gpus}",
            "constraint": constraint,
        }
        script = ["#!/bin/bash", *(setup or [])]
        self._classes: dict[ResourcesSpec | None, _ResourceClass] = {}
        for kind in workload.resources:
            arguments = sbatch_arguments(sbatch_options, kind, workload.threads, signal_delay_s, extra or [])
            sbatch(["--test-only", *arguments], "\n".join([*script, "true\n"]))
            requests_gpus = any(argument.startswith(("--gres", "--gpus")) for argument in arguments)
            self._classes[kind] = _ResourceClass(
                arguments, Orders(workload, Path.cwd(), requests_gpus, without_supervisor)
            )
        self._name = f"ianvs-{secrets.token_hex(4)}"
        root = (workload.workspace or Path.cwd()).absolute() / _FOLDER
        self._orphans = _clean_up_orphans(root)
        self._folder = root / self._name
        self._folder.mkdir(parents=True, mode=0o700)
        self._lock = FileLock(self._folder / LOCK)
        self._lock.acquire()
        command = python_command("ianvs.processes.engines.slurm.pilot:main", os.fspath(self._folder))
        self._script = "\n".join([*script, f"exec {shlex.join(command)}\n"])
        self._pilots: dict[str, _Pilot] = {}
        self._jobs_to_cancel: set[str] = set()  # ids of jobs to be cancelled
        self._failures = 0  # consecutive pilots that ended before they connected
        self._mailbox = Mailbox()
        self._state_lock = threading.RLock()
        self._submitting = threading.Lock()  # held by sbatch until the ids of the pilots are known
        self._poll_now = threading.Event()  # set to poll the queue at once
        self._closing = False
        self._listener = PilotListener(self._folder, host, lambda *guest: self._run_thread(self._handle_pilot, *guest))
        self._watcher = threading.Thread(target=self._run_thread, args=(self._watch,), daemon=True)
        self._watcher.start()

    # --- the contract -------------------------------------------------------------------------------------------------

    def submit(self, task: Task) -> None:
        kind = self._classes[task.resources]
        with self._state_lock:
            kind.waiting[task.key] = task, ""
            self._assign(kind)
        self._poll_now.set()

    def events(self, timeout: float) -> list[Event]:
        return self._mailbox.take(timeout)

    def cancel(self, key: str, *, force: bool = False) -> None:
        with self._state_lock:
            for kind in self._classes.values():
                if kind.waiting.pop(key, None) is not None:
                    self._mailbox.put(Event(key, "ended", -(signal.SIGKILL if force else signal.SIGTERM)))
            for pilot in self._pilots.values():
                if pilot.task is not None and pilot.task.key == key:
                    if force:
                        pilot.deadline = min(pilot.deadline, clock.monotonic() + _KILL_DELAY)
                    self._send(pilot, Cancel(key, force))

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        with self._state_lock:
            for kind in self._classes.values():
                kind.waiting.clear()
            for pilot in self._pilots.values():
                self._send(pilot, Leave())
        self._poll_now.set()
        self._watcher.join()  # it may be submitting pilots
        with contextlib.suppress(IanvsError):  # the controller does not respond
            for which in (["--state=PENDING"], []):  # running pilots end by themselves, or are cancelled
                scancel([f"--name={self._name}", *which])
                deadline = clock.monotonic() + _KILL_DELAY
                while _unfinished_jobs(self._name) and clock.monotonic() < deadline:
                    clock.sleep(0.2)
            _clean_up_orphans(self._folder.parent)
        self._listener.close()
        self._lock.release()
        shutil.rmtree(self._folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            self._folder.parent.rmdir()  # unless another run uses it

    def _run_thread(self, target: Callable[..., None], *arguments: Any) -> None:
        """Run a thread. An exception ends the engine."""
        try:
            target(*arguments)
        except Exception as error:
            traceback.print_exc()
            self._fail(f"engine slurm failed: {type(error).__name__}: {error}")

    def _fail(self, message: str) -> None:
        self._mailbox.put(IanvsError(message, code="invalid-engine"))

    # --- messages of pilots -------------------------------------------------------------------------------------------

    def _handle_pilot(self, connection: Connection, hello: Hello) -> None:
        """Handle the connection of a pilot until it closes. Runs in a thread."""
        with self._submitting, self._state_lock:
            pilot = self._pilots.get(hello.job)
            if self._closing or pilot is None:
                return
            if not hello.locked:
                self._fail(
                    f"file locks on {self._folder} do not work across nodes (tested on {hello.node}), so two machines "
                    "could write the same case. Mount the file system with locks (on Lustre, `-o flock`), or use "
                    "another workspace."
                )
            pilot.connection, pilot.node, pilot.deadline = connection, hello.node, clock.monotonic() + _IDLE_TIMEOUT
            pilot.reason, self._failures = "", 0
            self._send(pilot, pilot.kind.orders)
            self._assign(pilot.kind)
        while pilot.connection is connection:
            try:
                message = connection.recv()
            except (EOFError, OSError):
                message = Leave("its pilot disconnected")
            with self._state_lock:
                if pilot.connection is connection:
                    self._handle_message(pilot, message)

    def _handle_message(self, pilot: _Pilot, message: Event | Leave) -> None:
        if isinstance(message, Leave):
            self._disconnect(pilot, message.why)
        elif message.kind == "lost":
            self._report_lost(pilot, message.payload)
        else:
            self._mailbox.put(message)
            if message.kind == "ended":
                pilot.task, pilot.deadline = None, clock.monotonic() + _IDLE_TIMEOUT
                self._assign(pilot.kind)

    def _disconnect(self, pilot: _Pilot, reason: str = "") -> None:
        """Disconnect a pilot and cancel its job. reason: reported for the task that it had."""
        self._send(pilot, Leave())
        pilot.connection = None
        if pilot.task is not None:
            if pilot.deadline == math.inf:  # not ended by force
                self._report_lost(pilot, reason)
            self._mailbox.put(Event(pilot.task.key, "ended", -signal.SIGKILL))
            pilot.task = None
        self._pilots.pop(pilot.id, None)
        self._jobs_to_cancel.add(pilot.id)
        self._poll_now.set()

    def _report_lost(self, pilot: _Pilot, reason: str) -> None:
        if pilot.task is not None and not pilot.lost:
            pilot.lost = True
            self._mailbox.put(Event(pilot.task.key, "lost", f"{reason} ({pilot.id} on {pilot.node})"))

    def _send(self, pilot: _Pilot, message: Any) -> None:
        if pilot.connection is not None:
            with contextlib.suppress(OSError):  # `_handle_pilot` notices a closed connection
                pilot.connection.send(message)

    def _ready_tasks(self, kind: _ResourceClass) -> list[Task]:
        """Return waiting tasks, except those that a job of a killed run still executes."""
        return [task for task, _ in kind.waiting.values() if task.key not in self._orphans]

    def _assign(self, kind: _ResourceClass) -> None:
        """Assign waiting tasks to idle pilots."""
        connected = [p for p in self._pilots.values() if p.kind is kind and p.connection is not None]
        idle = [p for p in connected if p.task is None and not p.lost]
        for pilot, task in zip(idle, self._ready_tasks(kind), strict=False):
            del kind.waiting[task.key]
            pilot.task, pilot.deadline = task, math.inf
            self._send(pilot, task)

    # --- Slurm's queue ------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Submit pilots and poll the queue. Runs in a thread."""
        answered = clock.monotonic()
        while not self._closing:
            self._poll_now.clear()
            try:
                self._poll_queue()
                answered = clock.monotonic()
            except IanvsError as error:  # pilots keep working while the controller is restarted or busy
                if not self._pilots or clock.monotonic() - answered > _CONTROLLER_TIMEOUT:
                    self._mailbox.put(error)
            with self._state_lock:
                pilots = self._pilots.values()
                waits = any(pilot.connection is None or (pilot.task and pilot.deadline < math.inf) for pilot in pilots)
            self._poll_now.wait(_POLL_SECONDS if waits or self._orphans else _IDLE_POLL_SECONDS)

    def _poll_queue(self) -> None:
        with self._state_lock:
            for pilot in list(self._pilots.values()):
                expired = pilot.connection is not None and clock.monotonic() > pilot.deadline
                if expired and (pilot.task is not None or not pilot.kind.waiting):
                    self._disconnect(pilot)
            to_cancel, self._jobs_to_cancel = self._jobs_to_cancel, set()
        if to_cancel:
            scancel(sorted(to_cancel))
        if self._pilots or self._orphans:
            jobs = squeue({self._name, *(name for name, _ in self._orphans.values())})
            with self._state_lock:
                for pilot in list(self._pilots.values()):
                    self._update_pilot(pilot, jobs.get(pilot.id))
                for key, (_, id_) in list(self._orphans.items()):
                    if id_ not in jobs or jobs[id_].over:
                        del self._orphans[key]
                for kind in self._classes.values():
                    self._report_reasons(kind)
                    self._assign(kind)
        for kind in self._classes.values():
            self._ask_for_pilots(kind)

    def _ask_for_pilots(self, kind: _ResourceClass) -> None:
        with self._state_lock:
            mine = [pilot for pilot in self._pilots.values() if pilot.kind is kind and not pilot.lost]
            wanted = len(self._ready_tasks(kind)) + sum(pilot.task is not None for pilot in mine)
            count = min(min(self.slots, wanted) - len(mine), _MAX_ARRAY_SIZE)  # the next poll submits the rest
        if count < 1 or self._closing:
            return
        options = [f"--job-name={self._name}", f"--array=0-{count - 1}", f"--output={self._folder}/%A_%a.txt"]
        with self._submitting:
            job = sbatch(["--parsable", *options, *kind.arguments], self._script).strip().partition(";")[0]
            with self._state_lock:
                self._pilots |= {id_: _Pilot(id_, kind) for id_ in (f"{job}_{number}" for number in range(count))}

    def _update_pilot(self, pilot: _Pilot, job: Job | None) -> None:
        """Update a pilot from its entry in the queue, None if it has none."""
        if job is None or job.over:
            pilot.missing_polls += 1
            if pilot.connection is None and (job is not None or pilot.missing_polls > 1):
                self._failed_to_start(pilot, "ended before it connected")
            elif pilot.missing_polls > 1:  # its processes may still run unsupervised
                self._disconnect(pilot, f"Slurm has ended its job{f' ({job.state})' if job else ''}")
            return
        pilot.missing_polls, pilot.reason = 0, job.reason if job.state == "PENDING" else ""
        if pilot.reason in HOPELESS_REASONS:
            self._disconnect(pilot)
            self._fail(f"Slurm will never start a pilot: {job.reason}. `scontrol show partition` shows its limits.")
        elif job.state == "RUNNING" and pilot.connection is None:
            pilot.deadline = min(pilot.deadline, clock.monotonic() + _CONNECT_TIMEOUT)
            if clock.monotonic() > pilot.deadline:
                listener = f"port {self._listener.port} of {', '.join(self._listener.hosts)}"
                remedy = "Set `host` of engine slurm to a name or address of this machine that nodes can reach"
                self._failed_to_start(pilot, f"has not connected to {listener} for {_CONNECT_TIMEOUT:.0f} s. {remedy}")

    def _failed_to_start(self, pilot: _Pilot, outcome: str) -> None:
        self._disconnect(pilot)
        self._failures += 1
        if self._failures >= _MAX_FAILED_STARTS:
            output = ""
            with contextlib.suppress(OSError):
                output = " / ".join((self._folder / f"{pilot.id}.txt").read_text(errors="replace").splitlines()[-3:])
            outcome += f", and printed: {output}" if output else f", and printed nothing; do nodes see {self._folder}?"
            self._fail(f"{self._failures} consecutive pilots failed to start; job {pilot.id} {outcome}")

    def _report_reasons(self, kind: _ResourceClass) -> None:
        """Report new reasons for waiting."""
        reasons = (pilot.reason for pilot in self._pilots.values() if pilot.kind is kind)
        reason = next((text for text in reasons if text not in ("", "None")), "")
        for key, (task, last_reason) in kind.waiting.items():
            orphan = self._orphans.get(key)
            current_reason = f"job {orphan[1]} of a run that was killed still has it" if orphan else reason
            if current_reason not in ("", last_reason):
                kind.waiting[key] = task, current_reason
                self._mailbox.put(Event(key, "queued", current_reason))


def _clean_up_orphans(root: Path) -> dict[str, tuple[str, str]]:
    """Clean up jobs of killed runs: cancel pending ones, and let running tasks finish.

    Returns (name, id) of the job that executes a task, by key of the task.
    """
    orphans: dict[str, tuple[str, str]] = {}
    for lock in root.glob(f"ianvs-*/{LOCK}"):
        if is_locked(lock):
            continue
        folder, name = lock.parent, lock.parent.name
        notes = {note.stem: note.read_text() for note in folder.glob("*.task")}
        alive = _unfinished_jobs(name) & notes.keys()
        orphans |= {notes[id_]: (name, id_) for id_ in alive}
        scancel([f"--name={name}", *(["--state=PENDING"] if alive else [])])
        if not alive:
            shutil.rmtree(folder, ignore_errors=True)
    return orphans


def _unfinished_jobs(name: str) -> set[str]:
    """Return the ids of jobs of this name that have not ended."""
    return {job.id for job in squeue([name]).values() if not job.over}
