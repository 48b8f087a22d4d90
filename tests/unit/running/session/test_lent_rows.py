"""Rows that come from the keeper are read by several threads at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from ianvs.processes.sealing.shared_arrays import ArrayWriter, mapped
from ianvs.running.session.lent_rows import LentRows

COUNT, THREADS = 64, 8
VALUES = np.arange(1, 1 + COUNT * 4, dtype=np.int64).reshape(COUNT, 4)


class Door:
    def rows(self, lent: int, rows: Any) -> tuple[dict[str, Any], Any]:
        writer = ArrayWriter()
        told = writer.array(VALUES[rows])
        return {"rows": told}, mapped(writer.sealed())


def test_threads_that_begin_at_once_all_get_what_they_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finds that nothing was read so far, and makes room for it, before any other has."""
    together, room = threading.Barrier(THREADS), LentRows._room

    def slowly(column: LentRows) -> Any:
        together.wait(10)
        return room(column)

    monkeypatch.setattr(LentRows, "_room", slowly)
    told = {"shape": VALUES.shape, "dtype": VALUES.dtype.str, "lent": 0, "coding": None}
    column = LentRows(told, Door(), workers=1)  # type: ignore[arg-type]
    with ThreadPoolExecutor(THREADS) as pool:
        parts = list(pool.map(column.read, np.array_split(np.arange(COUNT), THREADS)))
    monkeypatch.undo()
    assert np.array_equal(np.concatenate(parts), VALUES)
    assert np.array_equal(column.gather(), VALUES), "and nothing is taken for read that was not"
