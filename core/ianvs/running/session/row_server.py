"""The keeper's side of columns that a learner reads row by row: pictures that stay encoded, and what is large."""

import contextlib
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ianvs.base.errors import ExamRuleError, PluginError
from ianvs.exam.data.parts import Column
from ianvs.processes.sealing.peer import Gone, Message, Peer, RemoteError
from ianvs.processes.sealing.shared_arrays import ArrayWriter

LENT = 1 << 26  # bytes of a column, from which on it is read row by row instead of written down for whom it is for
MOST = 1 << 14  # rows of one request
_MOST_ENDS = 64


class RowServer:
    """Hands out rows of the columns that were lent, and nothing else, until it is closed.

    Who holds its door, or was forked from who does, sends a socket of its own through it and asks there: workers of a
    loader ask at the same time. What comes back is a sealed file of what was read, never one of the data's own: its
    descriptor would tell a name, and so perhaps a label, and could be used to mark it.
    """

    def __init__(self, folder: Path) -> None:
        """folder: for what is too large for memory."""
        self._folder, self._columns = folder, list[Column]()
        self._ends: set[socket.socket] = set()
        self._open = True

    def told(self, column: Column, writer: ArrayWriter) -> Mapping[str, object]:
        """`column` in words: lent if it is encoded or large, else written by `writer`."""
        coding = column.coding
        if coding is None:
            first = column.gather(np.arange(min(1, len(column))))
            if column.nbytes < LENT or first.dtype == object:
                return writer.column(column)
            shape, dtype = [len(column), *first.shape[1:]], first.dtype.str
        else:
            shape, dtype = [len(column), *coding.shape], "|u1"
        self._columns.append(column)
        lent = {"lent": len(self._columns) - 1, "shape": shape, "dtype": dtype}
        return {**lent, "coding": None if coding is None else coding.told()}

    def door(self) -> tuple[int, ...]:
        """The descriptor to hand over, which who is called closes; () where nothing was lent."""
        if not self._columns:
            return ()
        ours, theirs = socket.socketpair()
        self._ends.add(ours)
        threading.Thread(target=self._admit, args=(ours,), daemon=True).start()
        return (theirs.detach(),)

    def close(self) -> None:
        """Whoever asks from now on, or waits for an answer, gets none."""
        self._open = False
        for end in tuple(self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _admit(self, door: socket.socket) -> None:
        with door, contextlib.suppress(OSError):
            while self._open:
                said, files, _, _ = socket.recv_fds(door, 1, 1)
                if not said:
                    return
                for file in files:
                    end = socket.socket(fileno=file)
                    if len(self._ends) < _MOST_ENDS:
                        self._ends.add(end)
                        threading.Thread(target=self._serve, args=(end,), daemon=True).start()

    def _serve(self, end: socket.socket) -> None:
        with end, contextlib.suppress(Gone, RemoteError, OSError):
            Peer(end, self._rows).serve()
        self._ends.discard(end)

    def _rows(self, name: str, told: Message) -> Message:
        if not self._open:
            raise ExamRuleError("these samples were taken back", code="broken-rule")
        if name != "rows":
            raise PluginError(f"there is nothing called '{name}' to be had", code="invalid-request")
        column, rows = self._asked(told.body)
        if column.coding is None:
            values = column.gather(rows)
            writer = ArrayWriter(values.nbytes, self._folder)
            return Message({"rows": writer.array(values)}, (writer.sealed(),))
        writer = ArrayWriter()
        files = [[*writer.blob(held), numbering] for held, numbering in column.files(rows)]
        return Message({"files": files}, (writer.sealed(),))

    def _asked(self, body: Mapping[str, Any]) -> tuple[Column, Any]:
        lent, rows = body.get("lent"), body.get("rows")
        if not isinstance(lent, int) or not 0 <= lent < len(self._columns) or not isinstance(rows, list):
            raise PluginError("rows are asked for by the number of a column, and in a list", code="invalid-request")
        column = self._columns[lent]
        if len(rows) > MOST or not all(isinstance(row, int) and 0 <= row < len(column) for row in rows):
            raise PluginError(
                f"up to {MOST} rows can be asked for at once, from 0 to {len(column) - 1}", code="invalid-request"
            )
        return column, np.array(rows, np.int64)
