"""First answers to the chunks of a stream, on disk before anything is told of them.

A learner that is killed, or kills itself, is asked the chunks of its round again, and knows by then what was told. So
the first answer counts. Nothing is flushed to the disk itself: a kill loses nothing that was written.
"""

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from ianvs.processes.interpreters.wire import RemoteError, packed, unpacked

_HEADER = struct.Struct("<IIQ")  # checksum, bytes of the words, bytes of the answers


class Journal:
    """Of one round. path: of its file, which appears with the first answer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileIO | None = None
        self._answers: dict[int, Any] = {}
        whole = 0
        if path.exists():
            held = path.read_bytes()
            for chunk, answers, end in _entries(held):
                self._answers[chunk], whole = answers, end
            if whole < len(held):  # cut off by the kill: of that answer nothing was told
                with path.open("r+b") as file:
                    file.truncate(whole)

    def first(self, chunk: int) -> Any | None:
        """The answers that count; None: when this was opened there were none."""
        return self._answers.get(chunk)

    def add(self, chunk: int, answers: Any) -> None:
        """Write down the first answers to a chunk: an array, or a list of what JSON can hold or of arrays by name."""
        held = bytearray()
        words = to_json({"chunk": chunk, "labels": packed(answers, held, files=False)})
        if self._file is None:
            self._file = self._path.open("ab", buffering=0)
        self._file.write(_HEADER.pack(zlib.crc32(words + held), len(words), len(held)) + words + held)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _entries(held: bytes) -> Iterator[tuple[int, Any, int]]:
    """(chunk, its answers, where the next entry begins) of all whole entries."""
    at = 0
    while at + _HEADER.size <= len(held):
        checksum, words, size = _HEADER.unpack_from(held, at)
        start = at + _HEADER.size
        end = start + words + size
        if end > len(held) or zlib.crc32(held[start:end]) != checksum:
            return
        entry: Mapping[str, Any] = json.loads(held[start : start + words])
        try:
            yield entry["chunk"], unpacked(bytearray(held[start + words : end]), entry["labels"]), end
        except RemoteError:
            return
        at = end
