"""Forkservers of tests, and processes that look at authors' files, come from one that has imported what they need.

There are two, one with torch and one without, of which a fork costs half. Each server is a fork, with the surroundings
of the test that asks: environment, working directory, sys.path, standard streams. What the boot of a real one does is
tested by what starts `ianvs` as a command, and by tests marked `cold`.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from ianvs.processes import isolated
from ianvs.processes.engines import forking
from ianvs.processes.engines.engine import preload_modules, thread_limits
from ianvs.processes.engines.forked import gather_pages
from tests.slip_contexts import CURRENT_TEST, enter_context

__all__ = ["boot", "boot_isolated", "cold", "cold_isolated", "used"]

_LIGHT = (
    *("ianvs.running.inspector", "ianvs.running.session.exams"),
    "ianvs.running.session.case:warm_up",
)
_HEAVY = ("torch", "torch._dynamo", "torchvision", "ianvs.authoring", *_LIGHT)
_MOST = 1 << 20
_USED = b"used"  # the other request
_ONE_THREAD = thread_limits(1)
cold, cold_isolated = forking._boot, isolated._boot  # as they are outside of tests


class _Server:
    """A forkserver, as far as an engine looks at its process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self._end: int | None = os.pidfd_open(pid)
        except ProcessLookupError:
            self._end = None

    def wait(self, timeout: float | None = None) -> None:
        if self._end is None:
            return
        if not select.select([self._end], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("forkserver", timeout or 0.0)
        os.close(self._end)
        self._end = None

    def kill(self) -> None:
        if self._end is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._end, signal.SIGKILL)


class _Isolated(_Server):
    """The process of `Isolated`, as far as that looks at it."""

    def __init__(self, pid: int, questions: int, answers: int) -> None:
        super().__init__(pid)
        self.stdin, self.stdout = os.fdopen(questions, "wb"), os.fdopen(answers, "rb")


def boot(channel: socket.socket, environment: Mapping[str, str], preload: Sequence[str]) -> object:
    """In the place of `forking._boot`."""
    if not _ONE_THREAD.items() <= environment.items():  # libraries that are loaded have read how many they may use
        return cold(channel, environment, preload)
    pid = _forked(environment, [channel.fileno(), 0, 1, 2], list(preload))
    return cold(channel, environment, preload) if pid is None else _Server(pid)


def boot_isolated(environment: Mapping[str, str]) -> object:
    """In the place of `isolated._boot`."""
    if not _ONE_THREAD.items() <= environment.items():
        return cold_isolated(environment)
    (theirs_in, questions), (answers, theirs_out), null = os.pipe(), os.pipe(), os.open(os.devnull, os.O_WRONLY)
    pid = _forked(environment, [theirs_in, theirs_out, null], None)
    for end in (theirs_in, theirs_out, null):
        os.close(end)
    if pid is None:
        os.close(questions)
        os.close(answers)
        return cold_isolated(environment)
    return _Isolated(pid, questions, answers)


def _forked(environment: Mapping[str, str], descriptors: Sequence[int], preload: list[str] | None) -> int | None:
    """The process id of a fork of a warm process; None where there is none. preload: None for one that answers."""
    told = {"environment": dict(environment), "folder": str(Path.cwd()), "path": sys.path, "preload": preload}
    heavy = preload is None or any(not name.startswith("ianvs.") for name in preload)  # torch, or what needs it
    return _WARM[heavy].forked(json.dumps(told).encode(), descriptors)


def used() -> float:
    """CPU seconds of all servers that have ended, and of what they forked, where the kernel does not tell them."""
    return sum(warm.used() for warm in _WARM)


class _Warm:
    """A process that forks servers; it starts when the first is asked for."""

    def __init__(self, preloaded: Sequence[str]) -> None:
        self._preloaded = preloaded
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._told = 0.0  # CPU seconds, the last that were heard of

    def forked(self, request: bytes, descriptors: Sequence[int]) -> int | None:
        """The process id of a new server."""
        for _ in range(2):  # a test may have ended it
            if self._channel is None:
                self._channel = self._started()
            with contextlib.suppress(OSError):
                socket.send_fds(self._channel, [request], descriptors)
                if pid := self._channel.recv(100):
                    return int(pid)
            self._channel.close()
            self._channel = None
        return None

    def used(self) -> float:
        if self._process is not None and self._process.poll() is not None:
            self._process, self._told = None, 0.0  # a test ended it: from now on it is among our ended children
        with contextlib.suppress(OSError):
            if self._channel is not None and self._channel.send(_USED) and (told := self._channel.recv(100)):
                self._told = float(told)
        return self._told  # where it is not heard just now, what it told last: else the next test would be given it all

    def _started(self) -> socket.socket:
        """The channel to a new process."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST)
        called = f"main({theirs.fileno()}, {tuple(self._preloaded)!r})"
        code = f"import sys; sys.path[:] = {sys.path!r}; from tests.warm_server import main; {called}"
        if self._process is not None:  # the one before it, whose channel is closed
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
            self.used()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            pass_fds=[theirs.fileno()],
            env={**os.environ, **_ONE_THREAD},
            start_new_session=True,
        )
        theirs.close()
        return ours


_WARM = (_Warm(_LIGHT), _Warm(_HEAVY))


def main(descriptor: int, preloaded: Sequence[str]) -> None:
    """Fork a server for each request, until the tests are gone."""
    preload_modules(preloaded)
    gc.collect()
    gc.freeze()  # else the first collection of each server would copy every page
    gather_pages()
    signal.signal(signal.SIGCHLD, _reap)
    requests = socket.socket(fileno=descriptor)
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, _MOST, 4)
        if not message:
            os._exit(0)
        if message == _USED:
            _reap()
            requests.send(str(_of_children()).encode())
            continue
        pid = os.fork()
        if pid == 0:
            requests.close()
            _serve(json.loads(message), descriptors)
        for one in descriptors:
            os.close(one)
        requests.send(str(pid).encode())


def _reap(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _of_children() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def _serve(told: dict[str, object], descriptors: Sequence[int]) -> None:
    from ianvs.processes.engines.forkserver import main as serve

    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        *channel, _, _, _ = descriptors
        streams = descriptors[-3:]
        for place, one in enumerate(streams):
            os.dup2(one, place)
            os.close(one)
        os.chdir(str(told["folder"]))
        os.environ.clear()
        os.environ.update(told["environment"])  # type: ignore[call-overload]
        enter_context(os.environ.get(CURRENT_TEST, ""))
        sys.path[:] = told["path"]  # type: ignore[call-overload]
        tempfile.tempdir = None
        if channel:
            serve(channel[0], told["preload"])  # type: ignore[arg-type]
        else:
            isolated.main()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)
