"""The processes of a case beside the keeper's: the learner, and the copies that answer and are thrown away.

They come from a spawner, which was forked from the keeper before that held anything of the exam. A copy is a fork of
the learner where that is safe (one thread, no accelerator), else a new process that loads what the learner has saved.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from ianvs.exam.scenarios.exam import Rules
from ianvs.processes.engines.forked import (
    CHILD_SUBREAPER,
    DUMPABLE,
    PARENT_DEATH_SIGNAL,
    close_all_but,
    keep_freed_memory,
    live,
    prctl,
)
from ianvs.processes.sealing.closed import allowed_paths
from ianvs.processes.sealing.landlock import confine
from ianvs.processes.sealing.peer import Message, Peer
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session.learner import LearnerHost
from ianvs.running.session.session import Brief

_SHARED = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) (.)..s", re.MULTILINE)  # lines of /proc/self/maps: from, to, readable
_DEVICES = [Path("/dev/null"), Path("/dev/zero"), *Path("/dev").glob("nvidia*")]
_CACHES = ("XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH")


class LearnerSpawner:
    """Starts processes that have seen nothing of the exam. Make it before the exam is opened."""

    def __init__(self, request: CaseRequest) -> None:
        self._folder = tempfile.mkdtemp(prefix="case-")  # for temporary files, closed to each other's process
        ours, theirs = socket.socketpair()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            _live(lambda: _nurse(theirs, SpawnServer(request, self._folder)))
        theirs.close()
        self._peer = Peer(ours, _nothing)

    def spawn(
        self, brief: Brief, closed: Sequence[Path], own: Sequence[Path], *, copy: bool = False
    ) -> tuple[socket.socket, int, bool]:
        """(our end, process id, whether the folders are closed to it) of a process that waits for orders.

        own: folders that it may read, and write unless it is a copy.
        """
        ours, theirs = socket.socketpair()
        told = {
            "brief": {**vars(brief), "rules": asdict(brief.rules)},
            "closed": [str(path) for path in (*closed, Path(self._folder).resolve())],
            "own": [str(path) for path in own],
            "copy": copy,
        }
        spawned = self._peer.call("spawn", told, [theirs.fileno()])
        theirs.close()
        return ours, spawned.body["pid"], spawned.body["closed"]

    def ended(self, pid: int) -> int:
        """Wait for a process to end: its exit code, negative for a signal."""
        return int(self._peer.call("ended", {"pid": pid}).body["code"])

    def close(self) -> None:
        """End all of its processes."""
        self._peer.close()
        os.waitpid(self.pid, 0)
        shutil.rmtree(self._folder, ignore_errors=True)


class SpawnServer:
    """The spawner's side."""

    def __init__(self, request: CaseRequest, folder: str) -> None:
        self._request, self._folder = request, folder
        self.living: set[int] = set()

    def __call__(self, name: str, told: Message) -> Message | None:
        if name == "ended":
            _, status = os.waitpid(told.body["pid"], 0)
            self.living.discard(told.body["pid"])
            return Message({"code": os.waitstatus_to_exitcode(status)})
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _live(lambda: self._serve(told, writing))
        os.close(writing)
        os.close(told.files[0])
        self.living.add(pid)
        closed = os.read(reading, 1) == b"y"
        os.close(reading)
        return Message({"pid": pid, "closed": closed})

    def _serve(self, told: Message, ready: int) -> None:
        end = socket.socket(fileno=told.files[0])
        own, closed_paths = ([Path(path) for path in told.body[name]] for name in ("own", "closed"))
        folder = tempfile.mkdtemp(prefix="learner-", dir=self._folder)
        _work_in(folder, of_copy=told.body["copy"])
        opened = [Path(folder), *own, *_own_files(self._request, closed_paths)]
        writable = None
        if told.body["copy"]:
            writable = [Path(folder), *_DEVICES]
        elif self._request.sealing == "strict":
            writable = [Path(folder), *own, *_caches(), Path("/dev")]
        closed = confine(closed_paths, opened, writable)
        os.write(ready, b"y" if closed else b"n")
        os.close(ready)
        close_all_but({end.fileno()})
        keep_freed_memory()
        brief = told.body["brief"]
        rules = Rules(**brief["rules"])
        known = Brief(brief["kind"], tuple(brief["rounds"]), tuple(brief["classes"]), rules, brief["streams"])
        host = LearnerHost(self._request, known, lambda file: _copy(file, host), closed=closed)
        peer = Peer(end, host)
        host.connect(peer)
        peer.serve()


def _nurse(end: socket.socket, births: SpawnServer) -> None:
    """Until the keeper closes its end; then nothing of a learner remains."""
    prctl(CHILD_SUBREAPER, 1)  # what outlives its parent stays here, unwaited for, so that its time can be read
    Peer(end, births).serve()
    for pid in births.living:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _copy(file: int, host: LearnerHost) -> int:
    """Serve at the socket `file` in a fork of this process, which shares nothing with it; its exit code."""
    sys.stdout.flush()
    folder = tempfile.mkdtemp(prefix="copy-")
    pid = os.fork()
    if pid == 0:
        _live(lambda: _serve_as_copy(file, host, folder))
    os.close(file)
    _, status = os.waitpid(pid, 0)
    shutil.rmtree(folder, ignore_errors=True)
    return os.waitstatus_to_exitcode(status)


def _serve_as_copy(file: int, host: LearnerHost, folder: str) -> None:
    close_all_but({file})
    _unshare_memory()
    _work_in(folder, of_copy=True)
    confine(writable=[Path(folder), *_DEVICES])
    prctl(DUMPABLE, 0)  # so that the learner can't read it from outside
    peer = Peer(socket.socket(fileno=file), host)
    host.connect(peer)
    peer.serve()


def _live(life: Callable[[], None]) -> None:
    """Of a process that was forked: it ends with its parent."""
    gc.freeze()  # a collection would touch, and so copy, every page that is still shared
    prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    live(life)


def _work_in(folder: str, *, of_copy: bool) -> None:
    """Temporary files go to `folder`; of a copy, which may write nowhere else, what is compiled, too."""
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    if of_copy:
        os.environ.update(dict.fromkeys(("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"), folder))


def _caches() -> list[Path]:
    """Where libraries keep what they have compiled or loaded; several processes may share it."""
    home = Path.home()
    named = [Path(os.environ[name]) for name in _CACHES if name in os.environ]
    return [*named, home / ".cache", home / ".triton", home / ".nv", *Path("/tmp").glob("torchinductor_*")]


def _own_files(request: CaseRequest, closed: Sequence[Path]) -> list[Path]:
    """What a learner may open although it may lie in a closed folder: its code, and the model that it begins with."""
    algorithm = request.algorithm
    found = allowed_paths([*(module.url for module in algorithm.modules), algorithm.paradigm.url], closed)
    return found if algorithm.initial_model is None else [*found, Path(algorithm.initial_model)]


def _unshare_memory() -> None:
    """Put a copy of its own in place of all memory that this process shares with the one that it was forked from."""
    try:
        shared = _SHARED.findall(Path("/proc/self/maps").read_bytes())
    except OSError:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    for first, past, readable in shared:
        start, end = int(first, 16), int(past, 16)
        content = ctypes.string_at(start, end - start) if readable == b"r" else b""
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10  # MAP_FIXED
        libc.mmap(start, end - start, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        ctypes.memmove(start, content, len(content))


def _nothing(name: str, told: Message) -> Message | None:
    raise ValueError(f"nobody may call '{name}' here")
