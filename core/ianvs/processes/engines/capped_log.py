"""The log of a task: a file of limited size, whatever the task and its children print, without secrets."""

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from ianvs.base.secrets import forms_of, replaced, secret_spans

MAX_LOG_BYTES = 50_000_000  # bytes
BLOCK_BYTES = 1 << 18  # bytes read at a time
_LONGEST_LINE = 4096  # bytes; a longer line is not held back to look for secrets
_LONGEST_SECRET = 1 << 15  # bytes
_NOTICE = re.compile(rb"\n\[\.\.\. (\d+) bytes left out \.\.\.\]\n")


class SecretFilter:
    """Removes secrets from output that arrives in blocks. It delays text that may be the start of a secret."""

    def __init__(self, secrets: Iterable[str]) -> None:
        # Latin-1 maps every byte to a character, so that any output is preserved.
        self._secrets = [form.encode("utf-8", "surrogateescape").decode("latin-1") for form in forms_of(secrets)]
        self._held = ""

    def filtered(self, block: bytes, *, last: bool = False) -> bytes:
        """Return the part of this and earlier blocks that can be written now. last: this is the last block."""
        text = self._held + block.decode("latin-1")
        spans = secret_spans(text, self._secrets)
        end = len(text) if last else self._end(text, spans)
        self._held = text[end:]
        return replaced(text[:end], [span for span in spans if span[0] < end]).encode("latin-1")

    def _end(self, text: str, spans: list[tuple[int, int]]) -> int:
        """Return the end of the complete lines, excluding the start of a secret of several lines or of a PEM block."""
        end = max(text.rfind("\n") + 1, text.rfind("\r") + 1, len(text) - _LONGEST_LINE)
        for secret in self._secrets:
            if "\n" in secret:
                starts = range(max(0, len(text) - len(secret) + 1), end)
                end = next((start for start in starts if secret.startswith(text[start:])), end)
        for start, past in reversed(spans):
            if start < end < past or past == len(text):
                end = min(end, start)
        return end if len(text) - end < _LONGEST_SECRET else len(text)


class CappedFile:
    """The log file of a task, written by the reader of its pipe.

    The first half of the cap is kept, and of what follows the last quarter or more; a line between them says how many
    bytes are left out. A log that is there already is continued. secrets: what must not be in it.
    """

    def __init__(self, path: Path, secrets: Iterable[str] = ()) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        self._filter = SecretFilter(secrets)

    def write(self, block: bytes, *, last: bool = False) -> None:
        block = self._filter.filtered(block, last=last)
        with contextlib.suppress(OSError):  # a full disk must not end the supervisor
            os.write(self._file, block)
            if os.fstat(self._file).st_size > MAX_LOG_BYTES - BLOCK_BYTES:
                self._shorten()

    def _shorten(self) -> None:
        """Drop the middle of the log; the rest starts at a line if one begins nearby."""
        size = os.fstat(self._file).st_size
        earlier = _NOTICE.match(self._read(100, MAX_LOG_BYTES // 2))
        last = self._read(MAX_LOG_BYTES // 4, size - MAX_LOG_BYTES // 4)
        last = last[last.find(b"\n", 0, 10_000) + 1 :]
        left_out = size - MAX_LOG_BYTES // 2 - len(last)
        if earlier is not None:
            left_out += int(earlier[1]) - len(earlier[0])
        os.ftruncate(self._file, MAX_LOG_BYTES // 2)
        os.write(self._file, b"\n[... %d bytes left out ...]\n" % left_out + last)

    def _read(self, count: int, at: int) -> bytes:
        os.lseek(self._file, at, os.SEEK_SET)  # output is appended anyway
        return os.read(self._file, count)

    def end(self) -> None:
        """Write the rest, after the last block."""
        self.write(b"", last=True)
        self.close()

    def close(self) -> None:
        os.close(self._file)


class CappedLog:
    """A pipe that a task prints into, and the file at its end."""

    def __init__(self, path: Path, secrets: Iterable[str] = ()) -> None:
        self._file = CappedFile(path, secrets=secrets)
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)

    def write_pending(self) -> bool:
        """Write at most one block from the pipe. Returns False if it is empty or closed."""
        try:
            block = os.read(self.reader, BLOCK_BYTES)
        except BlockingIOError:
            return False
        self._file.write(block)
        return bool(block)

    def close(self) -> None:
        """Write the remaining output of an ended task. Later output of its orphans is dropped."""
        while self.write_pending():
            pass
        self._file.end()
        os.close(self.reader)

    def close_descriptors(self) -> None:
        """Close the descriptors in a process that neither prints nor reads."""
        self._file.close()
        os.close(self.reader)
