"""The case's end of a sandbox: starts it, serves samples, and validates the results."""

from __future__ import annotations

import math
import os
import pickle
import select
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from ianvs.base.errors import PluginError
from ianvs.base.types import Predictions
from ianvs.base.visible_text import visible
from ianvs.exam.data.parts import Column
from ianvs.processes.engines.engine import THREADS, python_command
from ianvs.processes.interpreters.wire import Message, Peer, PeerClosedError, RemoteError, unpacked
from ianvs.processes.proc import cpu_seconds, descendants
from ianvs.processes.sandbox import Sandbox
from ianvs.running.loop import Model
from ianvs.running.session.case_learner import LearnerFacts, LearnerState
from ianvs.running.session.feed import ServedSamples
from ianvs.running.session.measure import Spent
from ianvs.running.session.sandbox_worker import PackedSamples, WorkerInput, main
from ianvs.store import StoredModule

_READY, _STATE = TypeAdapter(LearnerFacts), TypeAdapter(LearnerState)
_MODULES = TypeAdapter(list[StoredModule])
_BLOCK_BYTES = 1 << 26  # part of a column in memory while it is packed
_MOST_CHARACTERS = 10_000  # limit of strings from a sandbox

Serve = Callable[["SandboxClient", str, Mapping[str, Any]], Message]
"""Answers a call of the sandbox, given the client, the call's name and its arguments."""


