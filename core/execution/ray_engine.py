"""The engine of a cluster: every task is a call of one remote function of Ray; this is the supervisor's side."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from core.errors import IanvsError, closest
from core.execution.engine import Event, Task
from core.execution.ray_code import gather_code
from core.execution.ray_storage import Travel, mark, pack, travel_of, unpack
from core.execution.ray_worker import Assignment, make_entry, make_mailbox, node_folder, pieces
from core.execution.request import CaseRequest
from core.store import CaseStore

__all__ = ["RayEngine"]

_LONG_POLL = 20.0  # seconds
_FORCE_SECONDS = 10.0  # after which a task that was to be ended is ended together with its worker
_IN_TRANSIT = 64 << 20  # bytes of results that wait in the mailbox
_OBJECT_STORE = 256 << 20  # bytes; a Ray of our own holds nothing but such pieces


@dataclass
class _Attempt:
    """One try at a task."""

    task: Task
    travel: Travel | None
    reference: Any  # Ray's, to what the remote function returns
    started: bool = False
    forced_at: float | None = None
    arrived: IO[bytes] | None = None  # what came back so far


class RayEngine:
    """Tasks on the nodes of a Ray cluster, or on this machine through a Ray of its own.

    address: "local" starts a Ray on this machine and ends it at close; "auto" joins the cluster that this machine
    belongs to, "ray://host:10001" one from outside. A Ray that this process is connected to already is used as it is.
    jobs: tasks at a time; None: as many as the cluster carries now. threads: CPU threads of each.
    gpu_share: GPUs of each task; 0.25 puts four on a card. 0: Ray hides all GPUs from the task.
    preload: modules that tasks will need. code: files and folders of authors (core.execution.ray_code.files_of), sent
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
        self._paths = list(sys.path)
        self._ray = ray = _import_ray()
        private = str(Path(ray.__file__).parent) + os.sep
        self._paths = [path for path in self._paths if not path.startswith(private)]
        self._threads, self._gpu_share, self._preload, self._shared = threads, gpu_share, tuple(preload), shared
        self._token = os.urandom(8).hex()
        self._home: str | None = None  # folder of a Ray of our own
        self._code: dict[Path, str] | None = None
        self._ours = not ray.is_initialized()
        if self._ours:
            self._connect(address or "local", jobs, tuple(code))
        try:
            self.slots = jobs or _capacity(ray.nodes(), threads, gpu_share)
            if not self.slots:
                raise IanvsError(_too_small(threads, gpu_share))
            mailbox = ray.remote(num_cpus=0, max_concurrency=10_000)(make_mailbox(_IN_TRANSIT))
            here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                ray.get_runtime_context().get_node_id(), soft=False
            )
            self._mailbox = mailbox.options(scheduling_strategy=here).remote()
        except BaseException:
            self._disconnect()
            raise
        self._call = ray.remote(max_calls=1, max_retries=0, num_cpus=threads, num_gpus=gpu_share)(make_entry()).options(
            scheduling_strategy="SPREAD"
        )
        self._serials = itertools.count(1)
        self._attempts: dict[int, _Attempt] = {}
        self._found: list[Event] = []
        self._seen = 0
        self._take = self._mailbox.take.remote(0, _LONG_POLL)
        self._away = shared is False  # whether some worker does not see the workspace
        self._nodes: set[str] = set()  # those that keep a view of their own
        self._markers: dict[Path, Path] = {}
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
            references = {attempt.reference: serial for serial, attempt in self._attempts.items()}
            left = max(0.0, min(deadline - time.monotonic(), 1.0))
            ready, _ = self._ray.wait([self._take, *references], timeout=left)
            if self._take in ready:
                self._read_mail()
            elif ready:
                self._returned(references[ready[0]])
            if not ready and time.monotonic() >= deadline:
                break
        found, self._found = self._found, []
        return found

    def cancel(self, key: str, *, force: bool = False) -> None:
        for serial, attempt in self._attempts.items():
            if attempt.task.key == key:
                self._mailbox.order.remote(serial, "kill" if force else "stop")
                if force and attempt.forced_at is None:
                    waits = _FORCE_SECONDS if attempt.started else 0.0  # one that waits in Ray's queue has no host yet
                    attempt.forced_at = time.monotonic() + waits

    def close(self) -> None:
        try:
            deadline = time.monotonic() + _FORCE_SECONDS
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
            self._disconnect()

    # --- attempts -----------------------------------------------------------------------------------------------------

    def _start(self, serial: int, task: Task, travel: Travel | None) -> None:
        cargo = self._cargo(travel) if travel is not None and self._away else []
        assignment = Assignment(
            serial,
            task,
            self._threads,
            self._preload,
            self._token,
            self._shared,
            travel,
            cargo_sent=bool(cargo),
            code=self._code,
        )
        reference = self._call.remote(
            self._paths, os.fspath(Path.cwd()), self._code is not None, pickle.dumps(assignment), cargo, self._mailbox
        )
        self._attempts[serial] = _Attempt(task, travel, reference)

    def _cargo(self, travel: Travel) -> list[list[Any]]:
        """References to the pieces of what a worker needs that does not see the workspace: constant, and its own."""
        key = (travel.workspace, travel.constant)
        if key not in self._constant:
            self._constant[key] = self._put(travel.workspace, travel.constant)
        return [self._constant[key], self._put(travel.workspace, travel.own)]

    def _put(self, root: Path, names: tuple[str, ...]) -> list[Any]:
        with tempfile.TemporaryFile() as stream:
            return [self._ray.put(piece) for piece in pieces(stream)] if pack(root, names, stream) else []

    def _read_mail(self) -> None:
        try:
            messages = self._ray.get(self._take)
        except self._ray.exceptions.RayError as error:
            raise IanvsError(f"the connection to Ray is lost: {_said(error)}") from error
        for number, serial, kind, payload in messages:
            attempt = self._attempts.get(serial)
            if attempt is not None and number > self._seen:
                self._follow(serial, attempt, kind, payload)
            self._seen = max(self._seen, number)
        self._take = self._mailbox.take.remote(self._seen, _LONG_POLL)

    def _follow(self, serial: int, attempt: _Attempt, kind: Any, payload: Any) -> None:
        if kind == "piece":
            attempt.arrived = attempt.arrived or tempfile.TemporaryFile()  # noqa: SIM115 - until the last piece is there
            attempt.arrived.write(payload)
        elif kind == "unshared":
            self._away = True
            self._start(serial, attempt.task, attempt.travel)
        elif kind == "ended":
            code, node = payload
            if node is not None:
                self._nodes.add(node)
            if attempt.arrived is not None:
                code = self._store(attempt, code)
            self._end(serial, code)
        else:
            attempt.started |= kind == "started"
            self._found.append(Event(attempt.task.key, kind, payload))

    def _end(self, serial: int, code: int) -> None:
        attempt = self._attempts.pop(serial)
        if attempt.arrived is not None:
            attempt.arrived.close()
        self._found.append(Event(attempt.task.key, "ended", code))

    def _returned(self, serial: int) -> None:
        """The remote function is over: either its last message is under way to us, or it did not get there."""
        attempt, exceptions = self._attempts[serial], self._ray.exceptions
        try:
            self._ray.get(attempt.reference)
        except (exceptions.RayTaskError, exceptions.RuntimeEnvSetupError, exceptions.TaskUnschedulableError) as error:
            _note(attempt.task, f"Ray could not run this: {_said(error)}")
            self._end(serial, 1)
        except exceptions.RayError as error:
            _note(attempt.task, f"lost by Ray: {_said(error)}")
            self._end(serial, -signal.SIGKILL)
        else:
            attempt.reference = self._take  # nothing more to wait for there

    def _force(self) -> None:
        for attempt in self._attempts.values():
            if attempt.forced_at is not None and time.monotonic() >= attempt.forced_at:
                attempt.forced_at = None
                self._ray.cancel(attempt.reference, force=True)

    # --- results from nodes that don't share the workspace ------------------------------------------------------------

    def _store(self, attempt: _Attempt, code: int) -> int:
        """Put what came back into the workspace; the exit code that the task ends with."""
        from filelock import Timeout

        travel, argument = attempt.travel, attempt.task.argument
        assert travel is not None
        assert attempt.arrived is not None
        attempt.arrived.seek(0)
        try:
            if isinstance(argument, CaseRequest):
                store = CaseStore(travel.workspace)
                with store.lock(argument.case.id).acquire(timeout=_FORCE_SECONDS):
                    if store.status(argument.case.id) != "finished":
                        unpack(attempt.arrived, travel.workspace)
                        store.begin(argument.case, argument.identity)
            else:
                unpack(attempt.arrived, travel.workspace)
        except Timeout:
            _note(attempt.task, "another ianvs is at work on this case; its results stand.")
        except OSError as error:
            _note(attempt.task, f"the results came back, but can't be stored: {error}")
            return code or 1
        return code

    def _sweep(self) -> None:
        """Have nodes remove their views of the workspace."""
        folder = os.fspath(node_folder(self._token))
        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        remove = self._ray.remote(num_cpus=0)(shutil.rmtree)
        alive = {node["NodeID"] for node in self._ray.nodes() if node["Alive"]}
        swept = [
            remove.options(scheduling_strategy=strategy(node, soft=False)).remote(folder, ignore_errors=True)
            for node in self._nodes & alive
        ]
        if swept:
            self._ray.wait(swept, num_returns=len(swept), timeout=_FORCE_SECONDS)

    # --- Ray ----------------------------------------------------------------------------------------------------------

    def _connect(self, address: str, jobs: int | None, code: tuple[Path, ...]) -> None:
        options: dict[str, Any] = {"address": address, "log_to_driver": False, "logging_level": "ERROR"}
        if address == "local":
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            self._home = tempfile.mkdtemp(prefix="ianvs-ray-")
            options |= {
                "include_dashboard": False,
                "num_cpus": max(cores, (jobs or 1) * self._threads),  # `jobs` is the user's to decide, as it is locally
                "object_store_memory": _OBJECT_STORE,
                "_temp_dir": self._home,
            }
        with tempfile.TemporaryDirectory(prefix="ianvs-code-") as folder:
            if address != "local" or self._shared is False:
                self._code = gather_code(code, Path(folder))
                options["runtime_env"] = {"working_dir": folder}
            try:
                self._ray.init(**options)
            except (ConnectionError, RuntimeError, ValueError, OSError) as error:
                self._disconnect()
                raise IanvsError(
                    f"can't connect to Ray at '{address}': {_said(error)}. `local` starts one on this machine, `auto` "
                    "joins the one that `ray start` has started here, `ray://host:10001` reaches a cluster from outside."
                ) from error

    def _disconnect(self) -> None:
        if self._ours:
            self._ray.shutdown()
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None


