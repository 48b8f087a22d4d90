"""The data that a plugin receives: views of a part of the dataset that are closed at the end of the round.

They implement ianvs.plugins.contract. They do not contain what the rules hide: the labels and names of test samples (a
name often reveals the class), and the data of earlier rounds.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ianvs.base.errors import ExamRuleError, HiddenError, PluginError
from ianvs.exam.data.parts import Column

if TYPE_CHECKING:
    import torch

_AHEAD = 2  # batches that each worker of a loader may be ahead
RESIDENT_BYTES = 2 << 30  # a part up to this size is moved to the device whole, a larger one batch by batch


class View:
    """Samples that are read at the first access, and freed by `close`."""

    def __init__(self, over: str, columns: Mapping[str, Column]) -> None:
        self._count = len(columns["x"])
        self._over = over  # the error message after the view is closed
        self._open = True
        self._columns = dict(columns)
        self._gathered: dict[str, NDArray[Any]] = {}
        self._resident: dict[tuple[str, str], torch.Tensor] = {}
        self._folder: Path | None = None  # folder of the files that other processes open
        self._elsewhere = False  # whether this view was unpickled in another process

    @property
    def x(self) -> NDArray[Any]:
        """(N, ...) samples; images are uint8 (N, height, width, channels), numbers float32. You may change them."""
        self._pass(("x",))
        return self._column("x")

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        """Close the view and free its memory. Later accesses raise an ExamRuleError."""
        self._open = False
        if self._folder is not None and not self._elsewhere:
            shutil.rmtree(self._folder, ignore_errors=True)
        for column in self._columns.values():
            column.close()
        self._columns.clear()
        self._gathered.clear()
        self._resident.clear()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle for another process, such as a worker of a DataLoader: large columns are opened there by path.

        The copy is closed with the view.
        """
        state = {**vars(self), "_gathered": {}, "_resident": {}, "_elsewhere": True}
        if self._open and not self._elsewhere:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="view-"))
            columns = {name: column.to_reopenable(self._folder, name) for name, column in self._columns.items()}
            state |= {"_columns": columns, "_folder": self._folder}
        return state

    def _require_open(self) -> None:
        if not self._open or (self._elsewhere and self._folder is not None and not self._folder.exists()):
            raise ExamRuleError(self._over, code="broken-rule")

    def _require_batches(self, batch_size: int) -> None:
        self._require_open()
        if batch_size < 1:
            raise PluginError(f"batch_size is {batch_size}; it must be at least 1.", code="out-of-range")

    def _pass(self, columns: tuple[str, ...]) -> None:
        """Count a pass that reads `columns` whole; () is a loader."""
        self._require_open()

    def _select_columns(self, rows: ArrayLike, names: tuple[str, ...]) -> dict[str, Column]:
        """Return columns of the samples at `rows`: (n,) positions, or (N,) booleans."""
        self._require_open()
        rows = np.asarray(rows)
        where = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
        if rows.ndim != 1 or (rows.dtype == bool and len(rows) != self._count):
            form = f"{rows.dtype} of shape {rows.shape}"
            raise PluginError(
                f"name a part of {self._count} samples by positions or a bool for each, not by {form}.",
                code="wrong-type",
            )
        return {name: self._columns[name].take(where) for name in names}

    @property
    def over(self) -> str:
        """The error message after the view is closed."""
        return self._over

    def count(self, columns: tuple[str, ...]) -> None:
        """Count a pass by code that serves `columns` as a whole; () is a loader. Raises ExamRuleError."""
        if len(columns) == 1:
            getattr(self, columns[0])  # hidden ones raise their own error
        else:
            self._pass(columns)

    def column(self, name: str) -> NDArray[Any]:
        """Return a stored column; this is no pass."""
        return self._column(name)

    def _column(self, name: str) -> NDArray[Any]:
        self._require_open()
        if name not in self._gathered:
            self._gathered[name] = self._columns[name].gather()
        return self._gathered[name]

    def _tensor(self, column: str, device: str) -> torch.Tensor:
        """Return a column (N, ...) on `device`; it is moved there once, but a lazy column is not kept."""
        import torch

        self._require_open()
        key = (column, device)
        if key not in self._resident:
            held = self._columns[column]
            if held.lazy and column not in self._gathered:
                from ianvs.exam.scenarios.lazy_rows import LazyRows

                with torch.inference_mode(False):
                    tensor: torch.Tensor = LazyRows(held)
            else:
                tensor = torch.from_numpy(_numbers(self._column(column)))
            self._resident[key] = tensor.to(device)
        return self._resident[key]

    def _batches(self, columns: tuple[str, ...], order: torch.Tensor, batch_size: int, device: str) -> Iterator[Any]:
        """Yield batches: of a small part from the device, of a large one read one by one."""
        self._require_open()  # the view may have been closed between the call and the first batch
        lazy = [held for column in columns if (held := self._columns[column]).lazy]
        small = not lazy and sum(self._columns[column].nbytes for column in columns) <= RESIDENT_BYTES
        where = order.to(self._tensor(columns[0], device).device) if small else order.cpu()

        def batch(start: int, alone: bool = False) -> Any:
            self._require_open()
            rows = where[start : start + batch_size]
            presented = [_channels_first(column, self._rows(column, rows, device, small, alone)) for column in columns]
            return tuple(presented) if len(presented) > 1 else presented[0]

        starts = range(0, self._count, batch_size)
        workers = max((held.workers for held in lazy), default=1)
        if workers == 1:
            yield from map(batch, starts)
            return
        with ThreadPoolExecutor(workers) as ahead:  # the next batches are read while the learner trains on one
            coming: deque[Future[Any]] = deque()
            try:
                for start in starts:
                    coming.append(ahead.submit(batch, start, start > 0))
                    if start == 0:
                        wait(coming)  # the learner waits for the first batch: all threads read it
                    if len(coming) > _AHEAD * workers:
                        yield coming.popleft().result()
                while coming:
                    yield coming.popleft().result()
            finally:
                ahead.shutdown(cancel_futures=True)  # the learner may stop early

    def _rows(self, column: str, rows: torch.Tensor, device: str, small: bool, alone: bool) -> torch.Tensor:
        """Return rows of a column on `device`. alone: read by this thread only."""
        import torch

        if small:
            return self._tensor(column, device).index_select(0, rows)
        gathered, held = self._gathered.get(column), self._columns[column]
        if gathered is not None:
            values = gathered[rows.numpy()]
        else:
            values = held.gather(rows.numpy(), 1) if alone and held.lazy else held.gather(rows.numpy())
        return torch.from_numpy(_numbers(values)).to(device)


