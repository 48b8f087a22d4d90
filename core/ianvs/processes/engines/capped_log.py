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


class CappedLog:
    """The log file of a task, written by the reader of its pipe.

    The first half of the cap is kept, and of what follows the last quarter or more; a line between them says how many
    bytes are left out. A log that is there already is continued. Text that may be the start of a secret is held back
    until the next block.

    Args:
        path: The file.
        secrets: What must not be in it. Whatever looks like a secret is hidden, too.
    """

    def __init__(self, path: Path, secrets: Iterable[str] = ()) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        # Latin-1 maps every byte to a character, so that any output is preserved.
        forms = forms_of(secrets) if secrets else ()
        self._secrets = [form.encode("utf-8", "surrogateescape").decode("latin-1") for form in forms]
        self._held = ""

    def copy(self, pipe: int) -> bool:
        """Write at most one block from the pipe. Returns False if it is empty or closed."""
        try:
            block = os.read(pipe, BLOCK_BYTES)
        except BlockingIOError:
            return False
        self.write(block)
        return bool(block)

    def write(self, block: bytes, *, last: bool = False) -> None:
        """Write what can be written now of this and earlier blocks. last: then close the file."""
        text = self._held + block.decode("latin-1")
        spans = secret_spans(text, self._secrets)
        # Complete lines are written, without the start of a secret of several lines or of a PEM block.
        end = max(text.rfind("\n") + 1, text.rfind("\r") + 1, len(text) - _LONGEST_LINE)
        for secret in self._secrets:
            if "\n" in secret:
                starts = range(max(0, len(text) - len(secret) + 1), end)
                end = next((start for start in starts if secret.startswith(text[start:])), end)
        for start, past in reversed(spans):
            if start < end < past or past == len(text):
                end = min(end, start)
        if last or len(text) - end >= _LONGEST_SECRET:
            end = len(text)
        self._held = text[end:]
        shown = text[:end]
        if spans:
            shown = replaced(shown, [span for span in spans if span[0] < end])
        with contextlib.suppress(OSError):  # a full disk must not end the supervisor
            os.write(self.file, shown.encode("latin-1"))
            if os.fstat(self.file).st_size > MAX_LOG_BYTES - BLOCK_BYTES:
                self._shorten()
        if last:
            os.close(self.file)

    def _shorten(self) -> None:
        """Drop the middle of the log; the rest starts at a line if one begins nearby."""
        size = os.fstat(self.file).st_size
        earlier = _NOTICE.match(self._read(100, MAX_LOG_BYTES // 2))
        last = self._read(MAX_LOG_BYTES // 4, size - MAX_LOG_BYTES // 4)
        last = last[last.find(b"\n", 0, 10_000) + 1 :]
        left_out = size - MAX_LOG_BYTES // 2 - len(last)
        if earlier is not None:
            left_out += int(earlier[1]) - len(earlier[0])
        os.ftruncate(self.file, MAX_LOG_BYTES // 2)
        os.write(self.file, b"\n[... %d bytes left out ...]\n" % left_out + last)

    def _read(self, count: int, at: int) -> bytes:
        os.lseek(self.file, at, os.SEEK_SET)  # output is appended anyway
        return os.read(self.file, count)