def _import_ray() -> Any:
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise IanvsError(f"engine ray needs Ray ({error}). Install it: pip install 'ianvs[ray]'") from error
    return ray


def _capacity(nodes: list[dict[str, Any]], threads: int, gpu_share: float) -> int:
    """How many tasks fit on the nodes that are there now."""
    total = 0
    for node in nodes:
        if node["Alive"]:
            fits = int(node["Resources"].get("CPU", 0)) // threads
            if gpu_share > 0:
                cards = int(node["Resources"].get("GPU", 0))
                on_cards = cards * int(1 / gpu_share + 1e-9) if gpu_share <= 1 else int(cards / gpu_share)
                fits = min(fits, on_cards)
            total += fits
    return total


def _too_small(threads: int, gpu_share: float) -> str:
    wanted = f"{threads} CPU{'s' if threads > 1 else ''}" + (f" and {gpu_share:g} GPU" if gpu_share else "")
    return f"no node of the Ray cluster has {wanted} for a case. Lower `threads` or `gpu_share`."


def _note(task: Task, text: str) -> None:
    """Leave a line in the task's log."""
    if task.log is not None:
        with contextlib.suppress(OSError):
            task.log.parent.mkdir(parents=True, exist_ok=True)
            with task.log.open("a") as log:
                log.write(text.strip() + "\n")


def _said(error: BaseException) -> str:
    cause = getattr(error, "cause", None) or error
    return str(cause).strip() or type(cause).__name__
