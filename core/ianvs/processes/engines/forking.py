"""The local engine on Linux: a process per task, forked by the forkserver, which this module supervises."""

import contextlib
import os
import pickle
import select
import signal
import socket
import subprocess
import time
from collections import deque

from ianvs.base.errors import IanvsError
from ianvs.processes.engines.engine import THREADS, Event, Task, Workload, python_command
from ianvs.processes.engines.forked import MANY_TASKS, MESSAGE_LIMIT

_START_SECONDS = 120.0


class ForkEngine:
    """Starts tasks on the forkserver (forkserver.py) and restarts it if necessary.

    A task may kill the forkserver and thereby all running tasks. The forkserver is then restarted and these tasks are
    rerun one at a time. A task that kills it again is reported as killed.
    """

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._running: dict[str, Task] = {}  # on the forkserver, by key
        self._pids: dict[str, int] = {}
        self._retry_alone: deque[Task] = deque()  # tasks to rerun one at a time, before any other
        self._waiting: deque[Task] = deque()  # tasks to start after them
        self._retrying_alone = self._server_exited = False
        self._events: list[Event] = []
        self._open()

    def _open(self) -> None:
        try:
            own_end, server_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except (AttributeError, OSError) as error:
            raise IanvsError(
                "`start: fork` of the local engine requires Linux (SOCK_SEQPACKET sockets). Leave `start` out, or set "
                "`engine: {name: local, start: spawn}`.",
                code="invalid-engine",
            ) from error
        self._channel = own_end
        environment = {**os.environ, **dict.fromkeys(THREADS, str(self._workload.threads))}
        many_tasks = (self._workload.tasks or 0) >= MANY_TASKS
        preload = (*self._workload.preload, *(["ianvs.processes.engines.forked:gather_pages"] if many_tasks else []))
        descriptor = server_end.fileno()
        command = python_command("ianvs.processes.engines.forkserver:boot", str(descriptor), str(os.getpid()), *preload)
        # In a session of its own, so Ctrl-C reaches only the supervisor.
        self._process = subprocess.Popen(command, pass_fds=[descriptor], env=environment, start_new_session=True)
        server_end.close()
        self._ready = self._server_exited = False

    def submit(self, task: Task) -> None:
        self._waiting.append(task)
        self._start_waiting()

    def _start_waiting(self) -> None:
        """Start all tasks that wait; of those to rerun the next one, when no other is running."""
        while (self._retry_alone or self._waiting) and not (self._retrying_alone and self._running):
            self._retrying_alone = bool(self._retry_alone)
            task = (self._retry_alone or self._waiting).popleft()
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
                self._server_exited = True

    def events(self, timeout: float) -> list[Event]:
        began = time.monotonic()
        while not self._events:
            if self._server_exited:
                self._restart_server()
                continue
            left = began + (timeout if self._ready else max(timeout, _START_SECONDS)) - time.monotonic()
            ready, _, _ = select.select([self._channel], [], [], max(0.0, left))
            if not ready:
                break
            self._read_events()
        events, self._events = self._events, []
        return events

    def _read_events(self) -> None:
        while not self._server_exited:
            try:
                message = self._channel.recv(1 << 20, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except ConnectionError:
                message = b""
            if not message:
                if not self._ready:
                    raise IanvsError(
                        "the forkserver, which starts test cases, could not be started; its error is above.",
                        code="invalid-engine",
                    )
                self._server_exited = True
                return
            event: object = None
            with contextlib.suppress(Exception):  # a task may write other data to the channel
                event = pickle.loads(message)
            if not isinstance(event, Event):
                continue
            self._ready = True
            if not event.key:  # the forkserver's own
                continue
            self._events.append(event)
            if event.kind == "started":
                self._pids[event.key] = event.payload
            elif event.kind == "ended":
                del self._running[event.key]
                self._pids.pop(event.key, None)
                self._start_waiting()

    def _restart_server(self) -> None:
        """Restart the forkserver after it ended with all of its tasks."""
        for pid in self._pids.values():
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)  # children of a task
        self.close()
        crashed_tasks, self._running, self._pids = [*self._running.values()], {}, {}
        if len(crashed_tasks) == 1:
            self._events.append(Event(crashed_tasks[0].key, "ended", -signal.SIGKILL))
        else:
            self._retry_alone.extend(crashed_tasks)
            self._events += [Event(task.key, "restarting") for task in crashed_tasks]
        self._open()
        self._start_waiting()

    def cancel(self, key: str, *, force: bool = False) -> None:
        number = signal.SIGKILL if force else signal.SIGTERM
        for queue in (self._retry_alone, self._waiting):
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
