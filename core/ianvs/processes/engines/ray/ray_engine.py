"""The Ray engine, supervisor side. Every task runs below an actor of Ray (ray_host.py)."""

import contextlib
import os
import shutil
import signal
import tarfile
import tempfile
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from filelock import FileLock, Timeout

from ianvs.base.errors import IanvsError
from ianvs.base.secrets import hide_secrets
from ianvs.config.spec import ResourcesSpec
from ianvs.processes.engines.engine import EXIT_STORAGE, Engine, Event, Files, Mailbox, Task, Workload
from ianvs.processes.engines.ray.ray_connection import capacity, connected, import_ray, reason_of
from ianvs.processes.engines.ray.ray_files import pack, unpack

_TICK = 0.1  # seconds until a newly submitted task is noticed
_LOOK_SECONDS = 2.0  # seconds between two checks of Ray's missing resources
_FORCE_SECONDS = 10.0  # seconds until a cancelled task is ended together with its worker


@dataclass
class _Attempt:
    """One attempt at a task.

    calls: generator of the calls to its host. answer: Ray's reference to the pending reply.
    """

    task: Task
    host: Any
    calls: Generator[Any, Any, int] = field(init=False)
    answer: Any = None
    last_checked: float = field(default_factory=time.monotonic)  # when missing resources were checked last
    new: bool = True  # until its host has replied once
    reported_lacks: list[str] = field(default_factory=list)  # the missing resources that were reported last
    started: bool = False
    stopped: bool = False
    forced_at: float | None = None


