"""The engine of a single machine: a process per task, forked by the forkserver, under this supervisor."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import time

from ianvs.engines.engine import Engine, Event, Task, Workload, usable_cores
from ianvs.errors import IanvsError

__all__ = ["LocalEngine"]

_START_SECONDS = 120.0
# The tasks see the same modules as the supervisor does, and the caller's main script is not run again.
_BOOT = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from ianvs.engines.forkserver import main
main(int(sys.argv[2]), sys.argv[3:])
"""


class LocalEngine(Engine):
    """See ianvs.engines.forkserver for how tasks come to life and end. Without `jobs`, as many as the cores carry."""

    def __init__(self, workload: Workload) -> None:
        jobs = workload.jobs or max(1, usable_cores() // workload.threads)
        self.slots = min(jobs, workload.tasks or jobs)
        self.gpus = workload.gpus
        self._running: set[str] = set()
        self._lost: list[str] = []
        try:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except (AttributeError, OSError) as error:
            raise IanvsError(
                "the local engine needs Linux (packets between processes). Use `--engine inline`, or a Linux machine."
            ) from error
        self._channel = ours
        environment = dict(os.environ)
        # Thread pools of numerical libraries read these when they are loaded, before any code of ours runs.
        for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
            environment[variable] = str(workload.threads)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, json.dumps(sys.path), str(theirs.fileno()), *workload.preload],
            pass_fds=[theirs.fileno()],
            env=environment,
            start_new_session=True,  # a Ctrl-C in the terminal reaches the supervisor alone
        )
        theirs.close()
        self._ready = False

    def submit(self, task: Task) -> None:
        self._running.add(task.key)
        try:
            self._channel.send(pickle.dumps(("start", task)))
        except OSError:
            self._lost.append(task.key)

    def events(self, timeout: float) -> list[Event]:
        deadline = time.monotonic() + (timeout if self._ready else max(timeout, _START_SECONDS))
        found: list[Event] = []
        while not found:
            if self._lost:
                return self._all_lost()
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._channel], [], [], max(0.0, left))
            if not ready:
                break
            found = [event for event in self._receive() if event.key]
        return found

    def _receive(self) -> list[Event]:
        """Every event that waits in the channel."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                try:
                    message = self._channel.recv(1 << 20, socket.MSG_DONTWAIT)
                except ConnectionError:
                    message = b""
                if not message:
                    if not self._ready:
                        raise IanvsError("the process that starts test cases could not be started; its error is above.")
                    self._lost.extend(self._running)
                    break
                event: Event = pickle.loads(message)
                self._ready = True
                if event.kind == "ended":
                    self._running.discard(event.key)
                found.append(event)
        return found

    def _all_lost(self) -> list[Event]:
        """The forkserver is gone, and with it every task: each is told to have been killed."""
        found = [Event(key, "ended", -signal.SIGKILL) for key in dict.fromkeys(self._lost)]
        self._lost.clear()
        self._running.clear()
        return found

    def cancel(self, key: str, *, force: bool = False) -> None:
        with contextlib.suppress(OSError):
            self._channel.send(pickle.dumps(("signal", key, signal.SIGKILL if force else signal.SIGTERM)))

    def close(self) -> None:
        self._channel.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
