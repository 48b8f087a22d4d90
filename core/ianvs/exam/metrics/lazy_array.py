"""What stands for an array and is read only where it is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin


class LazyArray(NDArrayOperatorsMixin):
    """Does what an array can do, so that a metric written for arrays works too; `__array__` is its subclass's."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        arrays = (np.asarray(one) if isinstance(one, LazyArray) else one for one in inputs)
        return getattr(ufunc, method)(*arrays, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)
