"""Runs functions on untrusted files in a subprocess.

Arguments are sent by pickle, results come back as JSON, so that results can't run code in this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import pkgutil
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

from ianvs.processes.engines.engine import Engine, Reporter, Task, python_command
from ianvs.processes.engines.forked import PARENT_DEATH_SIGNAL, close_all_but, log_to, prctl
from ianvs.processes.process_end import PipeTail, describe_end, log_end
from ianvs.processes.sandbox import Sandbox

_POLL_SECONDS, _CONNECT_SECONDS = 0.5, 10.0
_END_SECONDS = 5.0  # for a process that has closed its files to end
_ENDED = "terminated its process"
_BOOT_SECONDS = 600.0  # start-up of a process, before plugin code runs, so no limit of the job applies


class IsolatedCallError(Exception):
    """Raised if a call has no result. overran: it exceeded its time limit."""

    def __init__(self, reason: str, *, overran: bool = False) -> None:
        super().__init__(reason)
        self.overran = overran


class IsolatedCaller:
    """Calls functions in a subprocess, one after another. If a call crashes or times out, the next gets a new process.

    Args:
        environment: Environment variables that override those of this process.
        engine: Returns an open engine that forks the process, or None: then Python is started.
        sandbox: The sandbox to run in; the process is then not forked by an engine.
    """

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        engine: Callable[[], Engine | None] = lambda: None,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._environment, self._engine, self._sandbox = environment or {}, engine, sandbox
        self._process: _Process | None = None

    def call_iter(self, function: str, question: object, seconds: float) -> Iterator[Any]:
        """Yield the results of a function.

        Args:
            function: "package.module:name"; a generator function has several results.
            question: Its argument.
            seconds: That each result may take.

        Raises:
            IsolatedCallError: There is no result.
        """
        had_process, has_result = self._process is not None, False
        try:
            if self._process is None:
                engine = self._engine() if self._sandbox is None else None
                if engine is None:
                    self._process = _spawn(self._environment, self._sandbox)
                else:
                    self._process = _fork(engine, self._environment)
                _receive(self._process, _BOOT_SECONDS)
            process = self._process
            with contextlib.suppress(OSError):
                process.forget_output()
            with contextlib.suppress(OSError):  # if it has ended, `_receive` raises
                pickle.dump((function, question), process.questions)
                process.questions.flush()
            while answer := _receive(process, seconds):
                has_result = True
                yield answer[0]
            return
        except BaseException as error:  # also GeneratorExit, if the caller stops early
            self.close()
            if has_result or not had_process or not isinstance(error, IsolatedCallError) or error.overran:
                raise
        # Retry once: an earlier call may have damaged the process.
        yield from self.call_iter(function, question, seconds)

    def close(self) -> None:
        """End the process and its children; a further call starts a new one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for file in (process.questions, process.answers):
                with contextlib.suppress(OSError):
                    file.close()
            process.wait_and_clean_up()


class InThisProcess:
    """`IsolatedCaller` without a subprocess, for debugging: breakpoints work, and there are no time limits."""

    def call_iter(self, function: str, question: object, seconds: float) -> Iterator[Any]:
        """Yield the results of `function`, converted as in a transfer. Raises IsolatedCallError."""
        try:
            for answer in _results_of(function, question):
                yield json.loads(json.dumps(answer))
        except SystemExit as error:
            raise IsolatedCallError(f"{_ENDED} ({_exit_text(error)})") from None

    def close(self) -> None:
        """Do nothing: there is no process to end."""


def ask_isolated(function: str, question: object, seconds: float) -> Any:
    """Call a function in a subprocess that is used only once."""
    with contextlib.closing(IsolatedCaller()) as process:
        [answer] = process.call_iter(function, question, seconds)
        return answer


def main() -> None:
    """Serve calls from standard input, in a process of its own."""
    prctl(PARENT_DEATH_SIGNAL, getattr(signal, "SIGKILL", 0))
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    log_to(os.dup(2))
    _serve(questions, answers)


def serve_calls(address: str, _: Reporter) -> None:
    """Serve calls from the socket at `address`, as a task of an engine."""
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(address)
        close_all_but({channel.fileno()})  # plugin code must not write to the engine
        _serve(channel.makefile("rb"), channel.makefile("wb"))


def _results_of(function: str, question: object) -> Iterator[Any]:
    """Yield the results of a generator function, or the value of another one."""
    result = pkgutil.resolve_name(function)(question)
    yield from result if isinstance(result, Iterator) else [result]


