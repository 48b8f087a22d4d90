"""The local engine without forks: a separate Python for each task.

docs/decisions/001-processes.md explains why it does not use multiprocessing. Descendants of a task are found by their
environment (`MARK`).
"""

import contextlib
import os
import pickle
import shutil
import subprocess
import threading
import uuid
from pathlib import Path

from ianvs.processes.engines.capped_log import CappedLog
from ianvs.processes.engines.engine import THREADS, Event, Mailbox, Task, Workload, python_command
from ianvs.processes.engines.spawned import MARK, end_marked
from ianvs.processes.engines.temporary import engine_folders

_KILLED = -9  # the status of a process ended by SIGKILL, which Windows lacks
_PATIENCE = 5.0  # seconds to wait for the pipes of an ended process


class SpawnEngine:
    """Starts tasks as new processes; spawned.py is a task's side.

    It needs only pipes and processes of the operating system.
    """

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._children: dict[str, _Child] = {}
        self._events = Mailbox()
        self._folders = engine_folders()  # of the temporary files of all tasks

    def submit(self, task: Task) -> None:
        self._children[task.key] = _Child(task, self._workload, self._folders, self._events)

    def events(self, timeout: float) -> list[Event]:
        events = self._events.take(timeout)
        for event in events:
            if event.kind == "ended":
                del self._children[event.key]
        return events

    def cancel(self, key: str, *, force: bool = False) -> None:
        if (child := self._children.get(key)) is not None:
            child.kill() if force else child.ask_to_stop()

    def close(self) -> None:
        for child in self._children.values():
            child.kill()
        for child in self._children.values():
            child.wait()
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)


class _Child:
    def __init__(self, task: Task, workload: Workload, folders: tuple[Path, ...], events: Mailbox) -> None:
        self._task, self._preload, self._events = task, workload.preload, events
        self._mark = uuid.uuid4().hex
        self._folders = folders
        self._lock = threading.Lock()
        self._begun = self._stop_requested = self._forced = False
        self._process = subprocess.Popen(
            python_command("ianvs.processes.engines.spawned:main"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **dict.fromkeys(THREADS, str(workload.threads)), MARK: self._mark, **task.environment},
            start_new_session=True,  # so Ctrl-C reaches only the supervisor
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # on Windows, the same
        )
        self._life = threading.Thread(target=self._follow, name=f"task {task.key}", daemon=True)
        self._life.start()

    def ask_to_stop(self) -> None:
        with self._lock:
            if self._begun and not self._stop_requested:
                self._say(b"stop")
            self._stop_requested = True

    def kill(self) -> None:
        self._forced = True
        self._process.kill()
        end_marked(self._mark)

    def wait(self) -> None:
        self._life.join()

    def _follow(self) -> None:
        pipes = [threading.Thread(target=target, daemon=True) for target in (self._listen, self._keep_log)]
        for pipe in pipes:
            pipe.start()
        self._say(pickle.dumps((self._preload, self._task, self._folders)))
        with self._lock:
            self._begun = True
            if self._stop_requested:
                self._say(b"stop")
        code = self._process.wait()
        end_marked(self._mark)  # files that it has left behind
        for pipe in pipes:
            pipe.join(_PATIENCE)
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        for folder in self._folders:
            shutil.rmtree(folder / str(self._process.pid), ignore_errors=True)
        self._events.put(Event(self._task.key, "ended", _KILLED if self._forced and os.name == "nt" else code))

    def _say(self, words: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it is gone
            self._process.stdin.write(words)
            self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream, contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
            while True:
                self._events.put(pickle.load(stream))

    def _keep_log(self) -> None:
        assert self._process.stderr is not None
        log = None if self._task.log is None else CappedLog(self._task.log, self._task.secrets)
        with self._process.stderr as stream, contextlib.suppress(OSError):
            while os.read(stream.fileno(), 1 << 18) if log is None else log.copy(stream.fileno()):
                pass
        if log is not None:
            log.write(b"", last=True)
