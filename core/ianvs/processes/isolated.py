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
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ianvs.processes.engines.forked import PARENT_DEATH_SIGNAL, prctl
from ianvs.processes.sealing.landlock import confine

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
    """Answers one question after another. Who ends it, or never ends, does so for itself: the next has another process.

    closed: folders that it can't open, but for those in `opened`, where the kernel can see to that. environment:
    variables that it has in place of ours.
    """

    def __init__(
        self, closed: Sequence[Path] = (), opened: Sequence[Path] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        self._confined, self._environment = (closed, opened), {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = ""  # of its temporary files

    def ask(self, function: str, question: object, seconds: float) -> Any:
        """What `function`, "package.module:name", returns to `question`. Raises Unanswered."""
        [answer] = self.each(function, question, seconds)
        return answer

    def each(self, function: str, question: object, seconds: float) -> Iterator[Any]:
        """What `function` yields to `question`; each answer may take `seconds`. Raises Unanswered."""
        used, told = self._process is not None, False
        try:
            process = self._process = self._process or self._started()
            _send(process, (function, question))
            while answer := _received(process, seconds):
                told = True
                yield answer[0]
            return
        except BaseException as error:  # whoever wants no more answers has it ended, too
            self.close()
            if told or not used or not isinstance(error, Unanswered) or error.overran:
                raise
        # What was asked before may have left something that ended the process.
        yield from self.each(function, question, seconds)

    def close(self) -> None:
        """End the process, with all that it has started; a further question starts another."""
        if self._process is not None:
            _kill(self._process)
            with contextlib.suppress(OSError), self._process:  # which waits for it, and closes the pipes
                self._process = None
            shutil.rmtree(self._folder, ignore_errors=True)

    def _started(self) -> subprocess.Popen[bytes]:
        self._folder = tempfile.mkdtemp(prefix="ianvs-")
        process = _boot({**self._environment, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), self._folder)})
        _send(process, self._confined)
        return process


def ask_isolated(function: str, question: object, seconds: float) -> Any:
    """`Isolated.ask`, of a process for this question alone."""
    with contextlib.closing(Isolated()) as process:
        return process.ask(function, question, seconds)


def main() -> None:
    """The life of the process."""
    prctl(PARENT_DEATH_SIGNAL, getattr(signal, "SIGKILL", 0))
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "w")
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
            print(json.dumps([answer]), file=answers, flush=True)
        print("[]", file=answers, flush=True)


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


def _send(process: subprocess.Popen[bytes], message: object) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it is gone, which `_received` tells
        pickle.dump(message, process.stdin)
        process.stdin.flush()


def _received(process: subprocess.Popen[bytes], seconds: float) -> list[Any]:
    """[answer], or [] after the last."""
    assert process.stdout is not None
    latest = time.monotonic() + seconds
    timer = threading.Timer(seconds, _kill, [process])
    timer.start()
    try:
        line = process.stdout.readline()
    finally:
        timer.cancel()
    if line.endswith(b"\n"):
        with contextlib.suppress(ValueError):  # what authors' code has written there
            answer: list[Any] = json.loads(line)
            return answer
    if time.monotonic() >= latest:
        raise Unanswered(f"took longer than limits.check_seconds: {seconds:g}", overran=True)
    raise Unanswered("ended the process")


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
