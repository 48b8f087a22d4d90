"""The processes of a case beside the keeper's: the learner, and the copies that answer and are thrown away.

They come from a spawner, which was forked from the keeper before that held anything of the exam. A copy is a fork of
the learner where that is safe (one thread, no accelerator), else a new process that loads what the learner has saved.
"""

import contextlib
import ctypes
import gc
import json
import mmap
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter

from ianvs.base.errors import one_line
from ianvs.config.contracts import surroundings
from ianvs.processes.engines.forked import (
    CHILD_SUBREAPER,
    PARENT_DEATH_SIGNAL,
    close_all_but,
    keep_freed_memory,
    live,
    prctl,
)
from ianvs.processes.interpreters.author_object import seal_waiting, start_waiting
from ianvs.processes.proc import below, end_below
from ianvs.processes.sealing.attendance import Attendance
from ianvs.processes.sealing.landlock import confine
from ianvs.processes.sealing.leftovers import Leftovers
from ianvs.processes.sealing.peer import Message, Peer
from ianvs.processes.sealing.places import allowed_paths, devices, missing_walls, own_caches, weight_caches
from ianvs.processes.sealing.seal import Seal
from ianvs.processes.sealing.sibling import fork_sibling
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session.learner import LearnerHost
from ianvs.running.session.session import Brief

_BRIEF = TypeAdapter(Brief)
_SHARED = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) (.)..s")  # a line of /proc/self/maps: from, to, readable


class LearnerSpawner:
    """Starts processes that have seen nothing of the exam. Make it before the exam is opened."""

    def __init__(self, request: CaseRequest) -> None:
        self._folder = tempfile.mkdtemp(prefix="case-")  # for temporary files, closed to each other's process
        self._printing: list[Attendance] = []
        self._leftovers, self._learners = Leftovers(), set[int]()
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
    ) -> tuple[socket.socket, int, tuple[str, ...]]:
        """(our end, process id, `missing_walls`) of a process that waits for orders.

        own: folders that it may read, and write unless it is a copy.
        """
        ours, theirs = socket.socketpair()
        told = {
            "brief": asdict(brief),
            "closed": [str(path) for path in (*closed, Path(self._folder).resolve())],
            "own": [str(path) for path in own],
            "copy": copy,
        }
        spawned = self._peer.call("spawn", told, [theirs.fileno()])
        theirs.close()
        if not copy:
            self._learners.add(spawned.body["pid"])
        return ours, spawned.body["pid"], tuple(spawned.body["missing"])

    def attend(self, printed: int) -> None:
        self._printing.append(Attendance(printed))

    def ended(self, pid: int) -> int:
        """Wait for a process to end: its exit code, negative for a signal."""
        return int(self._peer.call("ended", {"pid": pid}).body["code"])

    def temporary(self, pid: int) -> Path:
        """Where one of its processes has its temporary files."""
        return Path(_temporary(self._folder, pid))

    @contextlib.contextmanager
    def copy_folder(self, learner: int) -> Iterator[str]:
        """For temporary files of a fork of a learner, by process id; nothing of them remains."""
        above = self.temporary(learner)
        above.mkdir(exist_ok=True)  # it is the learner's, who may have removed it
        folder = tempfile.mkdtemp(prefix="copy-", dir=above)
        try:
            yield folder
        finally:
            for path, inside, _ in os.walk(folder):
                for one in inside:
                    if not os.path.islink(name := os.path.join(path, one)):  # noqa: PTH114, PTH118
                        os.chmod(name, 0o700)  # noqa: PTH101 - the copy may have closed it
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """End all of its processes, and remove what they have left in memory."""
        living = {self.pid, *below(self.pid)}
        left = self._leftovers.remove_files(living)
        self._peer.close()
        os.waitpid(self.pid, 0)
        for one in self._printing:
            one.close()
        if left := [*left, *self._leftovers.remove_objects(living | self._learners)]:
            print(f"removed what the learner had left behind: {one_line(left)}")
        shutil.rmtree(self._folder, ignore_errors=True)


