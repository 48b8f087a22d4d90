"""Rows that are read when they are asked for, by several threads at once."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from ianvs.exam.data import lazy_column
from ianvs.exam.data.lazy_column import RowsOnDemand
from ianvs.exam.data.parts import Column, Rows

COUNT, THREADS = 64, 8
VALUES = np.arange(1, 1 + COUNT * 4, dtype=np.int64).reshape(COUNT, 4)


def rows_on_demand() -> RowsOnDemand:
    return RowsOnDemand(Column([Rows(VALUES, np.arange(COUNT))]), VALUES.shape[1:], VALUES.dtype, workers=1)


def test_threads_that_begin_at_once_all_get_what_they_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finds that nothing was read so far, and makes room for it, before any other has."""
    together, room = threading.Barrier(THREADS), RowsOnDemand._room

    def slowly(column: RowsOnDemand) -> Any:
        together.wait(10)
        return room(column)

    monkeypatch.setattr(RowsOnDemand, "_room", slowly)
    column = rows_on_demand()
    with ThreadPoolExecutor(THREADS) as pool:
        parts = list(pool.map(column.read, np.array_split(np.arange(COUNT), THREADS)))
    monkeypatch.undo()
    assert np.array_equal(np.concatenate(parts), VALUES)
    assert np.array_equal(column.gather(), VALUES), "and nothing is taken for read that was not"


@pytest.mark.parametrize(("limit", "reads"), [(VALUES.nbytes, 2), (VALUES.nbytes - 1, 4)])
def test_rows_of_a_small_column_are_read_once_and_those_of_a_large_one_each_time(
    monkeypatch: pytest.MonkeyPatch, limit: int, reads: int
) -> None:
    counted, gather = [], Column.gather

    def counting(column: Column, rows: Any = None) -> Any:
        counted.extend(rows)
        return gather(column, rows)

    monkeypatch.setattr(Column, "gather", counting)
    monkeypatch.setattr(lazy_column, "_KEPT", limit)
    column = rows_on_demand()
    for _ in range(2):
        assert np.array_equal(column.gather(np.array([5, 3])), VALUES[[5, 3]])
    assert len(counted) == reads
    assert np.array_equal(column.gather(), VALUES)
    assert np.array_equal(pickle.loads(pickle.dumps(column)).gather(), VALUES), "another process reads by itself"
