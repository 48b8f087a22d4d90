"""The learner's side of columns that are read row by row."""

import math
import os
import socket
import tempfile
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import ExamRuleError
from ianvs.exam.data.dataset import Positions
from ianvs.exam.data.encoded_pictures import Coding, in_threads
from ianvs.exam.data.parts import Held
from ianvs.processes.sealing.peer import Gone, Message, Peer
from ianvs.processes.sealing.shared_arrays import mapped, unpacked

_KEPT = 1 << 30  # bytes of a column up to which its rows are kept once they were read


class Door:
    """Where rows are asked for. Each process and each thread asks for itself: they are forked with an open door."""

    def __init__(self, file: int) -> None:
        self._door = socket.socket(fileno=file)
        self._mine = threading.local()

    def rows(self, lent: int, rows: Positions) -> tuple[Mapping[str, Any], memoryview]:
        """(what is told of the rows, the memory that holds them). Raises ExamRuleError when they were taken back."""
        try:
            found = self._peer().call("rows", {"lent": lent, "rows": rows.tolist()})
        except (Gone, OSError):
            raise ExamRuleError(
                "these samples are not available any more; keep your own memory.", code="broken-rule"
            ) from None
        return found.body, mapped(found.files[0])

    def close(self) -> None:
        self._mine = threading.local()
        self._door.close()

    def _peer(self) -> Peer:
        if getattr(self._mine, "process", None) != os.getpid():
            ours, theirs = socket.socketpair()
            with theirs:
                socket.send_fds(self._door, [b"+"], [theirs.fileno()])
            self._mine.process, self._mine.peer = os.getpid(), Peer(ours, _nothing)
        peer: Peer = self._mine.peer
        return peer


class LentRows:
    """A column of `count` samples whose rows come from the keeper, and are decoded here.

    Where all of them are small they are kept, so that a further pass costs nothing; else each is read again.
    """

    def __init__(self, told: Mapping[str, Any], door: Door, workers: int) -> None:
        """workers: threads that decode at the same time."""
        self.shape, self.dtype = tuple(told["shape"]), np.dtype(told["dtype"])
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize
        self.workers = workers
        self._lent, self._door = int(told["lent"]), door
        self._coding = None if told["coding"] is None else Coding(**told["coding"])
        self._kept: tuple[NDArray[Any], NDArray[np.bool_]] | None = None  # all rows, and which of them are there

    def __len__(self) -> int:
        return int(self.shape[0])

    def read(self, rows: Positions) -> NDArray[Any]:
        """A copy of `rows`, read by this thread alone."""
        return self._gathered(rows, 1)

    def gather(self, rows: Positions | None = None) -> NDArray[Any]:
        """All rows, or a copy of `rows`."""
        return self._gathered(rows, self.workers)

    def _gathered(self, rows: Positions | None, workers: int) -> NDArray[Any]:
        whole = rows is None
        wanted = np.arange(len(self)) if rows is None else np.asarray(rows, np.int64)
        kept = self._kept  # one pair to the end: other threads read, too, and may begin another at the same time
        if kept is None and (self.nbytes <= _KEPT or whole):
            kept = self._kept = self._room(), np.zeros(len(self), bool)
        if kept is None:
            found = np.empty((len(wanted), *self.shape[1:]), self.dtype)
            return self._read(wanted, found, np.arange(len(wanted)), workers)
        values, known = kept
        missing = wanted[~known[wanted]]
        self._read(missing, values, missing, workers)
        known[missing] = True
        return values if whole else values[wanted]

    def close(self) -> None:
        self._kept = None
        self._door.close()

    def _room(self) -> NDArray[Any]:
        """For all rows: in memory, or a map of a file that is gone with it, where somebody wants more than fits."""
        if self.nbytes <= _KEPT:
            return np.empty(self.shape, self.dtype)
        with tempfile.TemporaryFile() as file:
            file.truncate(self.nbytes)
            return np.memmap(file, self.dtype, "r+", shape=self.shape)

    def _read(self, rows: Positions, found: NDArray[Any], places: Positions, workers: int) -> NDArray[Any]:
        """`rows` into those `places` of `found`."""

        def fill(block: range) -> None:
            here = slice(block.start, block.stop)
            told, memory = self._door.rows(self._lent, rows[here])
            if self._coding is None:
                found[places[here]] = unpacked(memory, told["rows"])
                return
            for place, row, (at, size, numbering) in zip(places[here], rows[here], told["files"], strict=True):
                found[place] = self._coding.decode(bytes(memory[at : at + size]), numbering, f"sample {row}")

        in_threads(fill, len(rows), math.prod(self.shape[1:]) * self.dtype.itemsize, workers)
        return found


class Columns:
    """Columns as the keeper has told them: in memory, or lent through a door."""

    def __init__(self, files: tuple[int, ...], workers: int) -> None:
        """files: what holds those in memory, and perhaps a door."""
        self._memory, self._workers = mapped(files[0]), workers
        self._door = Door(files[1]) if len(files) > 1 else None

    def of(self, told: Mapping[str, Any]) -> Held | LentRows:
        if "lent" not in told or self._door is None:
            return Held(unpacked(self._memory, told))
        return LentRows(told, self._door, self._workers)


def _nothing(name: str, told: Message) -> Message | None:
    raise ValueError(f"nobody may call '{name}' here")
