"""The process that the local engine forks tasks from (docs/decisions/001-processes.md).

Messages are pickles, one per packet of a SOCK_SEQPACKET pair: a child's report can't be torn or mixed with another's.
"""

import contextlib
import gc
import os
import pickle
import pkgutil
import select
import shutil
import signal
import socket
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from ianvs.processes.engines.capped_log import CappedLog
from ianvs.processes.engines.engine import Event, Reporter, Task, preload_modules, python_command
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
from ianvs.processes.engines.temporary import engine_folders, use_folders
from ianvs.processes.proc import kill_descendants


def boot(descriptor: str, supervisor: str, *preload: str) -> None:
    """Serve until the supervisor closes its end, or ends during imports."""
    prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != int(supervisor):
        return
    channel = socket.socket(fileno=int(descriptor))
    # Slurm sends it to every process: the supervisor's answer counts, and a task's as soon as it listens.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    prctl(CHILD_SUBREAPER, 1)  # orphans of a task become children of this process, which ends them
    gc.disable()  # garbage collection takes a sixth of the time of imports
    for name in preload:
        preload_modules([name])
        if "torch" in sys.modules and cuda_is_refused_to_forks():
            rest = [other for other in preload if other != name]
            again = python_command("ianvs.processes.engines.forkserver:boot", descriptor, supervisor, *rest)
            os.execv(again[0], again)
    prctl(PARENT_DEATH_SIGNAL, 0)  # from now on the closed channel is noticed, with time to clean up
    server = _Server(channel)
    gc.freeze()  # children share these objects' pages instead of copying them at their first collection
    gc.enable()
    server.serve()
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
        self.children: dict[int, str] = {}  # keys of tasks by process id
        self.folders = engine_folders()  # for temporary files of all children
        self.logs: dict[int, tuple[CappedLog, int]] = {}  # and the pipe that is copied to it, by process id
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
            pipes = {self.logs[pid][1]: pid for pid in self.printing}
            waiting: list[Any] = [self.channel, self.wake, *pipes]
            ready, _, _ = select.select(waiting, [], [])
            for pipe in pipes.keys() & {*ready}:
                log, _ = self.logs[pipes[pipe]]
                if not log.copy(pipe):
                    self.printing.discard(pipes[pipe])
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
                if order == "start":
                    self.start(*arguments)
                else:
                    key, number = arguments
                    for pid in [pid for pid, owner in self.children.items() if owner == key]:
                        _signal_group(pid, number)

    def send(self, event: Event, flags: int = 0) -> None:
        with contextlib.suppress(OSError):
            self.channel.send(pickle.dumps(event), flags)

    def start(self, task: Task) -> None:
        log = None if task.log is None else CappedLog(task.log, task.secrets)
        pipe, output = os.pipe() if log is not None else (-1, os.open(os.devnull, os.O_WRONLY))
        self.started += 1
        if self.started == MANY_TASKS:
            gather_pages()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            run_and_exit(self.child, task, log, pipe, output, parent)
        os.close(output)
        if log is not None:
            os.set_blocking(pipe, False)
            self.logs[pid] = log, pipe
            self.printing.add(pid)
        self.children[pid] = task.key
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
                log, pipe = self.logs.pop(pid)
                while log.copy(pipe):  # later output of its orphans is dropped
                    pass
                log.write(b"", last=True)
                os.close(pipe)
                self.printing.discard(pid)
            for folder in self.folders:
                shutil.rmtree(folder / str(pid), ignore_errors=True)
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
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)

    def child(self, task: Task, log: CappedLog | None, pipe: int, output: int, parent: int) -> None:
        """Run a task, in its process."""
        os.setpgid(0, 0)
        prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died before: this process would keep the channel open forever
            os._exit(1)
        # Sent by the task itself, since an event of its parent could arrive after the task's first report.
        try:
            self.channel.send(pickle.dumps(Event(task.key, "started", os.getpid())))
        except OSError:  # the supervisor has ended
            raise SystemExit(1) from None
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        prctl(CHILD_SUBREAPER, 1)  # orphans stay below the task, so that their time and memory count
        logs = [*self.logs.values(), *([] if log is None else [(log, pipe)])]
        for descriptor in (self.wake, self.waker, *(each for log, pipe in logs for each in (log.file, pipe))):
            os.close(descriptor)
        log_to(output)
        with contextlib.suppress(OSError):  # out of memory, the kernel kills a case and not the supervisor
            Path("/proc/self/oom_score_adj").write_text("500")
        use_folders(self.folders)
        os.environ.update(task.environment)
        reporter = Reporter(task.key, partial(self.send, flags=socket.MSG_DONTWAIT))
        signal.signal(signal.SIGTERM, reporter.ask)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        result = pkgutil.resolve_name(task.target)(task.argument, reporter)
        if result is not None:
            message = pickle.dumps(Event(task.key, "result", result))
            if len(message) > MESSAGE_LIMIT:
                raise ValueError(f"a result of {len(message)} bytes is too large for a message: write it to a file")
            self.channel.send(message)


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
