"""The engine of a cluster: every task is a call of one remote function of Ray; this is the supervisor's side."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import signal
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ianvs.engines.engine import Event, Task
from ianvs.engines.ray.ray_connection import Connection, capacity, said
from ianvs.engines.ray.ray_storage import Travel, mark, pack, store_arrived, travel_of
from ianvs.engines.ray.ray_worker import Assignment, blocks, make_entry, make_mailbox, make_sweeper, node_folder
from ianvs.errors import IanvsError, closest
from ianvs.session.case import EXIT_STORAGE

__all__ = ["RayEngine"]

_LONG_POLL = 20.0  # seconds
_FORCE_SECONDS = 10.0  # after which a task that was to be ended is ended together with its worker
_IN_TRANSIT = 64 << 20  # bytes of results that wait in the mailbox


@dataclass
class _Attempt:
    """One try at a task."""

    task: Task
    travel: Travel | None
    reference: Any  # Ray's, to the end of the remote function; None when that is known
    started: bool = False
    forced_at: float | None = None
    arrived: IO[bytes] | None = None  # what came back so far


class RayEngine:
    """Tasks on the nodes of a Ray cluster, or on this machine through a Ray of its own.

    address: "local" starts a Ray on this machine and ends it at close; "auto" joins the cluster that this machine
    belongs to, "ray://host:10001" one from outside. A Ray that this process is connected to already is used as it is.
    jobs: tasks at a time; None: as many as the cluster carries now. threads: CPU threads of each.
    gpu_share: GPUs of each task; 0.25 puts four on a card. 0: Ray hides all GPUs from the task.
    preload: modules that tasks will need. code: files and folders of authors (ray_code.files_of), sent
    to the nodes of a cluster. shared: whether all nodes see the workspaces of tasks; None: each worker finds out.

    A worker or a node that is lost ends its tasks as a kill does, with -9; whether to try again is the caller's
    business. Raises IanvsError where Ray is missing, can't be reached, or has too small nodes.
    """

    def __init__(
        self,
        address: str | None = "local",
        *,
        jobs: int | None = None,
        threads: int = 1,
        gpu_share: float = 0.0,
        preload: Iterable[str] = (),
        code: Iterable[Path] = (),
        shared: bool | None = None,
        **options: Any,
    ) -> None:
        for name in options:
            known = ("address", "gpu_share", "shared")
            raise IanvsError(f"engine ray has no option '{name}'.{closest(name, known)} It takes: {', '.join(known)}.")
        address = address or "local"
        self._threads, self._preload, self._shared = threads, tuple(preload), shared
        travels = address != "local" or shared is False
        # A Ray of our own offers the CPUs for as many jobs as are asked for: as locally, that is the user's to decide.
        self._connection = Connection(address, (jobs or 1) * threads, code if travels else None)
        self._ray = ray = self._connection.ray
        try:
            self.slots = jobs or capacity(ray.nodes(), threads, gpu_share)
            mailbox = ray.remote(num_cpus=0, max_concurrency=10_000)(make_mailbox(_IN_TRANSIT))
            self._mailbox = mailbox.options(scheduling_strategy=self._connection.here()).remote()
            self._take = self._mailbox.take.remote(0, _LONG_POLL)
        except BaseException:
            self._connection.close()
            raise
        # Ray may use a worker again: it is only the host, every task is a new process below it.
        case = ray.remote(max_calls=0, max_retries=0, num_cpus=threads, num_gpus=gpu_share)(make_entry())
        self._call = case.options(scheduling_strategy="SPREAD")
        self._serials = itertools.count(1)
        self._attempts: dict[int, _Attempt] = {}
        self._found: list[Event] = []
        self._seen = 0  # number of the last message
        self._token = os.urandom(8).hex()
        self._markers: dict[Path, Path] = {}
        self._away = shared is False  # whether some worker does not see the workspace
        self._nodes: set[str] = set()  # those that keep a view of their own
        self._constant: dict[tuple[Path, tuple[str, ...]], list[Any]] = {}

    # --- the four things that an engine does --------------------------------------------------------------------------

    def submit(self, task: Task) -> None:
        travel = travel_of(task)
        if travel is not None and self._shared is None and travel.workspace not in self._markers:
            self._markers[travel.workspace] = mark(travel.workspace, self._token)
        self._start(next(self._serials), task, travel)

    def events(self, timeout: float) -> list[Event]:
        deadline = time.monotonic() + timeout
        while not self._found:
            self._force()
            running = {attempt.reference: serial for serial, attempt in self._attempts.items() if attempt.reference}
            left = max(0.0, min(deadline - time.monotonic(), 1.0))
            ready, _ = self._ray.wait([self._take, *running], timeout=left)
            if self._take in ready:
                self._read_mail()
            elif ready:
                self._returned(running[ready[0]])
            elif time.monotonic() >= deadline:
                break
        found, self._found = self._found, []
        return found

    def cancel(self, key: str, *, force: bool = False) -> None:
        for serial, attempt in self._attempts.items():
            if attempt.task.key == key:
                self._mailbox.order.remote(serial, "kill" if force else "stop")
                if force and attempt.forced_at is None:
                    attempt.forced_at = time.monotonic()
                    if not attempt.started and attempt.reference is not None:
                        self._ray.cancel(attempt.reference)  # out of Ray's queue, or an interrupt to its host

    def close(self) -> None:
        try:
            deadline = time.monotonic() + 2 * _FORCE_SECONDS
            for key in {attempt.task.key for attempt in self._attempts.values()}:
                self.cancel(key, force=True)
            while self._attempts and time.monotonic() < deadline:
                self.events(0.5)
            self._sweep()
            self._ray.kill(self._mailbox)
        except (self._ray.exceptions.RayError, IanvsError):
            pass  # the cluster is gone, and with it all that ran there
        finally:
            for marker in self._markers.values():
                marker.unlink(missing_ok=True)
            self._connection.close()

    # --- attempts -----------------------------------------------------------------------------------------------------

    def _start(self, serial: int, task: Task, travel: Travel | None) -> None:
        cargo = self._cargo(travel) if travel is not None and self._away else []
        connection = self._connection
        assignment = Assignment(
            serial=serial,
            task=task,
            threads=self._threads,
            preload=self._preload,
            token=self._token,
            shared=self._shared,
            travel=travel,
            cargo_sent=bool(cargo),
            code=connection.code,
        )
        given = (connection.paths, os.fspath(Path.cwd()), connection.code is not None, pickle.dumps(assignment), cargo)
        self._attempts[serial] = _Attempt(task, travel, self._call.remote(*given, self._mailbox))

    def _read_mail(self) -> None:
        try:
            messages = self._ray.get(self._take)
        except self._ray.exceptions.RayError as error:
            raise IanvsError(f"the connection to Ray is lost: {said(error)}.") from error
        for number, serial, kind, payload in messages:
            attempt = self._attempts.get(serial)
            if attempt is not None and number > self._seen:
                self._follow(serial, attempt, kind, payload)
            self._seen = max(self._seen, number)
        self._take = self._mailbox.take.remote(self._seen, _LONG_POLL)

    def _follow(self, serial: int, attempt: _Attempt, kind: Any, payload: Any) -> None:
        if kind == "block":
            attempt.arrived = attempt.arrived or tempfile.TemporaryFile()  # noqa: SIM115 - until the last block is there
            attempt.arrived.write(payload)
        elif kind == "unshared":
            self._away = True
            self._start(serial, attempt.task, attempt.travel)
        elif kind == "ended":
            code, node = payload
            if node is not None:
                self._nodes.add(node)
            self._end(serial, self._store(attempt, code))
        else:
            attempt.started |= kind == "started"
            self._found.append(Event(attempt.task.key, kind, payload))

    def _end(self, serial: int, code: int) -> None:
        attempt = self._attempts.pop(serial)
        if attempt.arrived is not None:
            attempt.arrived.close()
        self._found.append(Event(attempt.task.key, "ended", code))

    def _returned(self, serial: int) -> None:
        """The remote function is over: either its last message is under way to us, or it did not get that far."""
        attempt, exceptions = self._attempts[serial], self._ray.exceptions
        try:
            self._ray.get(attempt.reference)
            attempt.reference = None
        except exceptions.RayError as error:
            broken = (exceptions.RayTaskError, exceptions.RuntimeEnvSetupError, exceptions.TaskUnschedulableError)
            if attempt.forced_at is None and isinstance(error, broken):
                _note(attempt.task, f"Ray could not run this: {said(error)}")
                self._end(serial, 1)
            else:
                _note(attempt.task, f"lost by Ray: {said(error)}" if attempt.forced_at is None else "ended by force")
                self._end(serial, -signal.SIGKILL)

    def _force(self) -> None:
        """End the workers of tasks that were to be ended and have not."""
        for attempt in self._attempts.values():
            overdue = attempt.forced_at is not None and time.monotonic() > attempt.forced_at + _FORCE_SECONDS
            if overdue and attempt.reference is not None:
                attempt.forced_at = time.monotonic()
                self._ray.cancel(attempt.reference, force=True)

    # --- nodes that don't share the workspace -------------------------------------------------------------------------

    def _cargo(self, travel: Travel) -> list[list[Any]]:
        """References to the blocks of what a worker needs that does not see the workspace: constant, and its own."""
        key = (travel.workspace, travel.constant)
        if key not in self._constant:
            self._constant[key] = self._put(*key)
        return [self._constant[key], self._put(travel.workspace, travel.own)]

    def _put(self, root: Path, names: tuple[str, ...]) -> list[Any]:
        with tempfile.TemporaryFile() as stream:
            return [self._ray.put(block) for block in blocks(stream)] if pack(root, names, stream) else []

    def _store(self, attempt: _Attempt, code: int) -> int:
        """Put what came back into the workspace; the exit code that the task ends with."""
        if attempt.travel is None or attempt.arrived is None:
            return code
        attempt.arrived.seek(0)
        try:
            if not store_arrived(attempt.task, attempt.travel, attempt.arrived, _FORCE_SECONDS):
                _note(attempt.task, "another ianvs is at work on this case; its results stand.")
        except OSError as error:
            _note(attempt.task, f"the results came back, but can't be stored: {error}")
            return code or EXIT_STORAGE
        return code

    def _sweep(self) -> None:
        """Have nodes remove their views of the workspace."""
        alive = {node["NodeID"] for node in self._ray.nodes() if node["Alive"]}
        remove = self._ray.remote(num_cpus=0)(make_sweeper())
        folder = os.fspath(node_folder(self._token))
        swept = [
            remove.options(scheduling_strategy=self._connection.on_node(node)).remote(folder)
            for node in self._nodes & alive
        ]
        if swept:
            self._ray.wait(swept, num_returns=len(swept), timeout=_FORCE_SECONDS)


def _note(task: Task, text: str) -> None:
    """Leave a line in the task's log."""
    if task.log is not None:
        with contextlib.suppress(OSError):
            task.log.parent.mkdir(parents=True, exist_ok=True)
            with task.log.open("a") as log:
                log.write(text.strip() + "\n")
