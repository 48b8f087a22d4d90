"""Fixed transformations that make a new domain out of the same pictures. Frozen, so they pickle and compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.seeding import generator

__all__ = ["Permutation", "Rotation"]


@dataclass(frozen=True)
class Permutation:
    """One fixed permutation of the pixels (channels stay together), or of the features of flat samples."""

    seed: int
    task: int  # counts from 1: every task permutes differently

    def __call__(self, x: NDArray[Any]) -> NDArray[Any]:
        """x: (N, height, width, channels) or (N, ...); the same shape and dtype comes back."""
        cells = x.reshape(len(x), -1, x.shape[3]) if x.ndim == 4 else x.reshape(len(x), -1)
        order = generator(self.seed, self.task, "permutation").permutation(cells.shape[1])
        return np.ascontiguousarray(cells[:, order]).reshape(x.shape)


@dataclass(frozen=True)
class Rotation:
    """Rotation about the centre, anticlockwise, in degrees; bilinear, corners filled with 0, size kept."""

    degrees: float

    def __call__(self, x: NDArray[Any]) -> NDArray[Any]:
        """x: (N, height, width, channels); the same shape and dtype comes back."""
        if self.degrees % 360 == 0:
            return x
        from scipy.ndimage import rotate

        rotated: NDArray[Any] = rotate(x, self.degrees, axes=(2, 1), order=1, reshape=False)
        return rotated