class TrainView(View):
    """The training data of one round (ianvs.plugins.contract.TrainData)."""

    def __init__(
        self,
        columns: Mapping[str, Column],
        *,
        name: str,
        passes: int | None = None,
        passed: int = 0,
        labelled: bool = True,
        whole: TrainView | None = None,
    ) -> None:
        """View some samples for training.

        Args:
            columns: "x", "y" and "ids" of the samples.
            name: Name in errors: "round 2".
            passes: Number of passes that the rules allow; None: any number.
            passed: Passes over the same data so far.
            labelled: False if `.y` is hidden.
            whole: The view that this is a part of, which counts the passes.
        """
        super().__init__(
            f"the data of {name} are not available after it. Keep samples that you need later in a memory of your own.",
            columns,
        )
        self._name, self._allowed, self._passed, self._labelled = name, passes, passed, labelled
        self._loaders = 0
        self._taken = dict.fromkeys(("x", "y"), 0)
        self._parts: list[View] = []
        self.whole = self if whole is None else whole

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without counting passes in the other process: this view was already counted."""
        return {**super().__getstate__(), "_parts": [], "_allowed": None, "whole": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, whole=self)

    @property
    def passes(self) -> int:
        """Passes so far: loaders, and accesses to whole columns by `.x`, `.y` or `tensors()`."""
        return self._loaders + int(any(self._taken.values()))

    def part(self, rows: ArrayLike) -> TrainView:
        """Return the samples at `rows`, (n,) positions or (N,) booleans. A pass over them counts as one over all."""
        columns = self._select_columns(rows, ("x", "y", "ids"))
        part = TrainView(columns, name=self._name, labelled=self._labelled, whole=self.whole)
        self.whole._parts.append(part)
        return part

    def unlabelled(self) -> TestView:
        """Return the samples without labels, for predictions. Reading them is no pass."""
        view = TestView(self._select_columns(np.arange(len(self)), ("x",))["x"], name=self._name)
        self.whole._parts.append(view)
        return view

    @property
    def classes(self) -> tuple[int, ...] | None:
        """Class indices among the labels; None if labels are no classes."""
        self._require_open()
        column = self._columns["y"]
        if column.lazy and len(column.shape) > 1:
            return None
        return class_indices_of(column.gather() if self._labelled else np.empty(0, np.int64))

    def close(self) -> None:
        """Close the view and free its memory."""
        super().close()
        for part in self._parts:
            part.close()
        self._parts.clear()

    def _pass(self, columns: tuple[str, ...]) -> None:
        """Count a pass that reads `columns` whole; () is a loader."""
        super()._pass(columns)
        if self.whole is not self:
            self.whole._pass(columns)
            return
        self._loaders += not columns
        for column in columns:
            self._taken[column] += 1
        now = self._passed + self._loaders + max(self._taken.values())
        if self._allowed is not None and now > self._allowed:
            once = "one pass" if self._allowed == 1 else f"{self._allowed} passes"
            raise ExamRuleError(
                f"the rules of this exam allow {once} over the data of {self._name}, and another one was asked for. "
                "Each call of loader() is a pass, and so is taking .x, .y or tensors(): keep what they gave. "
                "`passes` in the context says how often a learner may go over it.",
                code="broken-rule",
            )

    @property
    def y(self) -> NDArray[Any]:
        """(N,) int64 class indices (-1: hidden), uint8 masks (N, height, width), or (N,) texts."""
        if not self._labelled:
            raise HiddenError(
                "labels are hidden in the stages of continual pre-training: learn from `.x` alone. "
                "A copy gets labels when it is adapted to a downstream task.",
                code="broken-rule",
            )
        self._pass(("y",))
        return self._column("y")

    @property
    def ids(self) -> NDArray[np.str_]:
        """(N,) names of the samples, the same in every run."""
        return self._column("ids")

    def tensors(self, device: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
        """Return (x, y): images (N, C, H, W) in channels_last layout, without a copy; y int64, masks uint8.

        A hidden label is -1.
        """
        self._pass(("x", "y"))
        return _channels_first("x", self._tensor("x", device)), _channels_first("y", self._tensor("y", device))

    def loader(
        self, batch_size: int, shuffle: bool = True, generator: torch.Generator | None = None, device: str = "cpu"
    ) -> Iterator[Any]:
        """Iterate once over batches of (x, y). The last one may be smaller. The order is drawn by this call.

        generator: a torch.Generator that determines the order, by one torch.randperm(N).
        """
        import torch

        self._require_batches(batch_size)
        self._pass(())
        if not shuffle:
            order = torch.arange(self._count)
        else:
            where = "cpu" if generator is None else generator.device
            order = torch.randperm(self._count, generator=generator, device=where)
        return self._batches(("x", "y"), order, batch_size, device)


class TestView(View):
    """Samples to predict, without their labels (ianvs.plugins.contract.TestData). Iterates over x."""

    __test__ = False  # the name is not an invitation to pytest

    def __init__(self, samples: Column, *, name: str) -> None:
        """samples: the column "x", the only one of a test set that a learner sees."""
        super().__init__(f"{name} is not available after its examination; learn from training data.", {"x": samples})
        self._name = name

    @property
    def y(self) -> NoReturn:
        """Hidden."""
        raise HiddenError("labels of a test set are hidden; predict() gives them.", code="broken-rule")

    @property
    def ids(self) -> NoReturn:
        """Hidden: a file name often reveals the class or the domain."""
        raise HiddenError(
            "names of a test set's samples are hidden, since they often tell the class; use `.x`.", code="broken-rule"
        )

    def part(self, rows: ArrayLike) -> TestView:
        """Return the samples at `rows`, (n,) positions or (N,) booleans."""
        return TestView(self._select_columns(rows, ("x",))["x"], name=self._name)

    def __iter__(self) -> Iterator[Any]:
        self._require_open()
        lazy = self._columns["x"].lazy
        return map(self.__getitem__, range(len(self))) if lazy else iter(self.x)

    def __getitem__(self, index: Any) -> Any:
        self._require_open()
        column = self._columns["x"]
        if not column.lazy or "x" in self._gathered:
            return self.x[index]
        rows = np.arange(len(self))[index]
        return column.gather(rows) if rows.ndim else column.gather(rows[None])[0]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.x, dtype=dtype) if copy else np.asarray(self.x, dtype=dtype)

    def tensors(self, device: str = "cpu") -> torch.Tensor:
        """Return x as a tensor: images (N, C, H, W) in channels_last layout, without a copy."""
        return _channels_first("x", self._tensor("x", device))

    def loader(self, batch_size: int, device: str = "cpu") -> Iterator[Any]:
        """Iterate once over batches of x, in order."""
        import torch

        self._require_batches(batch_size)
        return self._batches(("x",), torch.arange(self._count), batch_size, device)


def class_indices_of(labels: NDArray[Any]) -> tuple[int, ...] | None:
    """Return the class indices, sorted, without hidden ones; None if labels are no classes."""
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        return None
    return tuple(label for label in np.unique(labels).tolist() if label >= 0)


def _numbers(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype == object:
        raise PluginError("these samples are no numbers; use `.x` and `.y` instead of tensors.", code="wrong-type")
    return values


def _channels_first(column: str, values: torch.Tensor) -> torch.Tensor:
    """Convert to PyTorch's convention: channels before height and width (a view), class indices int64."""
    if column == "y":  # segmentation masks stay uint8: as int64 they would take eight times the memory
        return values if values.ndim == 3 or values.is_floating_point() else values.long()
    return values.permute(0, 3, 1, 2) if values.ndim == 4 else values
