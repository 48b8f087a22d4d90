"""Columns of parts of a dataset, as served to a learner; rows are read on demand."""

from __future__ import annotations

import copy
import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.former_names import former_names
from ianvs.exam.data.dataset import Positions, Table, Transform
from ianvs.exam.data.encoded_pictures import EncodedPictures, encoded_in, in_threads
from ianvs.exam.data.listing import column

LARGE = 1 << 26  # columns of this size are read row by row
_KEPT = 1 << 30  # rows of a column up to this size are cached in memory
_SMALL = 1 << 16  # arrays up to this size are pickled


@former_names(told="shown_labels")
@dataclass(frozen=True)
class Part:
    """Some samples of a dataset as a learner sees them.

    Attributes:
        samples: The table.
        positions: Positions in `samples`.
        transform: Changes x.
        labels: (len(positions), ...) labels in place of the samples' own; None: their own.
    """

    samples: Table
    positions: Positions
    transform: Transform | None = None
    labels: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def shown_labels(self) -> NDArray[Any]:
        """(len(positions), ...) labels: `labels`, or else the samples' own."""
        return self.samples.y[self.positions] if self.labels is None else self.labels

    def part(self, rows: Positions | slice) -> Part:
        """Return the samples at these indices of `positions`, in this order."""
        labels = None if self.labels is None else self.labels[rows]
        return Part(self.samples, self.positions[rows], self.transform, labels)

    def column(self, name: str) -> Column:
        """Return the column "x", "y" or "ids"."""
        if name == "y" and self.labels is not None:
            return Column(self.labels, np.arange(len(self.positions)))
        return Column(getattr(self.samples, name), self.positions, self.transform if name == "x" else None)


