"""The samples that a learner is handed: columns of parts of a dataset, gathered where they are asked for."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.data.dataset import Positions, Samples, Transform
from ianvs.exam.data.encoded_pictures import Coding, encoded_in
from ianvs.exam.data.listing import column

_LONG = 1 << 16  # bytes of positions that are pickled as they are


@dataclass(frozen=True)
class Rows:
    """Rows of an array, which may be a memory map: read where they are asked for."""

    values: NDArray[Any]
    positions: Positions
    transform: Transform | None = None

    def __reduce__(self) -> Any:
        """For another process: a memory map is opened there by its path."""
        return Rows, (_reopenable(self.values), _reopenable(self.positions), self.transform)

    def gather(self, rows: Positions | None = None) -> NDArray[Any]:
        """A copy of all rows, or of `rows`."""
        gathered = np.asarray(self.values[self.positions if rows is None else self.positions[rows]])
        if self.transform is not None and len(gathered):
            gathered = self.transform(gathered)
        if gathered.dtype.kind == "f":
            gathered = gathered.astype(np.float32, copy=False)
        # Deep: the lists within a conversation are a learner's to change, too.
        return copy.deepcopy(gathered) if gathered.dtype == object else np.ascontiguousarray(gathered)


@dataclass(frozen=True)
class Part:
    """Some samples of a dataset as a learner is told them.

    positions: in `samples`. labels: (len(positions), ...) what is told instead of the samples' own; None: these.
    """

    samples: Samples
    positions: Positions
    transform: Transform | None = None
    labels: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def told(self) -> NDArray[Any]:
        """(len(positions), ...) labels: `labels`, or else the samples' own."""
        return self.samples.y[self.positions] if self.labels is None else self.labels

    def part(self, rows: Positions | slice) -> Part:
        """The samples at these places in `positions`, in this order."""
        labels = None if self.labels is None else self.labels[rows]
        return Part(self.samples, self.positions[rows], self.transform, labels)

    def column(self, name: str) -> Rows:
        """What a learner may ask for: "x", "y" or "ids"."""
        if name == "y" and self.labels is not None:
            return Rows(self.labels, np.arange(len(self.positions)))
        return Rows(getattr(self.samples, name), self.positions, self.transform if name == "x" else None)


def _reopenable(values: NDArray[Any]) -> Any:
    """An array for a pickle: of a memory map its place."""
    if not _is_map(values):
        return values
    owner: Any = values if isinstance(values, np.memmap) else values.base
    return _MapOf(os.fspath(owner.filename), owner.dtype.str, owner.shape, owner.offset)


def _is_map(values: NDArray[Any]) -> bool:
    """Whether it is a whole file, or the same memory as one."""
    owner = values if isinstance(values, np.memmap) else values.base
    return isinstance(owner, np.memmap) and bool(owner.filename) and owner.shape == values.shape


class _MapOf:
    """Is a memory map once it was pickled and read again."""

    def __init__(self, *where: Any) -> None:
        self._where = where

    def __reduce__(self) -> Any:
        return _map_of, self._where


def _map_of(path: str, dtype: str, shape: tuple[int, ...], offset: int) -> NDArray[Any]:
    return np.memmap(path, dtype, "r", offset, shape).view(np.ndarray)


