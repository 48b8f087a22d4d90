"""The sandboxed end of a learner: creates the plugin's objects and serves the calls of the case.

It is started by `ianvs.running.session.sandboxed_learner` inside of a sandbox, once for each round and for each
evaluation. Its input comes from the case and may be pickled; its results are JSON and plain arrays.
"""

from __future__ import annotations

import contextlib
import pickle
import signal
import socket
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ianvs.base.errors import IanvsError
from ianvs.exam.data.parts import Column
from ianvs.plugins.authors_files import imports_from
from ianvs.processes.interpreters.wire import (
    Message,
    Peer,
    PeerClosedError,
    RemoteError,
    error_kind,
    error_text,
    packed,
)
from ianvs.running.loop import Model
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session.case_learner import Query
from ianvs.running.session.learner import LocalLearner
from ianvs.running.session.memory_meter import MemoryMeter
from ianvs.running.session.session import ExamInfo, FeedCall, ServedRounds
from ianvs.store import StoredModule


@dataclass(frozen=True)
class PackedSamples:
    """Samples that are served to a sandbox, in files that are mounted there.

    Attributes:
        columns: "x", "y" and "ids", each of which opens its file by path.
        name: Their name in errors.
        passes: How often the learner may iterate over them; None: without limit.
        labelled: Whether it sees their labels.
        size: Number of samples.
    """

    columns: Mapping[str, Column]
    name: str
    passes: int | None
    labelled: bool
    size: int

    def __len__(self) -> int:
        return self.size


@dataclass(frozen=True)
class WorkerInput:
    """The input of a worker.

    Attributes:
        request: The case, without paths of the workspace, identity, provenance and secrets.
        brief: The facts of the exam that a learner may know.
        files: The plugin's planned source files, by path.
        folder: The learner's own folder.
    """

    request: CaseRequest
    brief: ExamInfo
    files: Mapping[Path, bytes]
    folder: Path


def main(descriptor: str) -> None:
    """Serve calls from the inherited socket until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is handled by the case
    with contextlib.ExitStack() as stack, contextlib.suppress(PeerClosedError):
        _Worker(socket.socket(fileno=int(descriptor)), stack).serve()


class _Source:
    """Requests training data from the case. Implements `Source` of `ianvs.running.session.session`."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def serve(self, request: FeedCall) -> ServedRounds:
        """Return the requested rounds, as far as the rules of the exam allow."""
        answer = self._peer.call("serve", {**vars(request), "share": list(request.share)})
        served: ServedRounds = pickle.loads(answer.held)
        return served

    def progress(self, round_: int, fraction: float, rounds: int | None, numbers: Mapping[str, float]) -> None:
        self._peer.call("progress", {"round": round_, "fraction": fraction, "rounds": rounds, "numbers": dict(numbers)})


class _Memory(MemoryMeter):
    """A dummy meter: the case measures the memory of the sandbox from outside."""

    def __init__(self, peer: Peer) -> None:  # it measures nothing by itself
        self._peer = peer

    def begin(self) -> None:
        """Tell the case to start measuring."""
        self._peer.call("memory_begins")


class _Worker:
    """Holds the learner. Each public method is a call of the case: keyword arguments in, a message out."""

    def __init__(self, end: socket.socket, stack: contextlib.ExitStack) -> None:
        self._peer, self._stack = Peer(end, self._answer), stack
        self._model = Model()
        self._learner: LocalLearner

    def serve(self) -> None:
        self._peer.serve()

    def prepare(self, start: WorkerInput) -> Message:
        for context in (imports_from(start.files), contextlib.chdir(start.folder)):
            self._stack.enter_context(context)
        self._learner = LocalLearner(start.request, start.brief, _Memory(self._peer))
        ready = self._learner.prepare(start.folder)
        self._learner.learn_from(_Source(self._peer))
        return self._reply(
            {"ready": {**vars(ready), "measures": {n: vars(measure) for n, measure in ready.measures.items()}}}
        )

    def restore(self, model: Model) -> Message:
        self._model = model
        self._learner.restore(model)
        return self._reply()

    def instantiate(self, modules: Sequence[StoredModule]) -> Message:
        count = self._learner.instantiate(modules)
        return self._reply({"count": count})

    def train(self, step: int, valid: PackedSamples | None) -> Message:
        self._learner.train(step, valid)  # type: ignore[arg-type]
        return self._reply()

    def save(self, folder: Path) -> Message:
        model = self._learner.save(folder)
        return self._reply({"modules": [module.to_json(folder) for module in model.modules]})

    def measure(self) -> Message:
        self._learner.measure()
        return self._reply()

    def answers(self, query: Query) -> Message:
        """Send predictions piece by piece, since all of them together may be large."""
        for answer in self._learner.answers(query, self._model):
            held = bytearray()
            extras = {name: packed(np.asarray(values), held, files=False) for name, values in answer.extras.items()}
            labels = packed(answer.labels, held, files=False)
            self._peer.call("piece", {"labels": labels, "extras": extras}, held)
        return self._reply()

    def _reply(self, body: Mapping[str, object] | None = None) -> Message:
        return Message({**(body or {}), "state": vars(self._learner.state)})

    def _answer(self, name: str, message: Message) -> Message:
        arguments = pickle.loads(message.held) if message.held else {}
        try:
            answer: Message = getattr(self, name)(**arguments)
            return answer
        except IanvsError:
            raise
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            raise RemoteError(error_kind(error), error_text(error)) from error  # type: ignore[arg-type]
