"""The objects that a plugin is handed: leases on a part of the data that end with the round.

They implement core.plugins.contract. What the rules of the exam hide is not in them: the labels of a test set, its
names (which often tell the class), and the data of a round that is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from core.data.dataset import Samples
from core.errors import ExamRuleError, PluginError
from core.scenarios.exam import Transform

__all__ = ["HandedTest", "HandedTrain"]

RESIDENT_BYTES = 2 << 30  # a part up to this size is moved to the device whole, a larger one batch by batch


class _Lease:
    """Samples that are gathered when they are first asked for, and gone after `close`."""

    def __init__(self, count: int, over: str, columns: dict[str, Callable[[], NDArray[Any]]]) -> None:
        self._count = count
        self._over = over  # what to say when the lease is over
        self._open = True
        self._columns = columns
        self._gathered: dict[str, NDArray[Any]] = {}
        self._resident: dict[tuple[str, str], Any] = {}

    @property
    def x(self) -> NDArray[Any]:
        """(N, ...) samples; pictures are uint8 (N, height, width, channels), numbers float32. Yours to change."""
        return self._column("x")

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        """End the lease: memory is given back, and whoever touches the data afterwards gets an ExamRuleError."""
        self._open = False
        self._columns.clear()
        self._gathered.clear()
        self._resident.clear()

    def _require_open(self) -> None:
        if not self._open:
            raise ExamRuleError(self._over)

    def _column(self, name: str) -> NDArray[Any]:
        self._require_open()
        if name not in self._gathered:
            self._gathered[name] = self._columns[name]()
        return self._gathered[name]

    def _tensor(self, column: str, device: str) -> Any:
        """The column as it lies in memory, (N, ...), on `device`; moved there once."""
        import torch

        values = self._column(column)
        if values.dtype == object:
            raise PluginError("these samples are no numbers; use `.x` and `.y` instead of tensors.")
        key = (column, device)
        if key not in self._resident:
            self._resident[key] = torch.from_numpy(values).to(device)
        return self._resident[key]

    def _batches(self, columns: tuple[str, ...], order: Any, batch_size: int, device: str) -> Iterator[Any]:
        small = sum(self._column(column).nbytes for column in columns) <= RESIDENT_BYTES
        sources = [self._tensor(column, device if small else "cpu") for column in columns]
        order = order.to(sources[0].device)
        for start in range(0, self._count, batch_size):
            self._require_open()
            index = order[start : start + batch_size]
            batch = [
                _presented(column, source.index_select(0, index).to(device))
                for column, source in zip(columns, sources, strict=True)
            ]
            yield tuple(batch) if len(batch) > 1 else batch[0]


class HandedTrain(_Lease):
    """Data of one round to learn from (core.plugins.contract.TrainData)."""

    def __init__(
        self, samples: Samples, positions: NDArray[np.int64], *, transform: Transform | None = None, name: str
    ) -> None:
        """positions: of the round, or a part of it, in `samples`. name: what errors call it, such as "round 2"."""
        super().__init__(
            len(positions),
            f"data of {name} is not available after it, old data never comes back by itself; keep your own memory.",
            {
                "x": lambda: _gather(samples.x, positions, transform),
                "y": lambda: _gather(samples.y, positions, None),
                "ids": lambda: samples.ids[positions],
            },
        )

    @property
    def y(self) -> NDArray[Any]:
        """(N,) int64 class indices, uint8 label pictures (N, height, width), or (N,) texts."""
        return self._column("y")

    @property
    def ids(self) -> NDArray[np.str_]:
        """(N,) names of the samples, the same from run to run."""
        return self._column("ids")

    def tensors(self, device: str = "cpu") -> tuple[Any, Any]:
        """(x, y): pictures (N, C, H, W) in channels_last layout, without a copy; y int64."""
        return _presented("x", self._tensor("x", device)), _presented("y", self._tensor("y", device))

    def loader(
        self, batch_size: int, shuffle: bool = True, generator: Any = None, device: str = "cpu"
    ) -> Iterator[Any]:
        """One pass in batches of (x, y), the last one may be smaller. The order is drawn when this is called.

        generator: a torch.Generator that fixes the order, by one torch.randperm(N).
        """
        import torch

        self._require_open()
        _require_batch_size(batch_size)
        if not shuffle:
            order = torch.arange(self._count)
        else:
            where = "cpu" if generator is None else generator.device
            order = torch.randperm(self._count, generator=generator, device=where)
        return self._batches(("x", "y"), order, batch_size, device)


class HandedTest(_Lease):
    """Samples to predict, without their labels (core.plugins.contract.TestData). Iterates over x."""

    def __init__(
        self, samples: Samples, positions: NDArray[np.int64], *, transform: Transform | None = None, name: str
    ) -> None:
        x = samples.x  # not the samples: what is hidden is not in here
        over = f"{name} is not available after its examination; learn from training data."
        super().__init__(len(positions), over, {"x": lambda: _gather(x, positions, transform)})

    @property
    def y(self) -> NoReturn:
        """Hidden."""
        raise ExamRuleError("labels of a test set are hidden; predict() gives them.")

    @property
    def ids(self) -> NoReturn:
        """Hidden: a file name often tells the class or the domain."""
        raise ExamRuleError("names of a test set's samples are hidden, since they often tell the class; use `.x`.")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.x)

    def __getitem__(self, index: Any) -> Any:
        return self.x[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.x, dtype=dtype) if copy else np.asarray(self.x, dtype=dtype)

    def tensors(self, device: str = "cpu") -> Any:
        """x as a tensor: pictures (N, C, H, W) in channels_last layout, without a copy."""
        return _presented("x", self._tensor("x", device))

    def loader(self, batch_size: int, device: str = "cpu") -> Iterator[Any]:
        """One pass in batches of x, in order."""
        import torch

        self._require_open()
        _require_batch_size(batch_size)
        return self._batches(("x",), torch.arange(self._count), batch_size, device)


def _gather(values: NDArray[Any], positions: NDArray[np.int64], transform: Transform | None) -> NDArray[Any]:
    gathered = np.asarray(values[positions])
    if transform is not None:
        gathered = transform(gathered)
    if gathered.dtype.kind == "f":
        gathered = gathered.astype(np.float32, copy=False)
    return gathered if gathered.dtype == object else np.ascontiguousarray(gathered)


def _presented(column: str, values: Any) -> Any:
    """As a PyTorch author expects it: channels before height and width (a view), labels int64."""
    if column == "y":
        return values.long()
    return values.permute(0, 3, 1, 2) if values.ndim == 4 else values


def _require_batch_size(batch_size: int) -> None:
    if batch_size < 1:
        raise PluginError(f"batch_size is {batch_size}; it must be at least 1.")
