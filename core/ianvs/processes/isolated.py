"""A process that answers questions by running authors' code.

A question goes there by pickle, answers come back as json: nothing that arrives here can run code.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any

from ianvs.processes.engines.engine import Engine, Reporter, Task, call_target, python_command, start_python
from ianvs.processes.engines.forked import PARENT_DEATH_SIGNAL, close_all_but, prctl, redirect
from ianvs.processes.sandbox import Sandbox

_TICK, _CONNECT_SECONDS = 0.5, 10.0
_STREAMS: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
_BOOT_SECONDS = 600.0  # of a process that starts: nothing of an author's runs yet, so it counts towards no limit


class Unanswered(Exception):  # noqa: N818 - it is told as a problem of the author's file
    """In words why there is no answer. overran: it took too long."""

    def __init__(self, why: str, *, overran: bool = False) -> None:
        super().__init__(why)
        self.overran = overran


class Isolated:
    """Answers one question after another. Who ends it, or never ends, does so for itself: the next has another process.

    environment: variables that it has in place of ours. engine: asked, whenever a process is needed, for an open engine
    that forks it; without one, or for None, python is started. sandbox: in which the process runs; no engine forks it
    then.
    """

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        engine: Callable[[], Engine | None] = lambda: None,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._environment, self._engine, self._sandbox = environment or {}, engine, sandbox
        self._process: _Process | None = None

    def ask(self, function: str, question: object, seconds: float) -> Any:
        """What `function`, "package.module:name", returns to `question`. Raises Unanswered."""
        [answer] = self.each(function, question, seconds)
        return answer

    def each(self, function: str, question: object, seconds: float) -> Iterator[Any]:
        """What `function` yields to `question`; each answer may take `seconds`. Raises Unanswered."""
        used, answered = self._process is not None, False
        try:
            process = self._process = self._process or self._started()
            _send(process, (function, question))
            while answer := _received(process, seconds):
                answered = True
                yield answer[0]
            return
        except BaseException as error:  # whoever wants no more answers has it ended, too
            self.close()
            if answered or not used or not isinstance(error, Unanswered) or error.overran:
                raise
        # What was asked before may have left something that ended the process.
        yield from self.each(function, question, seconds)

    def close(self) -> None:
        """End the process, with all that it has started; a further question starts another."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def _started(self) -> _Process:
        engine = self._engine() if self._sandbox is None else None
        if engine is None:
            process = _spawned(self._environment, self._sandbox)
        else:
            process = _forked(engine, self._environment)
        try:
            _received(process, _BOOT_SECONDS)
        except BaseException:
            process.end()
            raise
        return process


class InThisProcess:
    """Answers as `Isolated` does, in this very process: breakpoints work, and no limit holds."""

    def ask(self, function: str, question: object, seconds: float) -> Any:
        """Return what `function` returns. Raises Unanswered."""
        [answer] = self.each(function, question, seconds)
        return answer

    def each(self, function: str, question: object, seconds: float) -> Iterator[Any]:
        """Yield what `function` yields, in the form that it has after a transfer. Raises Unanswered."""
        try:
            for answer in _answers_of(function, question):
                yield json.loads(json.dumps(answer))
        except SystemExit:
            raise Unanswered("ended the process") from None

    def close(self) -> None:
        """Do nothing: there is no process to end."""


def ask_isolated(function: str, question: object, seconds: float) -> Any:
    """`Isolated.ask`, of a process for this question alone."""
    with contextlib.closing(Isolated()) as process:
        return process.ask(function, question, seconds)


def main() -> None:
    """The life of a process that was started for it."""
    prctl(PARENT_DEATH_SIGNAL, getattr(signal, "SIGKILL", 0))
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    redirect(os.open(os.devnull, os.O_WRONLY))
    _answer(questions, answers)


