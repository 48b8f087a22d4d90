"""How a process ended, in words: its exit status or signal, where in an author's file, and the end of its output."""

import contextlib
import os
import re
import signal
import threading
from pathlib import Path
from typing import IO

from ianvs.base.secrets import replaced, secret_spans
from ianvs.plugins.authors_files import is_installed

_LINES, _CHARACTERS = 3, 300  # of the output
_READ = 50_000  # bytes from the end of a log
_STACK = "Fatal Python error: "  # of faulthandler
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_PACKAGE = str(Path(__file__).resolve().parent.parent)


def describe_end(code: int | None, output: str = "") -> str:
    """Describe the end of a process.

    Args:
        code: Its exit code, negative for the signal that killed it; None: unknown.
        output: What it printed. The stack of faulthandler in it is replaced by the line of the author's file.

    Returns:
        As in "exit status 3", or "killed by SIGSEGV at plugin.py:4", perhaps with "; the end of its output: ...".
    """
    printed, _, stack = output.partition(_STACK)
    if stack and code is not None and code > 128:  # a sandbox ends with 128 and the signal that killed its process
        code = 128 - code
    how = "" if code is None else f"exit status {code}" if code >= 0 else f"killed by {signal_name(-code)}"
    return how + (_place(stack) if how else "") + _shown_end(printed)


class PipeTail(threading.Thread):
    """Reads what a process prints into a pipe, and keeps the last part of it."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._pipe, self._held = pipe, b""
        self.start()

    def run(self) -> None:
        with self._pipe, contextlib.suppress(OSError, ValueError):
            while block := os.read(self._pipe.fileno(), _READ):
                self._held = (self._held + block)[-_READ:]

    def begin(self) -> None:
        """Forget what was printed so far."""
        self._held = b""

    def text(self) -> str:
        """Return the end of what was printed since `begin`, by a process that has ended."""
        self.join(1.0)  # children of the process may have the pipe open
        return self._held.decode("utf-8", "replace")


def log_end(log: Path) -> str:
    """Return the end of a log; "" if it can't be read."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _READ))
        return file.read().decode("utf-8", "replace")
    return ""


def signal_name(number: int) -> str:
    """Return the name of a signal, such as "SIGKILL"; "signal 99" if it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _place(stack: str) -> str:
    """Return " at plugin.py:4", the innermost line of a stack that is neither ianvs's nor a library's."""
    for file, line in _FRAME.findall(stack):
        if not file.startswith((_PACKAGE, "<")) and not is_installed(Path(file)):
            return f" at {Path(file).name}:{line}"
    return ""


def _shown_end(printed: str) -> str:
    lines = [line.strip() for line in printed.splitlines() if line.strip()][-_LINES:]
    text = " / ".join(lines)
    text = f"...{text[-_CHARACTERS:]}" if len(text) > _CHARACTERS else text
    return f"; the end of its output: {replaced(text, secret_spans(text)).rstrip('.')}" if text else ""
