"""Stores the first predictions of the chunks of a stream, before their labels are revealed.

After a kill the learner predicts the chunks of its round again and may know revealed labels, so the first prediction
counts. There is no fsync, since the kill of a process does not lose written data.
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

_HEADER = struct.Struct("<IIQ")  # checksum, bytes of the header, bytes of the predictions


class Journal:
    """The journal of one round. path: its file, created with the first predictions."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileIO | None = None
        self._answers: dict[int, Any] = {}
        whole = 0
        if path.exists():
            held = path.read_bytes()
            for chunk, answers, end in _entries(held):
                self._answers[chunk], whole = answers, end
            if whole < len(held):  # truncated by the kill: these labels were not revealed
                with path.open("r+b") as file:
                    file.truncate(whole)

    def first(self, chunk: int) -> Any | None:
        """Return the predictions stored before this was opened; None: there are none."""
        return self._answers.get(chunk)

    def add(self, chunk: int, answers: Any) -> None:
        """Append the first predictions of a chunk: an array, or a list of JSON values or of arrays by name."""
        held = bytearray()
        words = to_json({"chunk": chunk, "labels": packed(answers, held, files=False)})
        if self._file is None:
            self._file = self._path.open("ab", buffering=0)
        self._file.write(_HEADER.pack(zlib.crc32(words + held), len(words), len(held)) + words + held)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _entries(held: bytes) -> Iterator[tuple[int, Any, int]]:
    """Yield (chunk, its predictions, start of the next entry) of all complete entries."""
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