class RayEngine(Engine):
    """Tasks on the nodes of a Ray cluster, or on this machine through a Ray started here (docs/clusters.md).

    An existing connection of this process is used. If a worker or a node fails, its tasks end with -9, as lost. Raises
    IanvsError if Ray is missing, can't be reached, or has too small nodes.
    """

    elsewhere = True

    def __init__(
        self,
        workload: Workload,
        *,
        address: str = "local",
        gpu_share: float | None = None,
        shared: bool | None = None,
    ) -> None:
        if gpu_share is None:
            gpu_share = 1 / workload.cases_per_gpu if workload.device == "cuda" else 0.0
        self._ray = ray = import_ray()
        from ianvs.processes.engines.ray.ray_host import RayHost, module_paths  # can't be imported without Ray

        # A Ray started here offers CPUs for the requested number of jobs: as locally, the user decides.
        cores = (workload.jobs or 1) * workload.threads
        travels = address != "local" or shared is False
        with contextlib.ExitStack() as opening:
            code = opening.enter_context(connected(ray, address, cores, workload.code if travels else None))
            needs = {kind: _ray_resources(kind, workload.threads, gpu_share) for kind in workload.resources}
            # With `jobs`, nodes may be added later; tasks without room are queued until then.
            fits = (capacity(ray.nodes(), need["num_cpus"], need["num_gpus"]) for need in needs.values())
            self.slots = workload.jobs or max(fits)
            self._cleanup = opening.pop_all()
        actor = ray.remote(max_concurrency=2, scheduling_strategy="SPREAD")(RayHost)
        self._hosts = {kind: actor.options(**need) for kind, need in needs.items()}
        self._needs = needs
        self._shared = shared
        self._token = os.urandom(8).hex()
        self._host_arguments = (workload, module_paths(), Path.cwd(), code, self._token)
        # Hosts whose task has succeeded: they have imported what the next one needs.
        self._idle: dict[ResourcesSpec | None, list[Any]] = {kind: [] for kind in workload.resources}
        self._attempts: list[_Attempt] = []
        self._mailbox = Mailbox()
        self._workspace_copies: dict[str, Path] = {}  # by node
        self._packed_inputs: dict[tuple[Path, ...], list[Any]] = {}
        self._guard, self._closed = threading.RLock(), False
        self._reply_thread = threading.Thread(target=self._handle_replies, name="ray", daemon=True)
        self._reply_thread.start()

    def submit(self, task: Task) -> None:
        with self._guard:
            idle = self._idle[task.resources]
            attempt = _Attempt(task, idle.pop() if idle else self._hosts[task.resources].remote(*self._host_arguments))
            attempt.calls = self._run_attempt(attempt)
            attempt.answer = next(attempt.calls)
            self._attempts.append(attempt)

    def events(self, timeout: float) -> list[Event]:
        with self._guard:
            for idle in self._idle.values():  # all tasks that waited for a host have been submitted
                while idle:
                    self._ray.kill(idle.pop())
        return self._mailbox.take(timeout)

    def cancel(self, key: str, *, force: bool = False) -> None:
        with self._guard:
            for attempt in self._attempts:
                if attempt.task.key == key:
                    attempt.stopped = True
                    if force and attempt.forced_at is None:
                        attempt.forced_at = time.monotonic()
                    self._forward_cancel(attempt)

    def close(self) -> None:
        deadline = time.monotonic() + 2 * _FORCE_SECONDS
        with contextlib.suppress(Exception):  # any exception, if the cluster has failed with all its tasks
            for attempt in self._attempts:
                self.cancel(attempt.task.key, force=True)
            while (self._attempts or any(self._idle.values())) and time.monotonic() < deadline:
                self.events(0.5)
            self._remove_workspace_copies()
        self._closed = True
        self._reply_thread.join()
        self._cleanup.close()

    def _handle_replies(self) -> None:
        """Handle replies of hosts. Runs in a thread."""
        while not self._closed:
            with self._guard:
                for attempt in self._attempts:  # cancelled tasks that have not ended
                    if attempt.forced_at is not None and time.monotonic() > attempt.forced_at + _FORCE_SECONDS:
                        self._ray.kill(attempt.host)
                answers = {attempt.answer: attempt for attempt in self._attempts}
            try:
                self._report_reasons()
                if not answers:
                    time.sleep(_TICK)
                    continue
                ready, _ = self._ray.wait(list(answers), timeout=_TICK)
                with self._guard:
                    for answer in ready:
                        self._advance(answers[answer])
            except Exception as error:
                self._mailbox.put(
                    IanvsError(f"the connection to Ray is lost: {reason_of(error)}.", code="unreachable-server")
                )
                return

    def _report_reasons(self) -> None:
        """Report missing resources of waiting tasks, at intervals."""
        now = time.monotonic()
        with self._guard:
            waiting = [a for a in self._attempts if a.new and now > a.last_checked + _LOOK_SECONDS]
        free = self._ray.available_resources() if waiting else {}
        for attempt in waiting:
            attempt.last_checked = now
            names = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
            wanted = {names[key]: value for key, value in self._needs[attempt.task.resources].items() if value}
            lacks = [f"{value:g} {name} wanted, {free.get(name, 0):g} free" for name, value in wanted.items()]
            if any(free.get(name, 0) < value for name, value in wanted.items()) and attempt.reported_lacks != lacks:
                attempt.reported_lacks = lacks
                self._mailbox.put(Event(attempt.task.key, "queued", f"Ray: {', '.join(lacks)}"))

    # --- attempts -----------------------------------------------------------------------------------------------------

    def _run_attempt(self, attempt: _Attempt) -> Generator[Any, Any, int]:
        """Run a task on its host: yields calls, is sent their replies, and returns the exit code."""
        task, host, files = attempt.task, attempt.host, attempt.task.files
        shares_workspace = files is not None and self._shared is not False
        if files is not None and self._shared is None:
            shares_workspace = yield host.can_read.remote(self._marker(files.root))
            attempt.new = False
        packed_files = (
            () if files is None or shares_workspace else (self._reads(files), self._put(files.root, files.writes))
        )
        node, workspace_copy = yield host.start.remote(task, shares_workspace, *packed_files)
        attempt.started, attempt.new = True, False
        self._forward_cancel(attempt)
        code: int | None = None
        while code is None:
            for event in (yield host.events.remote()):
                if event.kind == "ended":
                    code = event.payload
                else:
                    self._mailbox.put(event)
        if files is None or shares_workspace:
            return code
        self._workspace_copies[node] = workspace_copy
        attempt.forced_at = None  # the task has ended; its results are transferred now
        with tempfile.TemporaryFile() as arrived:
            while part := (yield host.next_part.remote()):
                arrived.write(part)
            return _store(task, files, arrived, code)

    def _advance(self, attempt: _Attempt) -> None:
        """Handle a reply of the host, or its end."""
        exceptions = self._ray.exceptions
        try:
            attempt.answer = attempt.calls.send(self._ray.get(attempt.answer))
            return
        except StopIteration as end:
            code: int = end.value
        except exceptions.RayError as error:
            broken = (exceptions.RayTaskError, exceptions.RuntimeEnvSetupError, exceptions.ActorUnschedulableError)
            code, why = -signal.SIGKILL, f"lost by Ray: {reason_of(error)}"
            if attempt.forced_at is not None:
                why = "ended by force"
            elif isinstance(error, exceptions.OutOfMemoryError):  # the task caused it
                why = f"Ray ended it: {reason_of(error)}"
            elif isinstance(error, broken) or getattr(error, "actor_init_failed", False):
                code, why = 1, f"Ray could not run this: {reason_of(error)}"
            else:
                self._mailbox.put(Event(attempt.task.key, "lost", "Ray has lost its worker or its node"))
            _append_to_log(attempt.task, why)
        self._attempts.remove(attempt)
        if code >= 0:
            self._idle[attempt.task.resources].append(attempt.host)
        else:
            self._ray.kill(attempt.host)
        self._mailbox.put(Event(attempt.task.key, "ended", code))

    def _forward_cancel(self, attempt: _Attempt) -> None:
        """Forward `cancel` to the host. A host that has not started yet is cancelled at once."""
        if attempt.started and attempt.stopped:
            attempt.host.cancel.remote(attempt.task.key, attempt.forced_at is not None)
        elif attempt.forced_at is not None:
            self._ray.kill(attempt.host)

    # --- nodes that don't share the workspace -------------------------------------------------------------------------

    def _marker(self, workspace: Path) -> Path:
        """Return a file by which nodes test whether they share the workspace."""
        marker = workspace / f".shared-{self._token}"
        if not marker.exists():
            workspace.mkdir(parents=True, exist_ok=True)
            marker.touch()
            self._cleanup.callback(marker.unlink, missing_ok=True)
        return marker

    def _reads(self, files: Files) -> list[Any]:
        if files.reads not in self._packed_inputs:
            self._packed_inputs[files.reads] = self._put(files.root, files.reads)
        return self._packed_inputs[files.reads]

    def _put(self, root: Path, paths: tuple[Path, ...]) -> list[Any]:
        return [self._ray.put(part) for part in pack(root, paths)]

    def _remove_workspace_copies(self) -> None:
        """Remove the nodes' copies of the workspace."""
        on_node = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        remove = self._ray.remote(num_cpus=0)(shutil.rmtree)
        removals = [
            remove.options(scheduling_strategy=on_node(node, soft=False)).remote(workspace_copy, ignore_errors=True)
            for node, workspace_copy in self._workspace_copies.items()
        ]
        if removals:
            self._ray.wait(removals, num_returns=len(removals), timeout=_FORCE_SECONDS)


