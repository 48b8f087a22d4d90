"""The keeper's handle on a learner: orders, answers of its copies, and what all of it takes by the keeper's clock."""

import os
import shutil
import socket
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ianvs.base.errors import PluginError
from ianvs.processes.proc import children, own_cpu_seconds, threads
from ianvs.processes.sealing.leftovers import SHARED_MEMORY, level_access_times
from ianvs.processes.sealing.peer import Caller, Gone, Handler, Message, Peer, RemoteError
from ianvs.processes.sealing.seal import BY_CALLS
from ianvs.processes.sealing.seccomp import filters
from ianvs.processes.sealing.sibling import can_fork_siblings
from ianvs.processes.sealing.stopped import stopped
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session import measure
from ianvs.running.session.copies import Copy
from ianvs.running.session.learner import LearnerHost
from ianvs.running.session.learner_messages import OF_STREAM, Ready, Saved, State, read
from ianvs.running.session.measure import NOTHING_SPENT, Spent
from ianvs.running.session.processes import LearnerSpawner
from ianvs.running.session.session import Brief
from ianvs.store import StoredModule


class Ended(BaseException):
    """The learner's process is gone. code: its exit code, negative for a signal."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def error_kind(error: Exception) -> str:
    """The name of its class, in whichever process it was raised."""
    return error.kind if isinstance(error, RemoteError) else type(error).__name__


@dataclass(frozen=True)
class Model:
    """What of a learner is stored: for copies that begin from it. folder: None for one that has nothing stored."""

    modules: Sequence[StoredModule] = ()
    folder: Path | None = None


class _Direct(Caller):
    """Calls a handler of this process."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    def ask(self, name: str, told: Message) -> Message:
        return self._handler(name, told._replace(files=tuple(map(os.dup, told.files)))) or Message({})

    def note(self, name: str, body: Mapping[str, object]) -> None:
        self._handler(name, Message(body))


Answering = AbstractContextManager[tuple[Caller, int]]
"""(whom to ask, process id) while it is entered, once."""


class Learner:
    """Who is examined. spent: by training, since `train` was called. scratch: a folder that both sides may write.

    adapts: it has said that it learns while it is tested, once being enough. walls: those that its process lacks, by
    name. Since it was cleared: asked: who has answered, "none" but itself, "forks" or "new processes". missing: what
    these were not kept from, in words. denied: how often they called what sealed ones can't, by name; in an audit.
    """

    walls: tuple[str, ...] = ("files",)

    def __init__(self, request: CaseRequest, peer: Caller, scratch: Path) -> None:
        self.missing: set[str] = set()
        self.denied: Counter[str] = Counter()
        self._request, self._peer, self._scratch = request, peer, scratch
        self.spent = NOTHING_SPENT
        self.asked: set[str] = set()
        self.adapts = False
        self.state: State
        self.ready: Ready

    @property
    def needs_model(self) -> bool:
        """Whether who answers begins from what is stored."""
        return False

    def prepare(self, folder: Path) -> Ready:
        """folder: the place that it may keep files in."""
        self.ready = read(Ready, self._order("ready", {"folder": str(folder)}).body)
        self.instantiate(())
        return self.ready

    def train(self, step: int, valid: Mapping[str, object] | None, files: Sequence[int]) -> None:
        self._stated("train", {"step": step, "valid": valid}, files)

    def measure(self) -> None:
        """Let it measure itself, if it does; its state has what it found."""
        if self.ready.measured:
            self._stated("measure", {})

    def instantiate(self, modules: Sequence[StoredModule]) -> None:
        self._stated("meet", {"modules": [(one.kind, one.instance) for one in modules]})

    def save(self, folder: Path) -> Model:
        """What it is now, stored in `folder`. Raises PluginError for more than the job's limit."""
        with self._own_folder() as own:
            saved = read(Saved, self._order("save", {"folder": str(own)}).body)
            measure.saved_bytes(own, self._request.saved_mb)
            found = []
            for one in saved.modules:
                path = None if one.path is None else folder / one.path
                inside = path is not None and path.resolve().is_relative_to(folder.resolve())
                found.append(replace(one, path=path if inside else None))
            for path in own.iterdir():
                shutil.move(path, folder / path.name)
        return Model(found, folder)

    def restore(self, model: Model, *, taught: bool = True, anew: bool = False) -> None:
        """Bring back what was saved. anew: in new objects of the author's classes."""
        with self._lent(model) as told:
            self._stated("restore", {**told, "taught": taught, "anew": anew})

    @contextmanager
    def answering(self, model: Model) -> Iterator[tuple[Caller, int]]:
        """(whom to ask, process id) of who answers as the learner is now, which was saved as `model`."""
        self.asked.add("none")
        with self.itself() as found:
            yield found

    def itself(self) -> Answering:
        """The learner, asked for nothing that counts."""
        return nullcontext((self._peer, os.getpid()))

    def clear(self) -> None:
        """Forget who was asked, and what they did."""
        self.asked.clear()
        self.missing.clear()
        self.denied.clear()

    def close(self) -> None:
        """Nothing more is asked of it."""

    def unasked(self) -> Spent:
        """What it has taken since it was asked for something last."""
        return NOTHING_SPENT

    def peak_bytes(self) -> int:
        return measure.peak_host_bytes()

    def cpu_seconds(self) -> float:
        """Of its process, and of those that its plugins live in, so far."""
        return own_cpu_seconds()

    def apart(self) -> AbstractContextManager[None]:
        """What is done within is not counted as its training."""
        return nullcontext()

    def _order(self, name: str, body: Mapping[str, object], files: Sequence[int] = ()) -> Message:
        return self._peer.call(name, body, files)

    def _stated(self, name: str, body: Mapping[str, object], files: Sequence[int] = ()) -> None:
        self.state = read(State, self._order(name, body, files).body)
        self.adapts = self.adapts or self.state.adapts

    @contextmanager
    def _own_folder(self) -> Iterator[Path]:
        self._scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="model-", dir=self._scratch) as folder:
            yield Path(folder)

    @contextmanager
    def _lent(self, model: Model) -> Iterator[dict[str, Any]]:
        """What is stored, copied to where the learner can read it."""
        with self._own_folder() as own:
            if model.folder is not None:
                shutil.copytree(model.folder, own, symlinks=True, dirs_exist_ok=True)  # a link may lead to the exam
            yield {"folder": str(own), "modules": [one.told(model.folder or own) for one in model.modules]}


