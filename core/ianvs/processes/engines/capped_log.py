"""The log of a task: a file that never grows beyond its cap, whatever the task and its children print."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

CAP = 50_000_000  # bytes
BLOCK = 1 << 18  # bytes that are read at a time
_NOTICE = re.compile(rb"\n\[\.\.\. (\d+) bytes left out \.\.\.\]\n")


class CappedFile:
    """A file that whoever reads a task's pipe writes.

    The first half of the cap is kept, and of what follows the last quarter or more; a line between them says how many
    bytes are left out. A log that is there already is continued.
    """

    def __init__(self, path: Path, cap: int = CAP) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        self._cap, self._head = cap, cap // 2

    def write(self, block: bytes) -> None:
        with contextlib.suppress(OSError):  # a full disk must not end who supervises
            os.write(self._file, block)
            if os.fstat(self._file).st_size > self._cap - BLOCK:
                self._shorten()

    def _shorten(self) -> None:
        """What came last stays, from the beginning of a line on if one is near."""
        size = os.fstat(self._file).st_size
        earlier = _NOTICE.match(self._read(100, self._head))
        last = self._read(self._cap // 4, size - self._cap // 4)
        last = last[last.find(b"\n", 0, 10_000) + 1 :]
        left_out = size - self._head - len(last)
        if earlier is not None:
            left_out += int(earlier[1]) - len(earlier[0])
        os.ftruncate(self._file, self._head)
        os.write(self._file, b"\n[... %d bytes left out ...]\n" % left_out + last)

    def _read(self, count: int, at: int) -> bytes:
        os.lseek(self._file, at, os.SEEK_SET)  # what is written goes to the end all the same
        return os.read(self._file, count)

    def close(self) -> None:
        os.close(self._file)


class CappedLog:
    """A pipe that a task prints into, and the file at its end."""

    def __init__(self, path: Path) -> None:
        self._file = CappedFile(path)
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)

    def take(self) -> bool:
        """Write what waits in the pipe, a block of it at most; False once there is nothing, now or ever."""
        try:
            block = os.read(self.reader, BLOCK)
        except BlockingIOError:
            return False
        self._file.write(block)
        return bool(block)

    def close(self) -> None:
        """The end of the task: what it printed last is still written. What its orphans print is not."""
        while self.take():
            pass
        self.drop()

    def drop(self) -> None:
        """Let go of it in a process that neither prints nor reads."""
        self._file.close()
        os.close(self.reader)