def _serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    from ianvs.processes.interpreters.author_object import end_with_workers

    end_with_workers()

    def answer(line: object) -> None:
        answers.write(json.dumps(line).encode() + b"\n")
        answers.flush()

    answer([])  # ready
    while True:
        try:
            function, question = pickle.load(questions)
        except EOFError:
            return
        try:
            for line in chain(([result] for result in _results_of(function, question)), [[]]):
                answer(line)
        except SystemExit as error:
            sys.stdout.flush()
            answer({"exit": _exit_text(error)})
            return


def _exit_text(error: SystemExit) -> str:
    """Return "plugin.py:4: sys.exit(1)"."""
    from ianvs.processes.interpreters.wire import error_text

    return error_text(error).removesuffix(" ends the process")


@dataclass(frozen=True)
class _Process:
    """A subprocess.

    Attributes:
        questions: Its input.
        answers: Its results.
        kill: Kills its process group.
        output: The end of what it has printed since the last call of `forget_output`.
        exit_code: Waits for its end, for a moment, and returns the exit code; None if that is unknown.
        wait_and_clean_up: Reaps it and deletes its temporary files.
    """

    questions: IO[bytes]
    answers: IO[bytes]
    kill: Callable[[], None]
    output: Callable[[], str]
    forget_output: Callable[[], object]
    exit_code: Callable[[], int | None]
    wait_and_clean_up: Callable[[], None]

    def end_text(self, *, with_code: bool = True) -> str:
        """Describe its end. with_code: whether the exit code says something."""
        code = self.exit_code()
        return describe_end(code if with_code else None, self.output())


def _spawn(environment: Mapping[str, str], sandbox: Sandbox | None) -> _Process:
    folder = tempfile.mkdtemp(prefix="ianvs-")
    command = python_command(f"{__name__}:{main.__name__}")
    options: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    if sandbox is None:
        options["env"] = {**os.environ, **environment, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder)}
    else:
        command = sandbox.command(command, environment)
    try:
        process = subprocess.Popen(command, start_new_session=True, **options)
    except OSError as error:
        if sandbox is None:
            raise
        raise IsolatedCallError(f"needs a sandbox, which can't be started ({error})") from error
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None

    def kill() -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()

    def exit_code() -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(_END_SECONDS)
        return None

    def forget() -> None:
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)

    printed = PipeTail(process.stderr)
    return _Process(process.stdin, process.stdout, kill, printed.text, printed.begin, exit_code, forget)


def _fork(engine: Engine, environment: Mapping[str, str]) -> _Process:
    """Start it as a task of `engine`, which has done slow imports already and kills the children of a task."""
    key = f"ianvs-{uuid.uuid4().hex}"
    descriptor, name = tempfile.mkstemp(prefix="ianvs-", suffix=".log")
    os.close(descriptor)
    log = Path(name)
    codes: list[int] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{key}")
        listener.listen(1)
        target = f"{__name__}:{serve_calls.__name__}"
        engine.submit(Task(key, target, f"\0{key}", log=log, environment=environment))
        while not any(event.key == key for event in engine.events(_POLL_SECONDS)):  # until it has started or ended
            pass
        listener.settimeout(_CONNECT_SECONDS)
        try:
            channel, _ = listener.accept()
        except TimeoutError:
            log.unlink()
            raise IsolatedCallError(_ENDED) from None
    questions, answers = channel.makefile("wb"), channel.makefile("rb")
    channel.close()  # closed with the second file object

    def exit_code() -> int | None:
        latest = time.monotonic() + _END_SECONDS
        while not codes and time.monotonic() < latest:
            codes.extend(event.payload for event in engine.events(_POLL_SECONDS) if (event.key, event.kind) == ended)
        return codes[0] if codes else None

    ended = (key, "ended")
    kill, forget_output = partial(engine.cancel, key, force=True), partial(os.truncate, log, 0)
    return _Process(questions, answers, kill, partial(log_end, log), forget_output, exit_code, log.unlink)


def _receive(process: _Process, seconds: float) -> list[Any]:
    """Return [result], or [] after the last one and when the process is ready."""
    latest = time.monotonic() + seconds
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    line = b""
    try:
        line = process.answers.readline()
    except ConnectionError:  # it ended before it read the call
        pass
    finally:
        timer.cancel()
    if line.endswith(b"\n"):
        with contextlib.suppress(ValueError):  # plugin code may have written other output
            answer: list[Any] | dict[str, str] = json.loads(line)
            if isinstance(answer, list):
                return answer
            raise IsolatedCallError(f"{_ENDED} ({answer.get('exit')}{process.end_text(with_code=False)})")
    if time.monotonic() >= latest:
        raise IsolatedCallError(f"exceeded limits.check_seconds ({seconds:g} s)", overran=True)
    raise IsolatedCallError(f"{_ENDED} ({process.end_text()})")
