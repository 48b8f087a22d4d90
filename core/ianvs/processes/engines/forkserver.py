"""The process that the local engine forks tasks from.

It imports what tasks need once (torch alone takes seconds) and then only forks: a task starts in about ten
milliseconds, in a process and a process group of its own. It never touches an accelerator, so that a forked task may.

Why not multiprocessing's forkserver: that runs the caller's main script again in every child, hides the exit status
behind a second process, and does not know process groups. This one sees every child end, whatever the child did to its
pipes, kills what a child leaves behind, and ends with everything below it when the supervisor is gone.

Messages are pickles, one per packet of a SOCK_SEQPACKET pair: a child's report can't be torn or mixed with another's.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import pickle
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ianvs.processes.engines.capped_log import CappedLog
from ianvs.processes.engines.engine import Event, Task, call_target, preload_modules
from ianvs.processes.engines.forked import (
    CHILD_SUBREAPER,
    MANY_TASKS,
    MESSAGE_LIMIT,
    PARENT_DEATH_SIGNAL,
    children,
    gather_pages,
    live,
    prctl,
)
from ianvs.processes.engines.temporary import own_folder, sweep


def main(descriptor: int, preload: list[str]) -> None:
    """Serve until the supervisor closes its end."""
    channel = socket.socket(fileno=descriptor)
    # Slurm sends it to every process: the supervisor's answer counts, and a task's as soon as it listens.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    prctl(CHILD_SUBREAPER, 1)  # what a task leaves behind becomes ours, so that we can end it
    gc.disable()  # imports make hardly any garbage, and looking for it takes a sixth of their time
    preload_modules(preload)
    prctl(PARENT_DEATH_SIGNAL, 0)  # from now on the closed channel tells, and leaves time to clean up
    sweep()
    gc.freeze()  # children share these objects' pages instead of copying them at their first collection
    gc.enable()
    _Server(channel).serve()
    os._exit(0)  # not through the exit handlers of whatever was imported: nothing of theirs was used


class _Server:
    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.children: dict[int, str] = {}
        self.folder = own_folder()  # of the temporary files of all children
        self.folders: dict[int, str] = {}  # of each, by process id
        self.logs: dict[int, CappedLog] = {}
        self.started = 0
        self.printing: set[int] = set()  # those whose log may still get something
        self.wake, self.waker = os.pipe()
        os.set_blocking(self.waker, False)
        os.set_blocking(self.wake, False)
        signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's to handle

    def serve(self) -> None:
        self.send(Event("", "started", os.getpid()))
        while True:
            logs = {self.logs[pid].reader: pid for pid in self.printing}
            waiting: list[Any] = [self.channel, self.wake, *logs]
            ready, _, _ = select.select(waiting, [], [])
            self.printing -= {pid for reader, pid in logs.items() if reader in ready and not self.logs[pid].take()}
            if self.wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self.wake, 4096)
                self.reap()
            if self.channel in ready:
                try:
                    message = self.channel.recv(1 << 20)
                except ConnectionError:
                    message = b""
                if not message:
                    self.end_all()
                    return
                self.obey(*pickle.loads(message))

    def send(self, event: Event) -> None:
        with contextlib.suppress(OSError):
            self.channel.send(pickle.dumps(event))

    def obey(self, order: str, *arguments: Any) -> None:
        if order == "start":
            self.start(arguments[0])
        elif order == "signal":
            key, number = arguments
            for pid in [pid for pid, owner in self.children.items() if owner == key]:
                _signal_group(pid, number)

    def start(self, task: Task) -> None:
        folder = tempfile.mkdtemp(dir=self.folder)
        log = None if task.log is None else CappedLog(task.log, task.secrets)
        self.started += 1
        if self.started == MANY_TASKS:
            gather_pages()
        pid = os.fork()
        if pid == 0:
            for other in self.logs.values():
                other.drop()
            signal.set_wakeup_fd(-1)
            os.close(self.wake)
            os.close(self.waker)
            live(lambda: _child(task, self.channel, folder, log))
        if log is not None:
            os.close(log.writer)
            self.logs[pid] = log
            self.printing.add(pid)
        self.children[pid] = task.key
        self.folders[pid] = folder
        with contextlib.suppress(OSError):  # in the child too: whoever comes first
            os.setpgid(pid, pid)

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            key = self.children.pop(pid, None)
            if key is None:
                continue  # a grandchild that lost its parent
            _signal_group(pid, signal.SIGKILL)
            self.end_orphans()
            if pid in self.logs:
                self.logs.pop(pid).close()
                self.printing.discard(pid)
            shutil.rmtree(self.folders.pop(pid), ignore_errors=True)
            self.send(Event(key, "ended", os.waitstatus_to_exitcode(status)))

    def end_orphans(self) -> None:
        """Kill processes that fell to us without being tasks: children that a task put in groups of their own."""
        for pid in children(os.getpid()):
            if pid not in self.children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def end_all(self) -> None:
        for pid in self.children:
            _signal_group(pid, signal.SIGKILL)
        deadline = time.monotonic() + 5
        while self.children and time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):
                pid, _ = os.waitpid(-1, os.WNOHANG)
                self.children.pop(pid, None)
            time.sleep(0.005)
        self.end_orphans()
        shutil.rmtree(self.folder, ignore_errors=True)


def _child(task: Task, channel: socket.socket, folder: str, log: CappedLog | None) -> None:
    """The life of a task's process."""
    os.setpgid(0, 0)
    # The task itself says so: what its parent sends could come after the task's first report.
    channel.send(pickle.dumps(Event(task.key, "started", os.getpid())))
    prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _redirect(log)
    _volunteer_for_the_oom_killer()
    os.environ.update({"TMPDIR": folder, **task.environment})
    tempfile.tempdir = folder
    result = call_target(task.target)(task.argument, _Reporter(task.key, channel))
    if result is not None:
        message = pickle.dumps(Event(task.key, "result", result))
        if len(message) > MESSAGE_LIMIT:
            raise ValueError(f"a result of {len(message)} bytes is too large for a message: write it to a file")
        channel.send(message)


class _Reporter:
    """Reports over the channel; SIGTERM is the wish to stop."""

    def __init__(self, key: str, channel: socket.socket) -> None:
        self._key, self._channel = key, channel
        self._last = 0.0
        self._asked = False
        signal.signal(signal.SIGTERM, self._ask)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def __call__(self, payload: object) -> None:
        now = time.monotonic()
        if isinstance(payload, dict) and "fraction" in payload:  # for eyes; a flood would only fill the channel
            if now - self._last < 0.1:
                return
            self._last = now
        with contextlib.suppress(OSError):
            self._channel.send(pickle.dumps(Event(self._key, "progress", payload)), socket.MSG_DONTWAIT)

    def stop_requested(self) -> bool:
        return self._asked

    def _ask(self, *_: object) -> None:
        self._asked = True


def _redirect(log: CappedLog | None) -> None:
    """Standard input is empty, standard output and error go to `log`."""
    source = os.open(os.devnull, os.O_RDONLY)
    if log is not None:
        log.drop()
        target = log.writer
    else:
        target = os.open(os.devnull, os.O_WRONLY)
    os.dup2(source, 0)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.close(source)
    os.close(target)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    faulthandler.enable(sys.stderr)  # a segfault leaves its stack in the log


def _volunteer_for_the_oom_killer() -> None:
    """When the machine runs out of memory, a case ends and not the supervisor."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
