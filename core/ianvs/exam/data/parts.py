"""The samples that a learner is handed: columns of parts of a dataset, gathered where they are asked for."""

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

LARGE = 1 << 26  # bytes of a column from which on it is read row by row
_KEPT = 1 << 30  # bytes of a column up to which its rows are kept once they were read
_SMALL = 1 << 16  # bytes that are pickled as they are


@former_names(told="shown_labels")
@dataclass(frozen=True)
class Part:
    """Some samples of a dataset as a learner is told them.

    positions: in `samples`. labels: (len(positions), ...) what is told instead of the samples' own; None: these.
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
        """The samples at these places in `positions`, in this order."""
        labels = None if self.labels is None else self.labels[rows]
        return Part(self.samples, self.positions[rows], self.transform, labels)

    def column(self, name: str) -> Column:
        """What a learner may ask for: "x", "y" or "ids"."""
        if name == "y" and self.labels is not None:
            return Column(self.labels, np.arange(len(self.positions)))
        return Column(getattr(self.samples, name), self.positions, self.transform if name == "x" else None)


class Column:
    """(N, ...) rows of an array, a memory map, or images that stay encoded, read where they are asked for.

    Attributes:
        workers: Threads that may read at the same time; 0 for a column that is read as a whole.
        lazy: Whether its rows are read one by one.
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
            rows: Positions in `values`; None: all of them, as they are, for who holds them to change.
            transform: Of a batch of rows.
            workers: Above 0 rows are read, and decoded, one by one, and kept where all of them are small.
            cache: Of a column with the same `values`.
        """
        self._values, self._rows, self._transform, self.workers = values, rows, transform, workers
        self.lazy = workers > 0
        self._cache, self._owns_cache = cache or _RowCache(), cache is None

    def __reduce__(self) -> Any:
        """For another process: a memory map is opened there by its path, and rows are read by itself."""
        return Column, (_reopenable(self._values), self._rows, self._transform, self.workers)

    def __len__(self) -> int:
        return len(self._values) if self._rows is None else len(self._rows)

    @property
    def encoded(self) -> bool:
        """Whether they are images that are decoded as they are read, and nothing else is done with them."""
        inner = self._values
        encoded = inner.encoded if isinstance(inner, Column | Joined) else encoded_in(inner) is not None
        return encoded and self._transform is None

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
        """Bytes that `gather()` takes, up to a transform's change of the shape."""
        return self._values.dtype.itemsize * math.prod(self._values.shape[1:]) * len(self)

    @property
    def opens_by_path(self) -> bool:
        """Whether a pickle of it holds no samples: all of them lie in files."""
        inner = self._values
        if isinstance(inner, Column | Joined):
            return inner.opens_by_path
        return encoded_in(inner) is not None or _is_map(inner)

    def take(self, rows: Positions) -> Column:
        """The rows at these places, in this order."""
        inner = rows if self._rows is None else self._rows[rows]
        return Column(self._values, inner, self._transform, self.workers, self._cache)

    def gather(self, rows: Positions | None = None) -> NDArray[Any]:
        """All rows, or a copy of `rows`."""
        return self.fetched(rows, self.workers)

    def read(self, rows: Positions) -> NDArray[Any]:
        """A copy of `rows`, read by this thread alone."""
        return self.fetched(rows, 1)

    def fetched(self, rows: Positions | None, workers: int) -> NDArray[Any]:
        """As `gather`, by so many threads."""
        places = self._rows if rows is None else rows if self._rows is None else self._rows[rows]
        return self._cache.read(self, places, workers) if self.lazy else self._gathered(places, workers)

    def close(self) -> None:
        """Free the rows that it has cached; those cached by the column that it was taken from stay."""
        if self._owns_cache:
            self._cache.rows = None

    def reopened(self, folder: Path, name: str) -> Column:
        """The same in a form that pickles to few bytes: what is large lies in a file below `folder`, or where it came
        from.

        Args:
            folder: For files, which stay until the view ends.
            name: Of the file.
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

    def _gathered(self, places: Positions | None, workers: int = 0) -> NDArray[Any]:
        """Rows of `values`, for who gets them to change."""
        values = self._values
        if isinstance(values, Column | Joined | EncodedPictures):
            values_read = values.fetched(places, workers)
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
        # Deep: the lists within a conversation are a learner's to change, too.
        return copy.deepcopy(values_read) if values_read.dtype == object else np.ascontiguousarray(values_read)


class Joined:
    """The rows of several columns, one column after the other."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = tuple(columns)
        self._starts = np.cumsum([0, *map(len, self._columns)])

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
    def encoded(self) -> bool:
        return all(inner.encoded for inner in self._columns)

    @property
    def opens_by_path(self) -> bool:
        return all(inner.opens_by_path for inner in self._columns)

    def fetched(self, rows: Positions | None, workers: int) -> NDArray[Any]:
        """See `Column.fetched`."""
        if rows is None:
            return np.concatenate([inner.fetched(None, workers) for inner in self._columns])
        owner = np.searchsorted(self._starts, rows, side="right") - 1
        output: NDArray[Any] | None = None
        for index, inner in enumerate(self._columns):
            mine = np.flatnonzero(owner == index)
            if len(mine):
                gathered = inner.fetched(rows[mine] - self._starts[index], workers)
                if output is None:
                    output = np.empty((len(rows), *gathered.shape[1:]), dtype=gathered.dtype)
                output[mine] = gathered
        return self._columns[0].fetched(rows, workers) if output is None else output


