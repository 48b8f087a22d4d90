"""A tensor whose samples are decoded when they are read.

Selecting rows decodes only these. A part of its rows, and its axes in another order, are again such a tensor. All other
operations decode all rows.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.context import get_spawning_popen
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from ianvs.base.errors import PluginError
from ianvs.exam.data.dataset import Positions
from ianvs.exam.data.parts import Column

_SMALL = 1 << 26  # parts up to this size in bytes are decoded at once and become ordinary tensors
_aten = torch.ops.aten


class LazyRows(Tensor):
    """(N, ...) rows of a lazy column, on the CPU."""

    @staticmethod
    def __new__(cls, column: Column, axes: Sequence[int] | None = None) -> Self:
        """Make a tensor without storage. axes: their order, the first being the samples."""
        shape = column.shape
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        order = range(len(shape)) if axes is None else axes
        made: Self = Tensor._make_wrapper_subclass(
            cls,
            [shape[axis] for axis in order],
            strides=[strides[axis] for axis in order],
            dtype=torch.from_numpy(np.empty(0, column.dtype)).dtype,
        )
        made._column, made._order = column, tuple(order)
        return made

    _column: Column
    _order: tuple[int, ...]

    def __init__(self, column: Column, axes: Sequence[int] | None = None) -> None:
        super().__init__()

    def decoded(self) -> Tensor:
        """Return all rows, in memory."""
        return self._read_rows(np.arange(len(self)))

    def numpy(self, *, force: bool = False) -> Any:
        """Return all rows as an array."""
        return self.decoded().numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.decoded().numpy(), dtype)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[index] for index in range(len(self)))

    def __repr__(self, **_: object) -> str:  # type: ignore[override]
        return f"{type(self).__name__}(shape={tuple(self.shape)}, dtype={self.dtype})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return self.decoded()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the decoder for a spawned process, such as a DataLoader worker, and the decoded rows otherwise."""
        if get_spawning_popen() is None or not self._column.opens_by_path:
            return self.decoded().__reduce_ex__(protocol)  # type: ignore[no-untyped-call]
        return LazyRows, (self._column, self._order)

    def _read_rows(self, places: Positions) -> Tensor:
        """Return those rows, in memory."""
        return torch.from_numpy(self._column.gather(places)).permute(self._order)

    def _part(self, places: Positions) -> Tensor:
        if len(places) * self.nbytes <= _SMALL * max(1, len(self)):
            return self._read_rows(places)
        return LazyRows(self._column.take(places), self._order)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        with torch.inference_mode(False):  # results of an outside tensor can't be instances of this class
            return cls._dispatched(func, args, dict(kwargs or {}))

    @classmethod
    def _dispatched(cls, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        lazily = _LAZILY.get(func)
        if lazily is not None and isinstance(args[0], cls):
            result = lazily(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if func._schema.is_mutable:
            raise PluginError(
                "samples that are decoded when they are read can't be changed in place: take x.clone().",
                code="broken-rule",
            )

        def whole(value: Any) -> Any:
            return value.decoded() if isinstance(value, LazyRows) else value

        return func(*tree_map(whole, args), **tree_map(whole, kwargs))


def _index_select(x: LazyRows, dim: int, index: Tensor) -> Any:
    return x._read_rows(index.numpy()) if dim == 0 and index.device.type == "cpu" else NotImplemented


def _index(x: LazyRows, indices: Sequence[Tensor | None]) -> Any:
    if len(indices) != 1 or indices[0] is None or indices[0].ndim != 1:
        return NotImplemented
    chosen = indices[0].cpu()
    return x._read_rows((chosen.nonzero()[:, 0] if chosen.dtype == torch.bool else chosen % len(x)).numpy())


def _select(x: LazyRows, dim: int, index: int) -> Any:
    return x._read_rows(np.array([range(len(x))[index]]))[0] if dim == 0 else NotImplemented


def _slice(x: LazyRows, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return x._part(np.arange(len(x))[slice(start, end, step)]) if dim == 0 else NotImplemented


def _split(x: LazyRows, size: int | Sequence[int], dim: int = 0) -> Any:
    if dim != 0:
        return NotImplemented
    sizes = [min(size, len(x) - at) for at in range(0, len(x), size)] if isinstance(size, int) else list(size)
    rows = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    return [LazyRows(x._column.take(part), x._order) for part in rows]


def _permute(x: LazyRows, dims: Sequence[int]) -> Any:
    axes = [dim % x.ndim for dim in dims]
    return LazyRows(x._column, [x._order[axis] for axis in axes]) if axes[0] == 0 else NotImplemented


def _same(x: LazyRows) -> LazyRows:
    return LazyRows(x._column, x._order)


_LAZILY: Mapping[Any, Callable[..., Any]] = {
    _aten.index_select.default: _index_select,
    _aten.index.Tensor: _index,
    _aten.select.int: _select,
    _aten.slice.Tensor: _slice,
    _aten.split.Tensor: _split,
    _aten.split_with_sizes.default: _split,
    _aten.permute.default: _permute,
    _aten.detach.default: _same,
    _aten.alias.default: _same,
}
