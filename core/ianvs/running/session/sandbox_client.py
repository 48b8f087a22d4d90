"""The case's end of one sandbox: starts it, serves it samples, and checks the form of what comes back."""

from __future__ import annotations

import math
import os
import pickle
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from ianvs.base.errors import PluginError
from ianvs.base.types import Predictions
from ianvs.base.visible_text import visible
from ianvs.exam.data.parts import Column
from ianvs.processes.engines.engine import python_command, thread_limits
from ianvs.processes.interpreters.wire import Gone, Message, Peer, RemoteError, unpacked
from ianvs.processes.proc import cpu_seconds
from ianvs.processes.sandbox import Sandbox
from ianvs.running.loop import Model
from ianvs.running.session.feed import Handout
from ianvs.running.session.learner import Ready, State
from ianvs.running.session.measure import Spent
from ianvs.running.session.sandbox_worker import PackedSamples, WorkerInput, main
from ianvs.store import StoredModule
from ianvs.store.files import link_or_copy

_READY, _STATE = TypeAdapter(Ready), TypeAdapter(State)
_MOST_CHARACTERS = 10_000  # of a text that comes from a sandbox
_GRACE_SECONDS = 10.0

Serve = Callable[["SandboxClient", str, Mapping[str, Any]], Message]
"""Answers a call of the sandbox, given the client, the call's name and its arguments."""


class SandboxClient:
    """One process in a sandbox.

    Args:
        sandbox: What every sandbox of the learner contains.
        start: What the worker is started with.
        model: The model that it begins with.
        folder: An existing empty folder for what is served to it and what it saves; removed by `close`.
        serve: Answers its calls.
        trains: Whether it may write its own folder and save a model. Without, answers are all that leaves it.

    Attributes:
        ready: What is known of the learner before its first round.
        state: What the learner stated last.
        pieces: Answers to the last call of `answers`.
        built: Cost of creating the author's objects.
        taught: Whether it was trained.
    """

    def __init__(
        self, sandbox: Sandbox, start: WorkerInput, model: Model, folder: Path, serve: Serve, *, trains: bool
    ) -> None:
        self._folder, self._serve = folder, serve
        self._served, self.model_folder = folder / "served", folder / "model"
        self._served.mkdir()
        self.model_folder.mkdir()
        self._count = 0
        self.pieces: list[Predictions] = []
        self.taught = False
        self.state: State
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
            environment = thread_limits(start.request.threads)
            self._process = subprocess.Popen(
                sandbox.command(command, environment), stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )
        self._peer = Peer(ours, self._answer)
        try:
            with self.spending() as spent:
                facts = self.call("prepare", start=start).body.get("ready")
            self.ready: Ready = _checked(_READY, facts)
            self.built = spent[0]
            if model.modules:
                self.call("restore", model=model)
        except BaseException:
            self.close()
            raise

    def call(self, name: str, **arguments: object) -> Message:
        """Call a method of the worker.

        Raises:
            PluginError: If the sandbox ended, or returned what has another form than it should.
            Exception: What the author's code raised, by `RemoteError`.
        """
        self.pieces = []
        try:
            answer = self._peer.call(name, {}, pickle.dumps(arguments))
        except Gone:
            self._end_as_it_has_ended()
        self.state = _checked(_STATE, answer.body.get("state"))
        return answer

    @contextmanager
    def spending(self) -> Iterator[list[Spent]]:
        """Context manager: afterwards the list has what the sandbox and all its processes have spent within."""
        spent: list[Spent] = []
        before = Spent(time.perf_counter(), cpu_seconds(self._process.pid))
        yield spent
        spent.append(Spent(time.perf_counter(), cpu_seconds(self._process.pid)) - before)

    def serve_samples(self, samples: Handout) -> PackedSamples:
        """Put samples where the sandbox can read them."""
        columns = {name: self.serve_column(column) for name, column in samples.columns.items()}
        return PackedSamples(columns, samples.name, samples.passes, samples.labelled, len(samples))

    def serve_column(self, column: Column) -> Column:
        """Put the rows of a column where the sandbox can read them. Numbers are mapped into its memory."""
        values = column.gather()
        if values.dtype != object:
            path = self._served / f"{self._count}.npy"
            self._count += 1
            np.save(path, values)
            values = np.load(path, mmap_mode="r")
        return Column(values, np.arange(len(values)))

    def close(self) -> None:
        """End the sandbox with all its processes."""
        self._peer.close()
        try:
            self._process.wait(_GRACE_SECONDS)  # it ends by itself when its socket is closed
        except subprocess.TimeoutExpired:
            self._process.kill()  # its processes die with it
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def clear_model_folder(self) -> None:
        """Delete what was saved. The folder itself stays: it is mounted."""
        for path in self.model_folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def stored_modules(self, described: object) -> list[StoredModule]:
        """The modules that `save` has written into `model_folder`. Raises PluginError for anything else there."""
        for path in self.model_folder.rglob("*"):
            if not stat.S_ISREG(path.lstat().st_mode) and not stat.S_ISDIR(path.lstat().st_mode):
                name = path.relative_to(self.model_folder)
                raise PluginError(f"save() left '{name}', which is no plain file.", code="invalid-result")
        try:
            modules = [StoredModule.from_json(one, self.model_folder) for one in described]  # type: ignore[attr-defined]
        except (TypeError, KeyError, AttributeError) as error:
            raise PluginError("save() in the sandbox returned no modules.", code="invalid-result") from error
        for module in modules:
            if module.path is not None and ".." in module.path.parts:
                raise PluginError("save() names a file outside of its folder.", code="invalid-result")
        return modules

    def _answer(self, name: str, message: Message) -> Message:
        if name != "piece":
            return self._serve(self, name, _plain(message.body))
        labels = unpacked(message.held, message.body["labels"])
        extras = {str(key): np.asarray(unpacked(message.held, spec)) for key, spec in message.body["extras"].items()}
        self.pieces.append(Predictions(labels, extras))
        return Message({})

    def _end_as_it_has_ended(self) -> None:
        """End this process by the signal that ended the sandbox, as if the author's code had run here."""
        code = self._process.wait()
        if code > 128:  # bubblewrap's way to tell a signal
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
    """JSON values from a sandbox. Raises RemoteError for an infinite number and for a text that is too long."""
    if isinstance(value, float) and not math.isfinite(value):
        raise RemoteError("ProtocolError", f"the sandbox returned {value}")
    if isinstance(value, str):
        if len(value) > _MOST_CHARACTERS:
            raise RemoteError("ProtocolError", f"the sandbox returned a text of {len(value)} characters")
        return visible(value)
    if isinstance(value, dict):
        return {_plain(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def copied_modules(model: Model, folder: Path, *, link: bool = False) -> list[StoredModule]:
    """Copy the files of a model into an existing folder. link: files that nobody changes, so that links do."""
    if model.folder is not None:
        copy = link_or_copy if link else shutil.copy2
        shutil.copytree(model.folder, folder, dirs_exist_ok=True, symlinks=True, copy_function=copy)
    return [
        replace(
            one, path=None if one.path is None or model.folder is None else folder / one.path.relative_to(model.folder)
        )
        for one in model.modules
    ]
