"""The segmentation masks of a test set as a metric gets them: a sequence that is read on access."""

import zlib
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

FIRST = "pictures"
"""The extra that holds the first few predicted segmentation masks, (n, height, width)."""
EVERY = "all_pictures"
"""The extra that holds all of them, packed. Up to ianvs 0.2 it was stored only if a metric read them."""
_LEVEL = 6  # zlib's level: segmentation masks shrink to a few percent, and a higher level gains little


class LazyArray(NDArrayOperatorsMixin):
    """Base of objects that support array operations through `__array__`, so that metrics written for arrays work."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        arrays = (np.asarray(operand) if isinstance(operand, LazyArray) else operand for operand in inputs)
        return getattr(ufunc, method)(*arrays, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)


class LazyRows(LazyArray):
    """(N,) objects that are read on access: one by an index, several by a slice, a mask or positions."""

    _positions: NDArray[np.int64]  # positions among all stored ones

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[Any]:
        return map(self._at, self._positions.tolist())

    def __getitem__(self, index: Any) -> Any:
        picked = self._positions[index]
        if picked.ndim == 0:
            return self._at(int(picked))
        selected = copy(self)
        selected._positions = picked
        return selected

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        array = np.empty(len(self), dtype=object)
        array[:] = list(self)
        return array

    def _at(self, position: int) -> Any:
        raise NotImplementedError


class LabelPictures(LazyArray):
    """N segmentation masks (height, width) uint8: class indices, 255 is "no class".

    An index gives one mask, a slice several, iteration one after the other. `np.asarray` and other array operations
    read all of them as (N, height, width).
    """

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.shape = shape
        self.dtype, self.ndim = np.dtype(np.uint8), 3

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return (self._picture(index) for index in range(len(self)))

    def __getitem__(self, index: Any) -> NDArray[np.uint8]:
        if isinstance(index, int | np.integer) and not isinstance(index, bool):
            position = int(index) + (len(self) if index < 0 else 0)
            if not 0 <= position < len(self):
                raise IndexError(f"there is no mask {index}: there are {len(self)}")
            return self._picture(position)
        if isinstance(index, slice):
            return self._stacked(range(len(self))[index])
        pixels: NDArray[np.uint8] = np.asarray(self)[index]
        return pixels

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return self._stacked(range(len(self))).astype(dtype or np.uint8, copy=False)

    def _stacked(self, positions: Sequence[int]) -> NDArray[np.uint8]:
        stack = np.empty((len(positions), *self.shape[1:]), dtype=np.uint8)
        for n, position in enumerate(positions):
            stack[n] = self._picture(position)
        return stack

    def _picture(self, position: int) -> NDArray[np.uint8]:
        """Return a mask (height, width) that the caller may modify."""
        raise NotImplementedError


class PictureRows(LabelPictures):
    """Rows of an array of segmentation masks, which may be a memory map."""

    def __init__(self, values: NDArray[Any], positions: NDArray[np.int64] | None = None) -> None:
        self._values = values
        self._positions = np.arange(len(values)) if positions is None else positions
        super().__init__((len(self._positions), values.shape[1], values.shape[2]))

    def _picture(self, position: int) -> NDArray[np.uint8]:
        return np.array(self._values[self._positions[position]], dtype=np.uint8)


class PackedPictures(LabelPictures):
    """Masks packed by `pack_masks`, each unpacked on access."""

    def __init__(self, stored: NDArray[np.uint8]) -> None:
        count, height, width = np.frombuffer(stored[:24].tobytes(), dtype="<i8").tolist()
        self._ends = np.frombuffer(stored[24 : 24 + 8 * count].tobytes(), dtype="<i8")
        self._data = stored[24 + 8 * count :]
        super().__init__((count, height, width))

    def _picture(self, position: int) -> NDArray[np.uint8]:
        start = int(self._ends[position - 1]) if position else 0
        text = zlib.decompress(self._data[start : int(self._ends[position])].tobytes())
        return np.frombuffer(bytearray(text), dtype=np.uint8).reshape(self.shape[1:])


def compress_mask(picture: NDArray[np.uint8]) -> bytes:
    """Compress one segmentation mask for `pack_masks`."""
    return zlib.compress(np.ascontiguousarray(picture).tobytes(), _LEVEL)


def pack_masks(pictures: Sequence[bytes], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Pack compressed segmentation masks, each of `shape` (height, width), into bytes for the store."""
    head = np.array([len(pictures), *shape, *np.cumsum([len(part) for part in pictures])], dtype="<i8")
    return np.frombuffer(head.tobytes() + b"".join(pictures), dtype=np.uint8)


def lacks_masks(extras: Collection[str]) -> bool:
    """Return whether only counts and the first predicted masks are stored. extras: names of the stored extras."""
    return FIRST in extras and EVERY not in extras
