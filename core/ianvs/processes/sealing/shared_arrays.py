"""Arrays that pass from one process to another by file descriptor: written once, mapped, never copied again.

Few bytes pass in the message itself, where it is told what was written.
"""

import errno
import json
import mmap
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ianvs.base.kept_pictures import Picture, Pictures
from ianvs.processes.sealing.peer import Message, RemoteError

Spec = Mapping[str, Any]
"""Where an array lies in a file: {"dtype", "shape", "at"}; of mappings of arrays {"count", "ragged": {name: [all rows,
where those of each mapping begin]}}; what is no numbers: {"json": bytes, "count", "at"}, and "pictures": [[start,
length, sha256]] if it has some, of which it names the numbers."""

_BLOCK = 1 << 25  # bytes that are gathered at a time
_IN_MEMORY = 1 << 31  # bytes up to which a file is memory without a disk behind it
_ALIGNMENT = 64
_SMALL = 1 << 15  # bytes that travel in a message, and up to which to read a file is quicker than to map it
_PICTURES = "pictures by number"  # the key of what stands in JSON for them
_PLAIN = re.compile(r"[<>|=]?[biuf][1248]")
_F_ADD_SEALS, _SEALS = 1033, 1 | 2 | 4 | 8  # Linux: no more seals, no shrinking, growing, writing
_PATIENCE = 60.0  # seconds in which a file is to be sealed


class Gathered(Protocol):
    """A column of samples (ianvs.exam.data.parts.Column)."""

    @property
    def nbytes(self) -> int: ...
    def __len__(self) -> int: ...
    def gather(self, rows: NDArray[np.int64] | None = None) -> NDArray[Any]: ...


