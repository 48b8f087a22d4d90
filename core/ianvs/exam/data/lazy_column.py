"""Columns whose rows are read, and decoded, when they are asked for; and columns that another process can open."""

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.data.dataset import Positions
from ianvs.exam.data.encoded_pictures import in_threads
from ianvs.exam.data.parts import Column, ColumnData, Held, is_lazy

LARGE = 1 << 26  # bytes of a column from which on it is read row by row
_KEPT = 1 << 30  # bytes of a column up to which its rows are kept once they were read
_SMALL = 1 << 16  # bytes of a column that are pickled as they are


def presented(column: Column, workers: int) -> ColumnData:
    """`column` as a learner is handed it: row by row where it is encoded or large.

    Args:
        column: Samples, labels or names.
        workers: Threads that decode at the same time.
    """
    if column.coding is not None:
        return RowsOnDemand(column, column.coding.shape, np.dtype(np.uint8), workers)
    first = column.gather(np.arange(min(1, len(column))))
    if first.dtype == object:
        return Held(column.gather().tolist())
    return column if column.nbytes < LARGE else RowsOnDemand(column, first.shape[1:], first.dtype, workers)


class RowsOnDemand:
    """A column whose rows are read, and decoded, when they are asked for (ianvs.exam.data.parts.LazyColumn).

    Where all of them are small they are kept, so that a further pass costs nothing; else each is read again.
    """

    def __init__(self, column: Column, shape: tuple[int, ...], dtype: np.dtype[Any], workers: int) -> None:
        """shape, dtype: of a row."""
        self.shape, self.dtype, self.workers = (len(column), *shape), dtype, workers
        self.nbytes = math.prod(self.shape) * dtype.itemsize
        self._column, self._coding, self.opens_by_path = column, column.coding, column.opens_by_path
        self._kept: tuple[NDArray[Any], NDArray[np.bool_]] | None = None  # all rows, and which of them are there

    def __len__(self) -> int:
        return self.shape[0]

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which reads rows by itself."""
        return {**vars(self), "_kept": None}

    def placed(self, folder: Path, name: str) -> ColumnData:
        """See `Column.placed`."""
        return RowsOnDemand(self._column.placed(folder, name), self.shape[1:], self.dtype, self.workers)

    def read(self, rows: Positions) -> NDArray[Any]:
        """A copy of `rows`, read by this thread alone."""
        return self._gathered(rows, 1)

    def gather(self, rows: Positions | None = None) -> NDArray[Any]:
        """All rows, or a copy of `rows`."""
        return self._gathered(rows, self.workers)

    def close(self) -> None:
        self._kept = None

    def _gathered(self, rows: Positions | None, workers: int) -> NDArray[Any]:
        whole = rows is None
        wanted = np.arange(len(self)) if rows is None else np.asarray(rows, np.int64)
        kept = self._kept  # one pair to the end: other threads read, too, and may begin another at the same time
        if kept is None and (self.nbytes <= _KEPT or whole):
            kept = self._kept = self._room(), np.zeros(len(self), bool)
        if kept is None:
            found = np.empty((len(wanted), *self.shape[1:]), self.dtype)
            return self._fill(wanted, found, np.arange(len(wanted)), workers)
        values, known = kept
        missing = wanted[~known[wanted]]
        self._fill(missing, values, missing, workers)
        known[missing] = True
        return values if whole else values[wanted]

    def _room(self) -> NDArray[Any]:
        """For all rows: in memory, or a map of a file that is gone with it, where somebody wants more than fits."""
        if self.nbytes <= _KEPT:
            return np.empty(self.shape, self.dtype)
        with tempfile.TemporaryFile() as file:
            file.truncate(self.nbytes)
            return np.memmap(file, self.dtype, "r+", shape=self.shape)

    def _fill(self, rows: Positions, found: NDArray[Any], places: Positions, workers: int) -> NDArray[Any]:
        """Read `rows` into those `places` of `found`."""

        def fill(block: range) -> None:
            here = slice(block.start, block.stop)
            if self._coding is None:
                found[places[here]] = self._column.gather(rows[here])
                return
            files = self._column.files(rows[here])
            for place, row, (held, numbering) in zip(places[here], rows[here], files, strict=True):
                found[place] = self._coding.decode(held, numbering, f"sample {row}")

        in_threads(fill, len(rows), math.prod(self.shape[1:]) * self.dtype.itemsize, workers)
        return found


class OnDisk:
    """A column in a file of its own, which is opened where it is asked for."""

    def __init__(self, path: Path, count: int, nbytes: int) -> None:
        self._path, self._count, self.nbytes = path, count, nbytes
        self._values: NDArray[Any] | None = None

    def __len__(self) -> int:
        return self._count

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_values": None}

    def gather(self, rows: Positions | None = None) -> NDArray[Any]:
        """All rows, or a copy of `rows`."""
        if self._values is None:
            objects = self._path.suffix == ".objects"  # which have to be read whole
            self._values = np.load(self._path, mmap_mode=None if objects else "c", allow_pickle=objects)
        return self._values if rows is None else self._values[rows]


def reopened(column: ColumnData, folder: Path, name: str) -> ColumnData:
    """`column` in a form that pickles to few bytes: what is large lies in a file below `folder`, or where it came from.

    Args:
        column: Of an open view.
        folder: For files, which stay until the view ends.
        name: Of the file.
    """
    if isinstance(column, OnDisk):
        return column
    if isinstance(column, RowsOnDemand) and column.opens_by_path:
        return column.placed(folder, name)
    if is_lazy(column) and column.opens_by_path:
        return column
    values = column.gather()
    if values.dtype != object and values.nbytes <= _SMALL:
        return Held(values)
    path = folder / (f"{name}.objects" if values.dtype == object else f"{name}.npy")
    if not path.exists():
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            np.save(file, values, allow_pickle=values.dtype == object)
        part.rename(path)
    return OnDisk(path, len(values), values.nbytes)