class Column:
    """(N, ...) rows of an array, a memory map, or images that stay encoded, read on demand.

    Attributes:
        workers: Threads that may read at the same time; 0 for a column that is read as a whole.
        lazy: Whether its rows are read one by one.
        encoded: Whether its rows are images that are decoded as they are read, without a transform.
    """

    def __init__(
        self,
        values: NDArray[Any] | EncodedPictures | Joined | Column,
        rows: Positions | None = None,
        transform: Transform | None = None,
        workers: int = 0,
        cache: _RowCache | None = None,
    ) -> None:
        """
        Args:
            values: Where rows are read from.
            rows: Positions in `values`; None: all of them, uncopied; the caller may modify them.
            transform: Applied to each batch of rows.
            workers: Threads. Above 0 rows are read and decoded one by one, and cached if they are small.
            cache: Cache shared with a column of the same `values`.
        """
        self._values, self._rows, self._transform, self.workers = values, rows, transform, workers
        self.lazy = workers > 0
        self._cache, self._owns_cache = cache or (_RowCache() if self.lazy else None), cache is None
        held = values.encoded if isinstance(values, Column | Joined) else isinstance(values, EncodedPictures)
        self.encoded: bool = held and transform is None

    def __reduce__(self) -> Any:
        """Pickle for another process, which opens memory maps by path and reads rows itself."""
        return Column, (_reopenable(self._values), self._rows, self._transform, self.workers)

    def __len__(self) -> int:
        return len(self._values) if self._rows is None else len(self._rows)

    @cached_property
    def _first(self) -> NDArray[Any]:
        return self.gather(np.arange(min(1, len(self))))

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *(self._values.shape if self._transform is None else self._first.shape)[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        if self._transform is not None:
            return self._first.dtype
        return self._values.dtype if self._values.dtype.kind != "f" else np.dtype(np.float32)

    @property
    def nbytes(self) -> int:
        """Bytes that `gather()` returns, before a transform changes the shape."""
        return self._values.dtype.itemsize * math.prod(self._values.shape[1:]) * len(self)

    @property
    def opens_by_path(self) -> bool:
        """Whether a pickle holds no samples, because all of them are in files."""
        inner = self._values
        if isinstance(inner, Column | Joined):
            return inner.opens_by_path
        return encoded_in(inner) is not None or _is_map(inner)

    def take(self, rows: Positions) -> Column:
        """Return a column of the rows at these indices, in this order."""
        inner = rows if self._rows is None else self._rows[rows]
        return Column(self._values, inner, self._transform, self.workers, self._cache)

    def gather(self, rows: Positions | None = None, threads: int | None = None) -> NDArray[Any]:
        """Return all rows, or a copy of `rows`. threads: None: as many as `workers`."""
        threads = self.workers if threads is None else threads
        places = self._rows if rows is None else rows if self._rows is None else self._rows[rows]
        return self._read_rows(places, threads) if self._cache is None else self._cache.gather(self, places, threads)

    def close(self) -> None:
        """Free the cached rows, except those cached by the column that this one was taken from."""
        if self._owns_cache and self._cache is not None:
            self._cache.rows = None

    def to_reopenable(self, folder: Path, name: str) -> Column:
        """Return an equal column that pickles to few bytes: large arrays are in files, below `folder` if they are new.

        Args:
            folder: For new files, which stay until the view is closed.
            name: Name of the file, without its suffix.
        """
        if self.lazy and self.opens_by_path:
            return self
        values = self.gather()
        if values.dtype == object or values.nbytes <= _SMALL:
            return Column(values)
        path = folder / f"{name}.npy"
        if not path.exists():
            part = path.with_suffix(".part")
            with part.open("wb") as file:
                np.save(file, values)
            part.rename(path)
        return Column(np.load(path, mmap_mode="c"))

    def _read_rows(self, places: Positions | None, threads: int = 0) -> NDArray[Any]:
        """Read rows of `values`; the caller may modify them."""
        values = self._values
        if isinstance(values, Column | Joined | EncodedPictures):
            values_read = values.gather(places, threads)
        elif places is None:
            return values
        else:
            values_read = np.asarray(values[places])
        if self._transform is not None and len(values_read):
            values_read = self._transform(values_read)
        if places is None:
            return values_read
        if values_read.dtype.kind == "f":
            values_read = values_read.astype(np.float32, copy=False)
        # Deep: a learner may modify the lists within a conversation.
        return copy.deepcopy(values_read) if values_read.dtype == object else np.ascontiguousarray(values_read)


class Joined:
    """The rows of several columns, one column after the other."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = tuple(columns)
        self._starts = np.cumsum([0, *map(len, self._columns)])
        self.encoded = all(inner.encoded for inner in columns)

    def __reduce__(self) -> Any:
        return Joined, (self._columns,)

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(*(inner.dtype for inner in self._columns))

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *self._columns[0].shape[1:])

    @property
    def opens_by_path(self) -> bool:
        return all(inner.opens_by_path for inner in self._columns)

    def gather(self, rows: Positions | None, threads: int) -> NDArray[Any]:
        """See `Column.gather`."""
        if rows is None:
            return np.concatenate([inner.gather(None, threads) for inner in self._columns])
        owner = np.searchsorted(self._starts, rows, side="right") - 1
        output: NDArray[Any] | None = None
        for index, inner in enumerate(self._columns):
            mine = np.flatnonzero(owner == index)
            if len(mine):
                gathered = inner.gather(rows[mine] - self._starts[index], threads)
                if output is None:
                    output = np.empty((len(rows), *gathered.shape[1:]), dtype=gathered.dtype)
                output[mine] = gathered
        return self._columns[0].gather(rows, threads) if output is None else output


class _RowCache:
    """Cache of rows of a lazy column, for columns that fit in memory."""

    def __init__(self) -> None:
        self.rows: tuple[NDArray[Any], NDArray[np.bool_]] | None = None  # all rows, and whether each was read

    def gather(self, source: Column, places: Positions | None, threads: int) -> NDArray[Any]:
        count, nbytes = len(source._values), source.nbytes // max(1, len(source)) * len(source._values)
        wanted = np.arange(count) if places is None else np.asarray(places, np.int64)
        rows = self.rows  # one pair to the end: other threads read, too, and may replace it at the same time
        if rows is None and (nbytes <= _KEPT or places is None):
            rows = self.rows = self._allocate((count, *source.shape[1:]), source.dtype), np.zeros(count, bool)
        if rows is None:
            output = np.empty((len(wanted), *source.shape[1:]), source.dtype)
            _fill(source, wanted, output, np.arange(len(wanted)), threads)
            return output
        values, is_read = rows
        missing = wanted[~is_read[wanted]]
        _fill(source, missing, values, missing, threads)
        is_read[missing] = True
        return values if places is None else values[wanted]

    def _allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Allocate all rows: in memory, or in a temporary file if they are large."""
        nbytes = math.prod(shape) * dtype.itemsize
        if nbytes <= _KEPT:
            return np.empty(shape, dtype)
        with tempfile.TemporaryFile() as file:
            file.truncate(nbytes)
            return np.memmap(file, dtype, "r+", shape=shape)


def _fill(source: Column, rows: Positions, output: NDArray[Any], places: Positions, threads: int) -> None:
    """Read `rows` into those `places` of `output`."""

    def fill(block: range) -> None:
        part = slice(block.start, block.stop)
        output[places[part]] = source._read_rows(rows[part], 1)

    in_threads(fill, len(rows), math.prod(source.shape[1:]) * source.dtype.itemsize, threads)


def columns_of(
    parts: Sequence[Part], names: Sequence[str] = ("x", "y", "ids"), order: Positions | None = None
) -> dict[str, Column]:
    """Return columns of the parts, concatenated, or all rows in this `order`."""
    first, columns = parts[0], {}
    rows = np.concatenate([part.positions for part in parts])
    for name in names:
        if any(
            part.samples is not first.samples
            or (name == "x" and part.transform is not first.transform)
            or (name == "y" and part.labels is not None)
            for part in parts
        ):
            each = [part.column(name) for part in parts]
            joined = each[0] if len(each) == 1 else Column(Joined(each))
            columns[name] = joined if order is None else joined.take(order)
        else:  # rows of the same table
            transform = first.transform if name == "x" else None
            columns[name] = Column(getattr(first.samples, name), rows if order is None else rows[order], transform)
    return columns


def column_in_memory(values: NDArray[Any] | Sequence[Any]) -> Column:
    """Return a column of numbers, or of a list of any objects; the caller may modify it."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return Column(values)
    texts = len(values) > 0 and all(isinstance(value, str) for value in values)
    return Column(np.array(values, dtype=str) if texts else column(list(values)))


def as_served(source: Column, workers: int) -> Column:
    """Return `source` as it is served to a learner: row by row if it is encoded or large.

    Args:
        source: Samples, labels or names.
        workers: Threads that read and decode at the same time.
    """
    if source.encoded:
        return Column(source, workers=workers)
    if source.dtype == object:
        return column_in_memory(source.gather())
    return source if source.nbytes < LARGE else Column(source, workers=workers)


def _is_map(values: Any) -> bool:
    """Return whether `values` maps a whole file."""
    owner = values if isinstance(values, np.memmap) else getattr(values, "base", None)
    whole = isinstance(owner, np.memmap) and bool(owner.filename) and owner.shape == values.shape
    return whole and bool(values.flags.c_contiguous)


def _reopenable(values: Any) -> Any:
    """Return an array in the form in which it is pickled: a memory map as its path."""
    if not isinstance(values, np.ndarray) or not _is_map(values):
        return values
    owner: Any = values if isinstance(values, np.memmap) else values.base
    return _PickledMap(os.fspath(owner.filename), owner.dtype.str, owner.shape, owner.offset)


class _PickledMap:
    """Unpickles as a memory map. Changes to it stay within that process."""

    def __init__(self, path: str, dtype: str, shape: tuple[int, ...], offset: int) -> None:
        self._arguments = path, dtype, "c", offset, shape

    def __reduce__(self) -> Any:
        return _open_memmap, self._arguments


def _open_memmap(*arguments: Any) -> NDArray[Any]:
    return np.memmap(*arguments).view(np.ndarray)
