"""Fixed transformations that turn the same images into a new domain. Frozen, so they can be pickled and compared."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.seeding import generator

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Permutation:
    """One fixed permutation of the pixels (channels stay together), or of the features of flat samples."""

    seed: int
    task: int  # counts from 1: every task permutes differently

    def __call__(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return permuted samples.

        X: (N, height, width, channels) or (N, ...); the result has the same shape and dtype.
        """
        cells = x.reshape(len(x), -1, x.shape[3]) if x.ndim == 4 else x.reshape(len(x), -1)
        order = generator(self.seed, self.task, "permutation").permutation(cells.shape[1])
        return np.ascontiguousarray(cells[:, order]).reshape(x.shape)


@dataclass(frozen=True)
class Rotation:
    """Rotation about the centre, anticlockwise, in degrees; bilinear, corners filled with 0, size kept.

    It equals `scipy.ndimage.rotate` (order 1), with integers rounded, but uses one sparse matrix for all images:
    several times faster, which matters because a rotated test set is read many times.
    """

    degrees: float

    def __call__(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return rotated images. x: (N, height, width, channels); the result has the same shape and dtype."""
        if self.degrees % 360 == 0 or not x.size:
            return x
        weights = _bilinear(self.degrees, x.shape[1], x.shape[2])
        whole, rotated = np.issubdtype(x.dtype, np.integer), np.empty(x.shape, x.dtype)
        step = max(1, 2**15 // x[0].size)  # numbers that fit into the processor's cache
        for part in (slice(begin, begin + step) for begin in range(0, len(x), step)):
            count, _, _, channels = x[part].shape
            cells = x[part].reshape(count, -1, channels).transpose(1, 0, 2).reshape(-1, count * channels)
            values = weights @ cells.astype(np.float64)  # (pixels, count x channels)
            values = np.floor(values + 0.5) if whole else values
            rotated[part] = values.reshape(-1, count, channels).transpose(1, 0, 2).reshape(x[part].shape)
        return rotated


@lru_cache(maxsize=64)
def _bilinear(degrees: float, height: int, width: int) -> csr_array:
    """Return (pixels, pixels): the weight of each pixel of an image in each pixel of the rotated one."""
    from scipy.sparse import coo_array
    from scipy.special import cosdg, sindg

    sine, cosine = sindg(degrees), cosdg(degrees)
    rows, columns = np.indices((height, width)).reshape(2, -1) - np.array([[height - 1], [width - 1]]) / 2
    row = cosine * rows + sine * columns + (height - 1) / 2
    column = cosine * columns - sine * rows + (width - 1) / 2
    near = 1e-9  # tolerance for rounding at the border
    inside = (row > -near) & (row < height - 1 + near) & (column > -near) & (column < width - 1 + near)
    entries: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
    top, left = np.floor(row).astype(int), np.floor(column).astype(int)
    for down in (0, 1):
        for right in (0, 1):
            weight = (1 - np.abs(row - top - down)) * (1 - np.abs(column - left - right))
            source = np.clip(top + down, 0, height - 1) * width + np.clip(left + right, 0, width - 1)
            entries.append((weight[inside], np.flatnonzero(inside), source[inside]))
    weights, targets, sources = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    return coo_array((weights, (targets, sources)), (height * width, height * width)).tocsr()
