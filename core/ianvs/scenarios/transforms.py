"""Fixed transformations that make a new domain out of the same pictures. Frozen, so they pickle and compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.errors import DataError, closest, one_line
from ianvs.scenarios.corruptions import Corruption
from ianvs.scenarios.exam import Transform
from ianvs.seeding import generator

__all__ = ["TRANSFORMS", "Permutation", "Rotation", "described_transform", "transform_of"]


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


TRANSFORMS: Mapping[str, type] = MappingProxyType(
    {"permutation": Permutation, "rotation": Rotation, "corruption": Corruption}
)
"""Those that a manifest can name."""


def described_transform(transform: Transform | None) -> dict[str, Any] | None:
    """{"name", "options"}, from which `transform_of` makes the same one again."""
    if transform is None:
        return None
    for name, kind in TRANSFORMS.items():
        if isinstance(transform, kind):
            return {"name": name, "options": dict(vars(transform))}
    return {"name": type(transform).__name__, "options": {}}


def transform_of(described: Mapping[str, Any] | None) -> Transform | None:
    """The transformation that `described_transform` has described. Raises DataError for one that there isn't."""
    if described is None:
        return None
    name, options = str(described.get("name")), described.get("options", {})
    kind = TRANSFORMS.get(name)
    if kind is None:
        raise DataError(
            f"there is no transformation '{name}'.{closest(name, TRANSFORMS)} There are: {one_line(list(TRANSFORMS))}."
        )
    try:
        made: Transform = kind(**options)
    except TypeError:
        raise DataError(f"the transformation '{name}' can't be made with {options!r}.") from None
    return made