def _ray_resources(wanted: ResourcesSpec | None, threads: int, gpu_share: float) -> dict[str, Any]:
    """Return Ray's options of a host for tasks with these resources."""
    if wanted is None:
        return {"num_cpus": threads, "num_gpus": gpu_share}
    memory = {} if wanted.memory is None else {"memory": wanted.memory}
    return {"num_cpus": wanted.cpus or threads, "num_gpus": wanted.gpus, **memory}


def _store(task: Task, files: Files, arrived: IO[bytes], code: int) -> int:
    """Unpack returned files into the workspace. Returns the exit code of the task."""
    if not arrived.tell():
        return code
    arrived.seek(0)
    try:
        with FileLock(files.lock, timeout=_FORCE_SECONDS) if files.lock else contextlib.nullcontext():
            unpack(arrived, files.root)
    except Timeout:
        _append_to_log(task, "another ianvs is at work on the same; its results stand.")
    except (OSError, tarfile.TarError) as error:
        _append_to_log(task, f"the results came back, but can't be stored: {error}")
        return code or EXIT_STORAGE
    return code


def _append_to_log(task: Task, text: str) -> None:
    if task.log is not None:
        with contextlib.suppress(OSError):
            task.log.parent.mkdir(parents=True, exist_ok=True)
            with task.log.open("a") as log:
                log.write(hide_secrets(text.strip(), others=task.secrets) + "\n")
