"""Rows that are read when they are asked for, by several threads at once."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ianvs.exam.data import parts
from ianvs.exam.data.parts import Column, as_served

COUNT, THREADS = 64, 8
VALUES = np.arange(1, 1 + COUNT * 4, dtype=np.int64).reshape(COUNT, 4)


@pytest.fixture(autouse=True)
def every_column_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LARGE", 0)


class Counting:
    """An array that counts the rows that are read from it."""

    dtype, shape = VALUES.dtype, VALUES.shape

    def __init__(self) -> None:
        self.read = 0

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, rows: Any) -> Any:
        self.read += len(rows)
        return VALUES[rows]


def rows_on_demand(values: Any = VALUES) -> Column:
    return as_served(Column(values, np.arange(COUNT)), 1)


def test_threads_that_begin_at_once_all_get_what_they_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finds that nothing was read so far, and makes room for it, before any other has."""
    together, room = threading.Barrier(THREADS), parts._RowCache._allocate

    def slowly(*of: Any) -> Any:
        together.wait(10)
        return room(*of)

    monkeypatch.setattr(parts._RowCache, "_allocate", slowly)
    column = rows_on_demand()
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda rows: column.gather(rows, 1), np.array_split(np.arange(COUNT), THREADS)))
    monkeypatch.undo()
    assert np.array_equal(np.concatenate(found), VALUES)
    assert np.array_equal(column.gather(), VALUES), "and nothing is taken for read that was not"


@pytest.mark.parametrize(("limit", "reads"), [(VALUES.nbytes, 2), (VALUES.nbytes - 1, 4)])
def test_rows_of_a_small_column_are_read_once_and_those_of_a_large_one_each_time(
    monkeypatch: pytest.MonkeyPatch, limit: int, reads: int
) -> None:
    monkeypatch.setattr(parts, "_KEPT", limit)
    counting = Counting()
    column = rows_on_demand(counting)
    for _ in range(2):
        assert np.array_equal(column.gather(np.array([5, 3])), VALUES[[5, 3]])
    assert counting.read == reads
    assert np.array_equal(column.gather(), VALUES)
    assert np.array_equal(pickle.loads(pickle.dumps(rows_on_demand())).gather(), VALUES), "another process reads itself"


def test_rows_that_are_taken_are_kept_with_all_others_and_outlive_the_end_of_their_view() -> None:
    counting = Counting()
    column = rows_on_demand(counting)
    part = column.take(np.array([7, 9, 11]))
    assert np.array_equal(part.take(np.array([2, 0])).gather(), VALUES[[11, 7]])
    part.close()
    assert np.array_equal(column.gather(np.array([7, 11])), VALUES[[7, 11]])
    assert counting.read == 2
    column.close()
    assert np.array_equal(column.gather(np.array([7])), VALUES[[7]])
    assert counting.read == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_of_a_large_column_come_as_float32(dtype: Any) -> None:
    column = rows_on_demand(VALUES.astype(dtype))
    assert column.dtype == np.float32
    np.testing.assert_array_equal(column.gather(np.array([5, 3])), VALUES[[5, 3]].astype(np.float32))
    assert column.gather().dtype == np.float32


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_map_of_a_file_is_the_same_in_another_process(order: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.asarray(VALUES, order=order))
    column = rows_on_demand(np.load(tmp_path / "x.npy", mmap_mode="r"))
    assert np.array_equal(pickle.loads(pickle.dumps(column)).gather(), VALUES)