class SpawnServer:
    def __init__(self, request: CaseRequest, folder: str) -> None:
        self._request, self._folder = request, folder
        self._seal = Seal(request.sealing, request.device)
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
        with os.fdopen(reading, "rb") as pipe:
            missing = pipe.read()
        return Message({"pid": pid, "missing": json.loads(missing or b'["files"]')})

    def _serve(self, told: Message, ready: int) -> None:
        end = socket.socket(fileno=told.files[0])
        own, closed_paths = ([Path(path) for path in told.body[name]] for name in ("own", "closed"))
        folder = _temporary(self._folder, os.getpid())
        Path(folder).mkdir(mode=0o700)
        opened = [Path(folder), *own, *_own_files(self._request, closed_paths)]
        copy, seal = told.body["copy"], self._seal
        writable = [Path(folder), *devices()] if copy else _writable(self._request, [Path(folder), *own])
        _work_in(folder, own=writable is not None, of_copy=copy)
        if copy:
            seal.enter_own_view([Path(folder)])
        closed = confine(closed_paths, opened, writable)
        missing = missing_walls(closed=closed, writes=writable is None, weights=_loads_weights(self._request))
        os.write(ready, json.dumps(missing).encode())
        os.close(ready)
        close_all_but({end.fileno()})
        keep_freed_memory()
        brief = _BRIEF.validate_python(told.body["brief"])
        host = LearnerHost(self._request, brief, lambda file, folder: _copy(file, host, folder, seal), closed=closed)
        peer = Peer(end, host)
        host.connect(peer)
        if copy:
            for python, count in _interpreters(self._request).items():
                start_waiting(python, count)
            seal.serve_as_copy(peer, seal_waiting)
        else:
            seal.serve_as_learner(peer)


def _nurse(end: socket.socket, births: SpawnServer) -> None:
    """Until the keeper closes its end; then nothing of a learner remains, whatever group it is in."""
    prctl(CHILD_SUBREAPER, 1)  # what outlives its parent stays here, unwaited for, so that its time can be read
    Peer(end, births).serve()
    for pid in births.living:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    end_below(os.getpid())


def _copy(file: int, host: LearnerHost, folder: str, seal: Seal) -> int:
    """Let a fork of this process, which shares nothing with it, serve at the socket `file`; 0 once it was forked."""
    sys.stdout.flush()
    parent = os.getppid()
    pid = fork_sibling()
    if pid == 0:
        live(lambda: _serve_as_copy(file, host, folder, seal, parent))
    os.close(file)
    return 0 if pid > 0 else -1


def _serve_as_copy(file: int, host: LearnerHost, folder: str, seal: Seal, parent: int) -> None:
    """parent: of this process."""
    gc.freeze()
    prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        return  # it has ended meanwhile
    close_all_but({file})
    _work_in(folder, own=True, of_copy=True)
    if seal.how != "open":
        _unshare_memory()
        confine(writable=[Path(folder), *devices()])
    peer = Peer(socket.socket(fileno=file), host)
    host.connect(peer)
    seal.serve_as_copy(peer)


def _live(life: Callable[[], None]) -> None:
    """Of a process that was forked: it ends with its parent."""
    gc.freeze()  # a collection would touch, and so copy, every page that is still shared
    prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    live(life)


def _temporary(folder: str, pid: int) -> str:
    """Where a process of a case has its temporary files; `folder`: where all of the case have theirs."""
    return f"{folder}/learner-{pid}"


def _work_in(folder: str, *, own: bool, of_copy: bool) -> None:
    """Temporary files go to `folder`; of who has `own` caches what is compiled, too.

    A compiler is a process, which a copy can't start: what was not compiled before runs as it is written.
    """
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    if own:
        os.environ.update(own_caches(folder))
    if of_copy:
        os.environ["TORCHDYNAMO_SUPPRESS_ERRORS"] = "1"  # read when it is imported
        if (dynamo := sys.modules.get("torch._dynamo.config")) is not None:
            dynamo.suppress_errors = True  # type: ignore[attr-defined]


def _writable(request: CaseRequest, own: Sequence[Path]) -> list[Path] | None:
    """Where a learner may write, whose `own` folders these are; None: wherever the user may."""
    if request.sealing == "open":
        return None
    return [*own, *devices(), Path("/dev/shm"), *(weight_caches() if _loads_weights(request) else ())]


def _loads_weights(request: CaseRequest) -> bool:
    """Whether the user lets the algorithm load weights from the network, which libraries put into shared caches."""
    given = request.case.hyperparameters
    return any(name.rpartition("-")[2] == "download" and value is True for name, value in given.items())


def _interpreters(request: CaseRequest) -> Counter[str]:
    """How many modules live in each other interpreter."""
    where = surroundings(request.algorithm).python
    return Counter() if where is None else Counter({where: len(request.algorithm.modules)})


def _own_files(request: CaseRequest, closed: Sequence[Path]) -> list[Path]:
    """What a learner may open although it may lie in a closed folder: its code, and the model that it begins with."""
    algorithm = request.algorithm
    urls = [*(module.url for module in algorithm.modules), algorithm.paradigm.url]
    found = allowed_paths(urls, closed, [algorithm.python])
    return found if algorithm.initial_model is None else [*found, Path(algorithm.initial_model)]


def _unshare_memory() -> None:
    """Put a copy of its own in place of all memory that this process shares with the one that it was forked from."""
    try:
        lines = Path("/proc/self/maps").read_bytes().splitlines()
    except OSError:
        return
    shared = [found.groups() for line in lines if (found := _SHARED.match(line))]
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
