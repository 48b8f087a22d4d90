"""A process that answers questions by running authors' code.

A question goes there by pickle, answers come back as json: nothing that arrives here can run code.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ianvs.processes.engines.forked import PARENT_DEATH_SIGNAL, prctl
from ianvs.processes.sealing.landlock import confine

__all__ = ["Isolated", "Unanswered", "ask_isolated"]

# It sees the same modules as this process does, and the caller's main script is not run again.
_BOOT = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from ianvs.processes.isolated import main
main()
"""


class Unanswered(Exception):  # noqa: N818 - it is told as a problem of the author's file
    """In words why there is no answer. overran: it took too long."""

    def __init__(self, why: str, *, overran: bool = False) -> None:
        super().__init__(why)
        self.overran = overran


class Isolated:
    """Answers one question after another, from the first to `close`. Who ends it, or never ends, ends it for itself.

    closed: folders that it can't open, but for those in `opened`, where the kernel can see to that. environment:
    variables that it has in place of ours.
    """

    def __init__(
        self, closed: Sequence[Path] = (), opened: Sequence[Path] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        self._confined, self._environment = (closed, opened), {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = ""

    def ask(self, function: str, question: object, seconds: float) -> Any:
        """What `function`, "package.module:name", returns to `question`. Raises Unanswered."""
        [answer] = self.each(function, question, seconds)
        return answer

    def each(self, function: str, question: object, seconds: float) -> Iterator[Any]:
        """What `function` yields to `question`; each answer may take `seconds`. Raises Unanswered."""
        used, told, whole = self._process is not None, False, False
        try:
            self._send((function, question))
            while answer := self._receive(seconds):
                told = True
                yield answer[0]
            whole = True
        except Unanswered as error:
            if told or error.overran or not used:
                raise
            self.close()
        finally:
            if not whole:
                self.close()
        if not whole:  # what was asked before it may have left something that ended the process
            yield from self.each(function, question, seconds)

    def close(self) -> None:
        """End the process, with all that it has started; a further question starts another."""
        if self._process is None:
            return
        _kill(self._process)
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        self._process.stdout.close()  # type: ignore[union-attr]
        self._process.wait()
        self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def _send(self, message: object) -> None:
        if self._process is None:
            self._folder = tempfile.mkdtemp(prefix="ianvs-")
            own = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), self._folder)
            self._process = _boot({**self._environment, **own})
            self._send(self._confined)
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it is gone, which `_receive` tells
            pickle.dump(message, self._process.stdin)
            self._process.stdin.flush()

    def _receive(self, seconds: float) -> list[Any]:
        """[answer], or [] after the last."""
        process, overran = self._process, threading.Event()
        assert process is not None
        assert process.stdout is not None

        def end() -> None:
            overran.set()
            _kill(process)

        timer = threading.Timer(seconds, end)
        timer.start()
        line = process.stdout.readline()
        timer.cancel()
        if line.endswith(b"\n"):
            answer: list[Any] = json.loads(line)
            return answer
        if overran.is_set():
            raise Unanswered(f"took longer than limits.check_seconds: {seconds:g}", overran=True)
        raise Unanswered("ended the process")


def ask_isolated(function: str, question: object, seconds: float) -> Any:
    """`Isolated.ask`, of a process for this question alone."""
    with contextlib.closing(Isolated()) as process:
        return process.ask(function, question, seconds)


def main() -> None:
    """The life of the process."""
    prctl(PARENT_DEATH_SIGNAL, getattr(signal, "SIGKILL", 0))
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # what authors' code prints ends there
        os.dup2(null, stream)
    closed, opened = pickle.load(questions)
    if closed:
        confine(closed, opened)
    while True:
        try:
            function, question = pickle.load(questions)
        except EOFError:
            return
        module, _, name = function.partition(":")
        told = getattr(importlib.import_module(module), name)(question)
        for answer in told if isinstance(told, Iterator) else [told]:
            answers.write(json.dumps([answer]).encode() + b"\n")
            answers.flush()
        answers.write(b"[]\n")
        answers.flush()


def _boot(environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """The process, with questions to its standard input and answers from its standard output."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _BOOT, json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=os.name != "nt",  # so that all that it starts ends with it
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    if os.name == "nt":
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