class InlineLearner(Learner):
    """In this very process: nothing is kept from it."""

    def __init__(self, request: CaseRequest, brief: Brief, scratch: Path, handler: Handler) -> None:
        host = LearnerHost(request, brief)
        host.connect(_Direct(handler))
        super().__init__(request, _Direct(host), scratch)

    def train(self, step: int, valid: Mapping[str, object] | None, files: Sequence[int]) -> None:
        with measure.Stopwatch() as watch:
            super().train(step, valid, files)
        self.spent = watch.spent


class SealedLearner(Learner):
    """In a process of its own, from which the exam is kept."""

    def __init__(
        self,
        request: CaseRequest,
        brief: Brief,
        scratch: Path,
        handler: Handler,
        spawner: LearnerSpawner,
        closed: Sequence[Path],
    ) -> None:
        self._brief, self._spawner, self._folders, self._handler = brief, spawner, closed, handler
        self._own = [scratch, scratch.parent / "files"]
        for folder in self._own:
            folder.mkdir(parents=True, exist_ok=True)
        try:
            end, self.pid, self.walls = spawner.spawn(brief, closed, self._own)
        except Gone:
            raise Ended(-9) from None
        self._timer = measure.Meter(self.pid, spawner.pid)
        self._end, self._met = Peer(end, self._handled), False
        try:
            self._end.answer()
        except Gone:
            raise self._ended(self.pid) from None
        self._filters = filters(self.pid)  # before any code of its author runs
        super().__init__(request, self._end, scratch)

    def train(self, step: int, valid: Mapping[str, object] | None, files: Sequence[int]) -> None:
        self._timer.start()
        try:
            super().train(step, valid, files)
        finally:
            self.spent = self._timer.stop()

    @contextmanager
    def answering(self, model: Model) -> Iterator[tuple[Caller, int]]:
        if self.adapts:
            self.asked.add("none")
            yield self._end, self.pid
        elif self._forkable:
            self.asked.add("forks")
            with self.forked() as found:
                yield found
        else:
            self.asked.add("new processes")
            _require_saved(model)
            with self.fresh(model) as found:
                yield found

    def close(self) -> None:
        self._end.close()

    def unasked(self) -> Spent:
        return Spent(0.0, self._timer.unasked() if "new processes" in self.asked else 0.0)

    def peak_bytes(self) -> int:
        return sum(map(measure.peak_host_bytes, self._processes()))

    def cpu_seconds(self) -> float:
        return sum(map(own_cpu_seconds, self._processes()))

    def _processes(self) -> list[int]:
        """Its own, and those of another interpreter that its plugins live in."""
        return [self.pid, *(children(self.pid) if self._request.algorithm.python is not None else ())]

    def apart(self) -> AbstractContextManager[None]:
        return self._timer.paused()

    def _order(self, name: str, body: Mapping[str, object], files: Sequence[int] = ()) -> Message:
        try:
            reply = super()._order(name, body, files)
        except Gone:
            raise self._ended(self.pid) from None
        self._timer.idle()
        return reply

    def _handled(self, name: str, told: Message) -> Message | None:
        if name == "sealed" and not self._met:
            self._met = True
            for printed in told.files:
                self._spawner.attend(printed)
            return None
        if name in OF_STREAM:  # so short that to look at the clocks would take longer; see StreamKeeper
            return self._handler(name, told)
        with self._timer.paused():
            return self._handler(name, told)

    @property
    def needs_model(self) -> bool:
        return not self.adapts and not self._forkable

    @property
    def _forkable(self) -> bool:
        """A fork shares what its learner has, and its learner's code could keep it from letting go of that."""
        return self._request.sealing != "strict" and self.can_be_compared

    @property
    def can_be_compared(self) -> bool:
        """Whether a fork of its process is what it is: with one thread, no accelerator, and no filter of its own."""
        if self._request.algorithm.python is not None:
            return False  # a fork would share what its plugins live in
        alone = len(threads(self.pid)) == 1 and filters(self.pid) == self._filters
        return self.ready.device == "cpu" and alone and can_fork_siblings()

    @contextmanager
    def forked(self) -> Iterator[tuple[Caller, int]]:
        """Who answers as it is now; only where it `can_be_compared`."""
        with ExitStack() as still, self._spawner.copy_folder(self.pid) as folder:
            ours, theirs = socket.socketpair()
            with theirs:
                self._order("answer", {"quiet": True, "folder": folder}, [theirs.fileno()])
            with self._attended(ours, still) as copy:
                if self._request.sealing != "open" and not filters(self.pid) == self._filters < filters(copy.pid):
                    self.missing.add(BY_CALLS)  # a handler of a signal may have put one on meanwhile
                yield copy.calls, copy.pid

    @contextmanager
    def fresh(self, model: Model) -> Iterator[tuple[Caller, int]]:
        """Who answers as it comes back from what was saved."""
        with ExitStack() as still, self._lent(model) as told:
            end, _, _ = self._spawner.spawn(self._brief, self._folders, [Path(told["folder"])], copy=True)
            with self._attended(end, still) as copy:
                copy.calls.call("ready", {"folder": str(self._own[1])})
                if model.modules:
                    copy.calls.call("restore", {**told, "taught": True, "anew": False})
                yield copy.calls, copy.pid

    @contextmanager
    def _attended(self, end: socket.socket, still: ExitStack) -> Iterator[Copy]:
        """A copy at the other end. Until `still` is left, the learner and all that it has started stand still.

        Then it finds one time of access on all that it may write, whatever the copy has read.
        """
        copy = Copy(end, self._handler, self._spawner)
        try:
            with copy:
                if self._request.sealing != "open":
                    still.enter_context(stopped(self._spawner.pid, {copy.pid}))
                    still.callback(level_access_times, [*self._own, self._spawner.temporary(self.pid), SHARED_MEMORY])
                self.missing |= copy.missing
                yield copy
        except Gone:
            raise Ended(copy.code or 1) from None
        finally:
            self.denied += copy.denied

    def _ended(self, pid: int) -> Ended:
        try:
            return Ended(self._spawner.ended(pid))
        except Gone:
            return Ended(-9)


def _require_saved(model: Model) -> None:
    """Raise PluginError unless a new process can begin where the learner is: all that was taught has to be saved."""
    for one in model.modules:
        if one.path is None and (one.calls or one.kind == "basemodel"):
            raise PluginError(
                f"the {one.kind} has no save(), and its process can't be forked to answer (it has several threads or a "
                "card, or the job says `sealing: strict`). What can't be copied can't be examined: give it save() and "
                "load(). A method that learns while it is tested says `adapts_in_testing = True` (docs/trust.md).",
                code="broken-contract",
            )