class Column:
    """The same column of one part after the other, or of all of them in an `order` of their own."""

    def __init__(self, parts: Sequence[Rows], order: Positions | None = None) -> None:
        self._parts, self._order = tuple(parts), order

    def __reduce__(self) -> Any:
        return Column, (self._parts, None if self._order is None else _reopenable(self._order))

    @property
    def opens_by_path(self) -> bool:
        """Whether a pickle of it holds no samples: all of them lie in files."""
        return all(encoded_in(one.values) is not None or _is_map(one.values) for one in self._parts)

    def placed(self, folder: Path, name: str) -> Column:
        """The same with long lists of positions in files below `folder`, which a pickle then does not hold."""

        def kept(values: Positions, number: int) -> Positions:
            if values.nbytes <= _LONG:
                return values
            path = folder / f"{name}-{number}.npy"
            np.save(path, values)
            found: Positions = np.load(path, mmap_mode="r")
            return found

        parts = [replace(one, positions=kept(one.positions, i)) for i, one in enumerate(self._parts, start=1)]
        return Column(parts, None if self._order is None else kept(self._order, 0))

    def __len__(self) -> int:
        return sum(len(part.positions) for part in self._parts)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return np.cumsum([0, *(len(part.positions) for part in self._parts)])

    @property
    def nbytes(self) -> int:
        """Bytes that `gather()` takes, up to a transform's change of the shape."""
        return sum(p.values.dtype.itemsize * math.prod(p.values.shape[1:]) * len(p.positions) for p in self._parts)

    @property
    def coding(self) -> Coding | None:
        """How files become its rows, where they may be handed over as they are."""
        of = [None if one.transform else encoded_in(one.values) for one in self._parts]
        told = [None if one is None else one.coding.told() for one in of]
        return of[0].coding if of and of[0] is not None and told.count(told[0]) == len(told) else None

    def files(self, rows: Positions) -> Iterator[tuple[bytes, int]]:
        """(what is in the file, its numbering) of each row, where there is a `coding`."""
        rows = rows if self._order is None else self._order[rows]
        for row in rows.tolist():
            owner = int(np.searchsorted(self._starts, row, side="right")) - 1
            part = self._parts[owner]
            index = int(part.positions[row - self._starts[owner]])
            if (encoded := encoded_in(part.values)) is not None:
                yield encoded.read(index), encoded.numbering(index)

    def gather(self, rows: Positions | None = None) -> NDArray[Any]:
        """A copy of all rows, or of `rows`."""
        if self._order is not None:
            rows = self._order if rows is None else self._order[rows]
        if len(self._parts) == 1:
            return self._parts[0].gather(rows)
        if rows is None:
            return np.concatenate([part.gather() for part in self._parts])
        owner = np.searchsorted(self._starts, rows, side="right") - 1
        found: NDArray[Any] | None = None
        for index, part in enumerate(self._parts):
            mine = np.flatnonzero(owner == index)
            if len(mine):
                gathered = part.gather(rows[mine] - self._starts[index])
                if found is None:
                    found = np.empty((len(rows), *gathered.shape[1:]), dtype=gathered.dtype)
                found[mine] = gathered
        return self._parts[0].gather(rows) if found is None else found


class StoredColumn(Protocol):
    """(N, ...) rows that lie elsewhere."""

    @property
    def nbytes(self) -> int: ...

    def __len__(self) -> int: ...

    def gather(self, rows: Positions | None = None) -> NDArray[Any]: ...


class Held:
    """A column that is at hand, as numbers or as a list of anything else; who holds it may change it."""

    def __init__(self, values: NDArray[Any] | Sequence[Any]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    @property
    def nbytes(self) -> int:
        return self._values.nbytes if isinstance(self._values, np.ndarray) else 0

    def gather(self, rows: Positions | None = None) -> NDArray[Any]:
        """All rows, not copied; or a copy of `rows`."""
        if not isinstance(self._values, np.ndarray):
            texts = all(isinstance(value, str) for value in self._values)
            self._values = np.array(self._values, dtype=str) if texts else column(self._values)
        return self._values if rows is None else self._values[rows]


class LazyColumn(Protocol):
    """(N, ...) rows that are read, and perhaps decoded, when they are asked for, up to `close`.

    workers: threads that `gather` takes, or that may each call `read`. opens_by_path: whether a pickle of it holds no
    samples, since all of them lie in files.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    workers: int
    opens_by_path: bool

    @property
    def nbytes(self) -> int: ...

    def __len__(self) -> int: ...

    def gather(self, rows: Positions | None = None) -> NDArray[Any]: ...

    def read(self, rows: Positions) -> NDArray[Any]: ...

    def close(self) -> None: ...


def is_lazy(column: ColumnData) -> TypeGuard[LazyColumn]:
    """Whether it is one; a check of the protocol itself takes as long as a small batch."""
    return hasattr(column, "workers")


class Picked:
    """Some rows of a column."""

    def __init__(self, column: ColumnData, rows: Positions) -> None:
        self._column, self._rows = column, rows
        self.shape: tuple[int, ...]
        self.dtype: np.dtype[Any]
        self.workers: int
        self.opens_by_path: bool
        if is_lazy(column):
            self.shape, self.dtype, self.workers = (len(rows), *column.shape[1:]), column.dtype, column.workers
            self.opens_by_path = column.opens_by_path

    @property
    def nbytes(self) -> int:
        return self._column.nbytes * len(self._rows) // max(1, len(self._column))

    def __len__(self) -> int:
        return len(self._rows)

    def gather(self, rows: Positions | None = None) -> NDArray[Any]:
        return self._column.gather(self._rows if rows is None else self._rows[rows])

    def read(self, rows: Positions) -> NDArray[Any]:
        column, rows = self._column, self._rows[rows]
        return column.read(rows) if is_lazy(column) else column.gather(rows)

    def close(self) -> None:
        """It is the column's own end that counts."""


ColumnData = Column | Held | Picked | LazyColumn | StoredColumn


def columns_of(
    parts: Sequence[Part], names: Sequence[str] = ("x", "y", "ids"), order: Positions | None = None
) -> dict[str, Column]:
    """Those columns of one part after the other, or of all of them in an `order` of their own."""
    return {name: Column([part.column(name) for part in parts], order) for name in names}
