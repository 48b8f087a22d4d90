"""The local engine where there is Linux: a process per task, forked by the forkserver, under this supervisor."""

import contextlib
import os
import pickle
import select
import signal
import socket
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence

from ianvs.base.errors import IanvsError
from ianvs.processes.engines.engine import Engine, Event, Task, Workload, start_python, thread_limits
from ianvs.processes.engines.forked import MANY_TASKS, MESSAGE_LIMIT

_START_SECONDS = 120.0


def _boot(channel: socket.socket, environment: Mapping[str, str], preload: Sequence[str]) -> subprocess.Popen[bytes]:
    return start_python(
        "ianvs.processes.engines.forkserver:boot",
        *(str(channel.fileno()), str(os.getpid()), *preload),
        pass_fds=[channel.fileno()],
        env=environment,
    )


class ForkEngine(Engine):
    """See forkserver.py for how tasks come to life and end.

    A task may kill the forkserver, its parent, and with it all that run beside it. Then another one is started, on
    which each of them runs alone: who is alone when it happens again is who does it, and ends killed; the others go on.
    """

    def __init__(self, workload: Workload) -> None:
        self.slots, self.gpus = workload.slots, workload.gpus
        self._workload = workload
        self._running: dict[str, Task] = {}  # on the forkserver
        self._pids: dict[str, int] = {}
        self._suspects: deque[Task] = deque()  # to be run one at a time, before any other
        self._waiting: deque[Task] = deque()  # for the suspects to end
        self._suspecting = self._gone = False
        self._events: list[Event] = []
        self._open()

    def _open(self) -> None:
        try:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except (AttributeError, OSError) as error:
            raise IanvsError(
                "`start: fork` of the local engine needs Linux (packets between processes). Leave `start` out, or say "
                "`engine: {name: local, start: spawn}`.",
                code="invalid-engine",
            ) from error
        self._channel = ours
        environment = {**os.environ, **thread_limits(self._workload.threads)}
        many = (self._workload.tasks or 0) >= MANY_TASKS
        preload = (*self._workload.preload, *(["ianvs.processes.engines.forked:gather_pages"] if many else []))
        self._process = _boot(theirs, environment, preload)
        theirs.close()
        self._ready = self._gone = False

    def submit(self, task: Task) -> None:
        if self._suspecting:
            self._waiting.append(task)
        else:
            self._start(task)

    def _start(self, task: Task) -> None:
        order = pickle.dumps(("start", task))
        if len(order) > MESSAGE_LIMIT:
            raise IanvsError(
                f"task {task.key} can't be started: its argument has {len(order):,} bytes, and a message to the "
                f"process that starts it may have {MESSAGE_LIMIT:,}. Write it to a file, and pass the file's path.",
                code="invalid-engine",
            )
        self._running[task.key] = task
        try:
            self._channel.send(order)
        except OSError:
            self._gone = True

    def events(self, timeout: float) -> list[Event]:
        began = time.monotonic()
        while not self._events:
            if self._gone:
                self._begin_anew()
                continue
            left = began + (timeout if self._ready else max(timeout, _START_SECONDS)) - time.monotonic()
            ready, _, _ = select.select([self._channel], [], [], max(0.0, left))
            if not ready:
                break
            self._receive()
        events, self._events = self._events, []
        return events

    def _receive(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while not self._gone:
                try:
                    message = self._channel.recv(1 << 20, socket.MSG_DONTWAIT)
                except ConnectionError:
                    message = b""
                if not message:
                    if not self._ready:
                        raise IanvsError(
                            "the process that starts test cases could not be started; its error is above.",
                            code="invalid-engine",
                        )
                    self._gone = True
                    break
                event: object = None
                with contextlib.suppress(Exception):  # a task may write there what is no event
                    event = pickle.loads(message)
                if not isinstance(event, Event):
                    continue
                self._ready = True
                if event.key:
                    self._follow(event)

    def _follow(self, event: Event) -> None:
        self._events.append(event)
        if event.kind == "started":
            self._pids[event.key] = event.payload
        elif event.kind == "ended":
            del self._running[event.key]
            self._pids.pop(event.key, None)
            self._go_on()

    def _begin_anew(self) -> None:
        """The forkserver is gone, and with it every task."""
        for pid in self._pids.values():
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)  # what a task had started
        self.close()
        hit, self._running, self._pids = [*self._running.values()], {}, {}
        if len(hit) == 1:
            self._events.append(Event(hit[0].key, "ended", -signal.SIGKILL))
        else:
            self._suspects.extend(hit)
            self._events += [Event(task.key, "restarting") for task in hit]
        self._open()
        self._go_on()

    def _go_on(self) -> None:
        """Start the next suspect, or, after the last one, all that wait."""
        if self._running or not (self._suspects or self._suspecting):
            return
        self._suspecting = bool(self._suspects)
        if self._suspects:
            self._start(self._suspects.popleft())
            return
        while self._waiting:
            self._start(self._waiting.popleft())

    def cancel(self, key: str, *, force: bool = False) -> None:
        number = signal.SIGKILL if force else signal.SIGTERM
        for queue in (self._suspects, self._waiting):
            for task in [task for task in queue if task.key == key]:
                queue.remove(task)
                self._events.append(Event(key, "ended", -number))
        with contextlib.suppress(OSError):
            self._channel.send(pickle.dumps(("signal", key, number)))

    def close(self) -> None:
        self._channel.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