class SandboxClient:
    """One process in a sandbox.

    Args:
        sandbox: The common settings of the learner's sandboxes.
        start: The input of the worker.
        model: The model to load.
        folder: An existing empty folder for served samples and saved models; removed by `close`.
        serve: Answers its calls.
        trains: Whether it may write its own folder and save a model; otherwise it returns only predictions.

    Attributes:
        ready: Facts reported by the learner. Those that the plan knows are ignored.
        trains: As above.
        memory_began: Whether the worker has reported that it creates its objects.
        state: The last state reported by the learner.
        pieces: Predictions of the last `answers` call.
    """

    def __init__(
        self, sandbox: Sandbox, start: WorkerInput, model: Model, folder: Path, serve: Serve, *, trains: bool
    ) -> None:
        self._folder, self._serve = folder, serve
        self._served, self.model_folder = folder / "served", folder / "model"
        self._served.mkdir()
        self.model_folder.mkdir()
        self._count = 0
        self.trains, self.memory_began = trains, False
        self.pieces: list[Predictions] = []
        self.state: LearnerState
        stored = [model.folder] if model.folder is not None and model.modules else []
        sandbox = replace(
            sandbox,
            read_only=(*sandbox.read_only, self._served, *stored, *([] if trains else [start.folder])),
            writable=(self.model_folder, start.folder) if trains else (),
            folder=start.folder,
        )
        ours, theirs = socket.socketpair()
        with theirs:
            command = python_command(f"{main.__module__}:{main.__name__}", str(theirs.fileno()))
            environment = dict.fromkeys(THREADS, str(start.request.threads))
            # Output of an evaluation may contain test samples, so it is discarded.
            output = None if trains else subprocess.DEVNULL
            self._process = subprocess.Popen(
                sandbox.command(command, environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[theirs.fileno()],
            )
        self._peer = Peer(ours, self._answer)
        try:
            self.facts: LearnerFacts = _checked(_READY, self.call("prepare", start=start).body.get("ready"))
            if model.modules:
                self.call("restore", model=model)
        except BaseException:
            self.close()
            raise

    def call(self, name: str, **arguments: object) -> Message:
        """Call a method of the worker.

        Raises:
            PluginError: If the sandbox ended, or returned an invalid result.
            Exception: An error of the plugin's code, as `RemoteError`.
        """
        self.pieces = []
        try:
            answer = self._peer.call(name, {}, pickle.dumps(arguments))
        except PeerClosedError:
            self._exit_like_sandbox()
        self.state = _checked(_STATE, answer.body.get("state"))
        return answer

    @contextmanager
    def spending(self) -> Iterator[list[Spent]]:
        """Context manager: afterwards the list has the time that the sandbox's processes spent inside."""
        spent: list[Spent] = []
        before = Spent(time.perf_counter(), cpu_seconds(self._process.pid))
        yield spent
        spent.append(Spent(time.perf_counter(), cpu_seconds(self._process.pid)) - before)

    def serve_samples(self, samples: ServedSamples) -> PackedSamples:
        """Write samples to files that the sandbox can read."""
        columns = {name: self.serve_column(column) for name, column in samples.columns.items()}
        return PackedSamples(columns, samples.name, samples.passes, samples.labelled, len(samples))

    def serve_column(self, column: Column) -> Column:
        """Write a column to a file that the sandbox can read. Numbers are memory-mapped there."""
        path, count = self._served / f"{self._count}.npy", len(column)
        self._count += 1
        first = column.gather(np.arange(min(count, 1)))
        if first.dtype == object:
            return Column(column.gather(), np.arange(count))
        rows = max(1, _BLOCK_BYTES // max(1, first.nbytes))
        packed = np.lib.format.open_memmap(path, "w+", first.dtype, (count, *first.shape[1:]))
        for start in range(0, count, rows):
            packed[start : start + rows] = column.gather(np.arange(start, min(start + rows, count)))
        packed.flush()
        return Column(np.load(path, mmap_mode="r"), np.arange(count))

    def end(self) -> None:
        """End the sandbox with all its processes, without deleting its folder."""
        self._peer.close()
        with suppress(OSError, StopIteration):  # it has ended by itself
            first = os.pidfd_open(next(descendants(self._process.pid)))  # the first process of its PID namespace
            with suppress(OSError):
                signal.pidfd_send_signal(first, signal.SIGKILL)
            select.select([first], [], [])  # until it and thereby all others have ended
            os.close(first)
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the sandbox, and delete its folder."""
        self.end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def move_model(self, described: object, folder: Path) -> list[StoredModule]:
        """Move the saved model into an existing folder, after `end`.

        Args:
            described: The modules, as described by the sandbox.
            folder: The new base folder of their files.

        Raises:
            PluginError: There is something else than plain files and folders, or the description is invalid.
        """
        for path in self.model_folder.rglob("*"):
            if not stat.S_ISREG(path.lstat().st_mode) and not stat.S_ISDIR(path.lstat().st_mode):
                name = path.relative_to(self.model_folder)
                raise PluginError(f"save() left '{name}', which is no plain file.", code="invalid-result")
        try:
            modules = _MODULES.validate_python(_plain(described))
        except (TypeError, KeyError, AttributeError, ValidationError) as error:
            raise PluginError("save() in the sandbox returned no modules.", code="invalid-result") from error
        for module in modules:
            if module.path is not None and (module.path.is_absolute() or ".." in module.path.parts):
                raise PluginError("save() names a file outside of its folder.", code="invalid-result")
            if module.path is None and module.calls:
                raise PluginError(
                    f"the {module.kind} has no save(), and each round is trained in a new sandbox. "
                    "Give it save() and load().",
                    code="broken-contract",
                )
        for path in self.model_folder.iterdir():
            shutil.move(path, folder / path.name)
        return [replace(stored, path=None if stored.path is None else folder / stored.path) for stored in modules]

    def _answer(self, name: str, message: Message) -> Message:
        if name != "piece":
            return self._serve(self, name, _plain(message.body))
        extras = {
            str(key): np.asarray(unpacked(message.held, spec, files=False))
            for key, spec in message.body["extras"].items()
        }
        labels = unpacked(message.held, message.body["labels"], files=False)
        self.pieces.append(Predictions(labels, extras))
        return Message({})

    def _exit_like_sandbox(self) -> None:
        """End this process by the signal that ended the sandbox, as if the plugin's code had run here."""
        code = self._process.wait()
        if code > 128:  # bubblewrap's exit code for a signal
            number = code - 128
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        raise PluginError(f"the sandbox ended with exit status {code}.", code="failed-plugin")


def _checked(form: TypeAdapter[Any], value: object) -> Any:
    try:
        return form.validate_python(_plain(value))
    except ValidationError as error:
        [first, *_] = error.errors()
        where = ".".join(map(str, first["loc"]))
        raise RemoteError("ProtocolError", f"the sandbox returned an unexpected {where}: {first['msg']}") from None


def _plain(value: Any) -> Any:
    """Validate JSON values from a sandbox. Raises RemoteError for an infinite number or a string that is too long."""
    if isinstance(value, float) and not math.isfinite(value):
        raise RemoteError("ProtocolError", f"the sandbox returned {value}")
    if isinstance(value, str):
        if len(value) > _MOST_CHARACTERS:
            raise RemoteError("ProtocolError", f"the sandbox returned a text of {len(value)} characters")
        return visible(value)
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