class _RowCache:
    """Rows of a lazy column that were read, so that a further pass costs nothing where all of them are small."""

    def __init__(self) -> None:
        self.rows: tuple[NDArray[Any], NDArray[np.bool_]] | None = None  # all of them, and which are there

    def read(self, source: Column, places: Positions | None, workers: int) -> NDArray[Any]:
        count, nbytes = len(source._values), source.nbytes // max(1, len(source)) * len(source._values)
        wanted = np.arange(count) if places is None else np.asarray(places, np.int64)
        rows = self.rows  # one pair to the end: other threads read, too, and may begin another at the same time
        if rows is None and (nbytes <= _KEPT or places is None):
            rows = self.rows = self._room((count, *source.shape[1:]), source.dtype), np.zeros(count, bool)
        if rows is None:
            output = np.empty((len(wanted), *source.shape[1:]), source.dtype)
            _fill(source, wanted, output, np.arange(len(wanted)), workers)
            return output
        values, is_read = rows
        missing = wanted[~is_read[wanted]]
        _fill(source, missing, values, missing, workers)
        is_read[missing] = True
        return values if places is None else values[wanted]

    def _room(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """For all rows: in memory, or a map of a file that is gone with it, where somebody wants more than fits."""
        nbytes = math.prod(shape) * dtype.itemsize
        if nbytes <= _KEPT:
            return np.empty(shape, dtype)
        with tempfile.TemporaryFile() as file:
            file.truncate(nbytes)
            return np.memmap(file, dtype, "r+", shape=shape)


def _fill(source: Column, rows: Positions, output: NDArray[Any], places: Positions, workers: int) -> None:
    """Read `rows` into those `places` of `output`."""

    def fill(block: range) -> None:
        part = slice(block.start, block.stop)
        output[places[part]] = source._gathered(rows[part], 1)

    in_threads(fill, len(rows), math.prod(source.shape[1:]) * source.dtype.itemsize, workers)


def columns_of(
    parts: Sequence[Part], names: Sequence[str] = ("x", "y", "ids"), order: Positions | None = None
) -> dict[str, Column]:
    """Those columns of one part after the other, or of all of them in an `order` of their own."""
    columns = {}
    for name in names:
        each = [part.column(name) for part in parts]
        joined = each[0] if len(each) == 1 else Column(Joined(each))
        columns[name] = joined if order is None else joined.take(order)
    return columns


def in_hand(values: NDArray[Any] | Sequence[Any]) -> Column:
    """A column of numbers, or of a list of anything else; who holds it may change it."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return Column(values)
    texts = len(values) > 0 and all(isinstance(value, str) for value in values)
    return Column(np.array(values, dtype=str) if texts else column(list(values)))


def presented(source: Column, workers: int) -> Column:
    """`source` as a learner gets it: row by row where it is encoded or large.

    Args:
        source: Table, labels or names.
        workers: Threads that decode at the same time.
    """
    if source.encoded:
        return Column(source, workers=workers)
    if source.dtype == object:
        return in_hand(source.gather())
    return source if source.nbytes < LARGE else Column(source, workers=workers)


def _is_map(values: Any) -> bool:
    """Whether it is a whole file, or the same memory as one."""
    owner = values if isinstance(values, np.memmap) else getattr(values, "base", None)
    whole = isinstance(owner, np.memmap) and bool(owner.filename) and owner.shape == values.shape
    return whole and bool(values.flags.c_contiguous)


def _reopenable(values: Any) -> Any:
    """An array for a pickle: of a memory map its place."""
    if not isinstance(values, np.ndarray) or not _is_map(values):
        return values
    owner: Any = values if isinstance(values, np.memmap) else values.base
    return _MapOf(os.fspath(owner.filename), owner.dtype.str, owner.shape, owner.offset)


class _MapOf:
    """Is a memory map once it was pickled and read again; changes of it stay in that process."""

    def __init__(self, path: str, dtype: str, shape: tuple[int, ...], offset: int) -> None:
        self._how = path, dtype, "c", offset, shape

    def __reduce__(self) -> Any:
        return _map_of, self._how


def _map_of(*how: Any) -> NDArray[Any]:
    return np.memmap(*how).view(np.ndarray)