class ArrayWriter:
    """Writes arrays one after the other: into memory, and where they are more than _SMALL bytes into a file of its own.

    expected: bytes, as far as they are known; folder: where a file lies that is too large for memory. It has no name
    there, and is gone with its last descriptor.
    """

    def __init__(self, expected: int = 0, folder: Path | None = None) -> None:
        self._sealable = expected <= _IN_MEMORY and hasattr(os, "memfd_create")
        self._folder, self._end = folder, 0
        self._held = bytearray()  # before there is a file
        self._file: int | None = None

    @property
    def file(self) -> int:
        """The descriptor, of whoever closes it."""
        if self._file is None:
            if self._sealable:
                self._file = os.memfd_create("ianvs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            else:
                with tempfile.TemporaryFile(dir=self._folder) as file:
                    self._file = os.dup(file.fileno())
            self._put(self._file, self._held, 0)
        return self._file

    def told(self, body: Mapping[str, Any]) -> Message:
        """`body` with what was written: few bytes in the message, others in a file."""
        return Message(body, held=self._held) if self._file is None else Message(body, (self.file,))

    def column(self, column: Gathered) -> Spec:
        """All rows, gathered a block at a time."""
        count = len(column)
        if column.nbytes <= _SMALL:
            return self.array(column.gather())
        first = column.gather(np.arange(min(count, 1)))
        rows = max(1, _BLOCK // max(1, first.nbytes // max(1, len(first))))
        if first.dtype.kind not in "biuf" or rows >= count:
            return self.array(column.gather())
        at = self._aligned()
        for start in range(0, count, rows):
            self._write(_raw(column.gather(np.arange(start, min(start + rows, count)))))
        return {"dtype": first.dtype.str, "shape": [count, *first.shape[1:]], "at": at}

    def array(self, values: NDArray[Any]) -> Spec:
        """Numbers as they are; else mappings of arrays, or what JSON can hold."""
        if values.dtype.kind not in "biuf":
            return self.objects(values.tolist())
        at = self._aligned()
        self._write(_raw(values))
        return {"dtype": values.dtype.str, "shape": list(values.shape), "at": at}

    def values(self, values: NDArray[Any] | Sequence[Any]) -> Spec:
        """Numbers or objects, whichever they are."""
        return self.array(values) if isinstance(values, np.ndarray) else self.objects(values)

    def blob(self, held: bytes) -> tuple[int, int]:
        """Where it lies: (start, length)."""
        at = self._end
        self._write(held)
        return at, len(held)

    def objects(self, values: Sequence[Any]) -> Spec:
        """Of mappings of arrays, all with the same names, those of a name lie one after the other, as numbers."""
        first = values[0] if len(values) else None
        if isinstance(first, dict) and first and all(isinstance(each, np.ndarray) for each in first.values()):
            ragged = {}
            for name in first:
                rows = [one[name] for one in values]
                starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
                ragged[name] = [self.array(np.concatenate(rows)), self.array(starts)]
            return {"count": len(values), "ragged": ragged}
        kept: dict[str, tuple[int, list[Any]]] = {}  # by sha256: several questions may be about one picture

        def numbers(pictures: object) -> dict[str, list[int]]:
            if not isinstance(pictures, Pictures):
                raise TypeError(f"{type(pictures).__name__} is nothing that JSON can hold")
            for one in pictures.kept:
                if one.sha256 not in kept:
                    kept[one.sha256] = len(kept), [*self.blob(one.held), one.sha256]
            return {_PICTURES: [kept[one.sha256][0] for one in pictures.kept]}

        text = json.dumps(list(values), default=numbers).encode()
        at = self._aligned()
        self._write(text)
        spec = {"json": len(text), "count": len(values), "at": at}
        return {**spec, "pictures": [where for _, where in kept.values()]} if kept else spec

    def sealed(self) -> int:
        """The descriptor, of a file that nobody can change any more where the system can promise that."""
        file = self.file
        if self._sealable:
            _seal(file)
        return file

    def _aligned(self) -> int:
        self._end += -self._end % _ALIGNMENT
        return self._end

    def _write(self, values: bytes | memoryview) -> None:
        if self._file is None and self._end + len(values) <= _SMALL:
            self._held += bytes(self._end - len(self._held)) + values
        else:
            self._put(self.file, values, self._end)
        self._end += len(values)

    def _put(self, file: int, values: bytes | bytearray | memoryview, at: int) -> None:
        left = memoryview(values)
        while left:
            done = os.pwrite(file, left, at)
            left, at = left[done:], at + done


def _raw(values: NDArray[Any]) -> bytes | memoryview:
    """Its bytes, rows in order."""
    if values.nbytes <= _SMALL:
        return values.tobytes()
    return memoryview(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


def _seal(file: int) -> None:
    """The kernel refuses while anything in it holds a page of the file: on a busy machine for longer than it waits."""
    import fcntl  # Linux, where alone files can be sealed

    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.fcntl(file, _F_ADD_SEALS, _SEALS)
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)


def mapped(file: int) -> memoryview:
    """What is in `file`, which is closed: yours to change, and nobody else sees the changes."""
    size = os.fstat(file).st_size
    try:
        if size <= _SMALL:
            return memoryview(bytearray(os.pread(file, size, 0)))
        return memoryview(mmap.mmap(file, size, flags=mmap.MAP_PRIVATE))
    finally:
        os.close(file)


def brought(message: Message) -> memoryview:
    """What was written for a message (`ArrayWriter.told`), as `mapped` gives it."""
    return mapped(message.files[0]) if message.files else memoryview(message.held)


def unpacked(memory: memoryview, spec: Spec) -> NDArray[Any] | list[Any]:
    """What `spec` says lies in `memory`. Raises RemoteError for one that does not fit: it may come from anybody."""
    try:
        if "ragged" in spec:
            return _mappings(memory, spec)
        if "json" in spec:
            at = _whole(spec["at"])
            text = bytes(memory[at : at + _whole(spec["json"])])
            found = json.loads(text, object_hook=_shown(memory, spec["pictures"]) if "pictures" in spec else None)
            if not isinstance(found, list):
                raise ValueError("a list is needed")
            return found
        return _numbers(memory, spec)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise RemoteError("ProtocolError", f"an array that can't be read: {error}") from None


def _shown(memory: memoryview, where: Sequence[tuple[int, int, str]]) -> Callable[[dict[str, Any]], Any]:
    """What puts pictures, which stay in the memory, in the place of their numbers."""
    kept = [Picture(memory[_whole(at) : at + _whole(length)], None, str(name)) for at, length, name in where]
    return lambda found: Pictures(kept[_whole(i)] for i in found[_PICTURES]) if found.keys() == {_PICTURES} else found


def _mappings(memory: memoryview, spec: Spec) -> list[dict[str, NDArray[Any]]]:
    """Copies: who keeps one does not keep all that lies in the memory."""
    columns = []
    for told, where in spec["ragged"].values():
        rows, starts = _numbers(memory, told), _numbers(memory, where).astype(np.int64)
        if len(starts) != _whole(spec["count"]) + 1 or (np.diff(starts, prepend=0, append=len(rows)) < 0).any():
            raise ValueError("rows that begin nowhere")
        columns.append([rows[start:end].copy() for start, end in pairwise(starts.tolist())])
    return [dict(zip(spec["ragged"], row, strict=True)) for row in zip(*columns, strict=True)]


def _numbers(memory: memoryview, spec: Spec) -> NDArray[Any]:
    return np.ndarray(tuple(map(_whole, spec["shape"])), _dtype(spec["dtype"]), memory, _whole(spec["at"]))


@lru_cache(64)
def _dtype(name: str) -> np.dtype[Any]:
    if not _PLAIN.fullmatch(name):
        raise ValueError(f"dtype {name!r}")
    return np.dtype(name)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is no whole number")
    return value