def answer_at(address: str, _: Reporter) -> None:
    """The life of a task of an engine; questions come from the socket at `address`."""
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(address)
        close_all_but({channel.fileno()})  # authors' code could write to the engine
        _answer(channel.makefile("rb"), channel.makefile("wb"))


def _answers_of(function: str, question: object) -> Iterator[Any]:
    """What the function yields, or the one value that it returns."""
    result = call_target(function)(question)
    yield from result if isinstance(result, Iterator) else [result]


def _answer(questions: IO[bytes], answers: IO[bytes]) -> None:
    answers.write(b"[]\n")  # ready
    answers.flush()
    while True:
        try:
            function, question = pickle.load(questions)
        except EOFError:
            return
        for line in chain(([answer] for answer in _answers_of(function, question)), [[]]):
            answers.write(json.dumps(line).encode() + b"\n")
            answers.flush()


@dataclass(frozen=True)
class _Process:
    """kill: ends it and all that it has started. forget: waits for it, and leaves nothing of it."""

    questions: IO[bytes]
    answers: IO[bytes]
    kill: Callable[[], None]
    forget: Callable[[], None] = lambda: None

    def end(self) -> None:
        self.kill()
        for file in (self.questions, self.answers):
            with contextlib.suppress(OSError):
                file.close()
        self.forget()


def _boot(environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A process with questions to its standard input and answers from its standard output."""
    return start_python(f"{__name__}:{main.__name__}", env=environment, **_STREAMS)


def _boot_in(sandbox: Sandbox, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """The same in a sandbox."""
    command = sandbox.command(python_command(f"{__name__}:{main.__name__}"), environment)
    try:
        process: subprocess.Popen[bytes] = subprocess.Popen(command, start_new_session=True, **_STREAMS)
        return process
    except OSError as error:
        raise Unanswered(f"needs a sandbox, which can't be started ({error})") from error


def _spawned(environment: Mapping[str, str], sandbox: Sandbox | None) -> _Process:
    folder = tempfile.mkdtemp(prefix="ianvs-")
    if sandbox is None:
        process = _boot({**os.environ, **environment, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder)})
    else:
        process = _boot_in(sandbox, environment)
    assert process.stdin is not None and process.stdout is not None

    def kill() -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()

    def forget() -> None:
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)

    return _Process(process.stdin, process.stdout, kill, forget)


def _forked(engine: Engine, environment: Mapping[str, str]) -> _Process:
    """A task of `engine`, which has imported already what takes seconds; the engine ends what a task leaves behind."""
    key = f"ianvs-{uuid.uuid4().hex}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{key}")
        listener.listen(1)
        engine.submit(Task(key, f"{__name__}:{answer_at.__name__}", f"\0{key}", environment=environment))
        while not any(event.key == key for event in engine.events(_TICK)):  # it has begun, or ended
            pass
        listener.settimeout(_CONNECT_SECONDS)
        try:
            channel, _ = listener.accept()
        except TimeoutError:
            raise Unanswered("ended the process") from None
    questions, answers = channel.makefile("wb"), channel.makefile("rb")
    channel.close()  # with the last of the two files

    return _Process(questions, answers, lambda: engine.cancel(key, force=True))


def _send(process: _Process, message: object) -> None:
    with contextlib.suppress(OSError):  # it is gone, which `_received` tells
        pickle.dump(message, process.questions)
        process.questions.flush()


def _received(process: _Process, seconds: float) -> list[Any]:
    """[answer], or [] after the last, and when the process has started."""
    latest = time.monotonic() + seconds
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    line = b""
    try:
        line = process.answers.readline()
    except ConnectionError:  # it has ended with a question unread
        pass
    finally:
        timer.cancel()
    if line.endswith(b"\n"):
        with contextlib.suppress(ValueError):  # what authors' code has written there
            answer: list[Any] = json.loads(line)
            return answer
    if time.monotonic() >= latest:
        raise Unanswered(f"took longer than limits.check_seconds: {seconds:g}", overran=True)
    raise Unanswered("ended the process")
