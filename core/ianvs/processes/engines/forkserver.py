"""The process that the local engine forks tasks from (docs/decisions/001-processes.md).

Messages are pickles, one per packet of a SOCK_SEQPACKET pair: a child's report can't be torn or mixed with another's.
"""

import contextlib
import gc
import itertools
import os
import pickle
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ianvs.processes.engines.capped_log import CappedLog
from ianvs.processes.engines.engine import Event, Reporter, Task, call_target, preload_modules, python_command
from ianvs.processes.engines.forked import (
    CHILD_SUBREAPER,
    MANY_TASKS,
    MESSAGE_LIMIT,
    PARENT_DEATH_SIGNAL,
    gather_pages,
    log_to,
    prctl,
    run_and_exit,
)
from ianvs.processes.engines.temporary import own_folder, own_folders, remove_folders, socket_folder, sweep, use_folders
from ianvs.processes.proc import kill_descendants


def boot(descriptor: str, supervisor: str, *preload: str) -> None:
    """Run `main` in a new process, which ends with the supervisor even during imports."""
    prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() == int(supervisor):
        main(int(descriptor), preload)


def main(descriptor: int, preload: Sequence[str]) -> None:
    """Serve until the supervisor closes its end."""
    channel = socket.socket(fileno=descriptor)
    # Slurm sends it to every process: the supervisor's answer counts, and a task's as soon as it listens.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    prctl(CHILD_SUBREAPER, 1)  # orphans of a task become children of this process, which ends them
    gc.disable()  # garbage collection takes a sixth of the time of imports
    for name in preload:
        preload_modules([name])
        if "torch" in sys.modules and cuda_is_refused_to_forks():
            rest = [other for other in preload if other != name]
            again = python_command("ianvs.processes.engines.forkserver:boot", str(descriptor), str(os.getppid()), *rest)
            os.execv(again[0], again)
    prctl(PARENT_DEATH_SIGNAL, 0)  # from now on the closed channel is noticed, with time to clean up
    sweep()
    gc.freeze()  # children share these objects' pages instead of copying them at their first collection
    gc.enable()
    _Server(channel).serve()
    os._exit(0)  # without exit handlers of imported modules, which were not used


def cuda_is_refused_to_forks() -> bool:
    """Return whether torch would refuse to use a GPU in forks of this process, because this process has initialised
    CUDA.

    A library may do so while it is imported, as peft with bitsandbytes. Tasks then import it themselves.
    """
    torch = sys.modules.get("torch")
    if torch is None or "/libcuda.so" not in Path("/proc/self/maps").read_text():  # no driver, no GPU
        return False
    pid = os.fork()
    if pid == 0:
        os._exit(torch.cuda._is_in_bad_fork())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0


class _Server:
    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.children: dict[int, str] = {}
        self.folder = own_folder()  # for temporary files of all children
        self.sockets = socket_folder()
        self.numbers = itertools.count()
        self.folders: dict[int, tuple[str, str | None]] = {}  # of each task, by process id
        self.logs: dict[int, CappedLog] = {}
        self.started = 0
        self.printing: set[int] = set()  # processes whose pipe may still have output
        self.wake, self.waker = os.pipe()
        os.set_blocking(self.waker, False)
        os.set_blocking(self.wake, False)
        signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor handles Ctrl-C

    def serve(self) -> None:
        self.send(Event("", "started", os.getpid()))
        while True:
            logs = {self.logs[pid].reader: pid for pid in self.printing}
            waiting: list[Any] = [self.channel, self.wake, *logs]
            ready, _, _ = select.select(waiting, [], [])
            self.printing -= {
                pid for reader, pid in logs.items() if reader in ready and not self.logs[pid].write_pending()
            }
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
                order, *arguments = pickle.loads(message)
                self.start(*arguments) if order == "start" else self.signal(*arguments)

    def send(self, event: Event) -> None:
        with contextlib.suppress(OSError):
            self.channel.send(pickle.dumps(event))

    def signal(self, key: str, number: int) -> None:
        for pid in [pid for pid, owner in self.children.items() if owner == key]:
            _signal_group(pid, number)

    def start(self, task: Task) -> None:
        folder, sockets = own_folders(next(self.numbers), self.folder, self.sockets)
        log = None if task.log is None else CappedLog(task.log, task.secrets)
        self.started += 1
        if self.started == MANY_TASKS:
            gather_pages()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            for other in self.logs.values():
                other.close_descriptors()
            signal.set_wakeup_fd(-1)
            os.close(self.wake)
            os.close(self.waker)
            run_and_exit(lambda: _child(task, self.channel, (folder, sockets), log, parent))
        if log is not None:
            os.close(log.writer)
            self.logs[pid] = log
            self.printing.add(pid)
        self.children[pid] = task.key
        self.folders[pid] = folder, sockets
        with contextlib.suppress(OSError):  # in the child, too, to avoid a race
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
            kill_descendants(os.getpid(), self.children)  # orphans of a task in other process groups
            if pid in self.logs:
                self.logs.pop(pid).close()
                self.printing.discard(pid)
            remove_folders(self.folders.pop(pid))
            self.send(Event(key, "ended", os.waitstatus_to_exitcode(status)))

    def end_all(self) -> None:
        for pid in self.children:
            _signal_group(pid, signal.SIGKILL)
        deadline = time.monotonic() + 5
        while self.children and time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):
                pid, _ = os.waitpid(-1, os.WNOHANG)
                self.children.pop(pid, None)
            time.sleep(0.005)
        kill_descendants(os.getpid(), self.children)
        remove_folders((self.folder, self.sockets))


def _child(
    task: Task, channel: socket.socket, folders: tuple[str, str | None], log: CappedLog | None, parent: int
) -> None:
    os.setpgid(0, 0)
    prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # the parent died before: this process would keep the channel open forever
        os._exit(1)
    # Sent by the task itself, since an event of its parent could arrive after the task's first report.
    try:
        channel.send(pickle.dumps(Event(task.key, "started", os.getpid())))
    except OSError:  # the supervisor has ended
        raise SystemExit(1) from None
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    prctl(CHILD_SUBREAPER, 1)  # orphans stay below the task, so that their time and memory count
    if log is not None:
        log.close_descriptors()
    log_to(os.open(os.devnull, os.O_WRONLY) if log is None else log.writer)
    with contextlib.suppress(OSError):  # out of memory, the kernel kills a case and not the supervisor
        Path("/proc/self/oom_score_adj").write_text("500")
    use_folders(*folders)
    os.environ.update(task.environment)

    def send(event: Event) -> None:
        with contextlib.suppress(OSError):
            channel.send(pickle.dumps(event), socket.MSG_DONTWAIT)

    reporter = Reporter(task.key, send)
    signal.signal(signal.SIGTERM, reporter.ask)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    result = call_target(task.target)(task.argument, reporter)
    if result is not None:
        message = pickle.dumps(Event(task.key, "result", result))
        if len(message) > MESSAGE_LIMIT:
            raise ValueError(f"a result of {len(message)} bytes is too large for a message: write it to a file")
        channel.send(message)


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
