"""Who is not beaten in everything at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["pareto_front"]


def pareto_front(points: Sequence[Sequence[float]]) -> list[int]:
    """Positions of the (m, k) points, less being better, that no other matches in all and beats in one."""
    if not len(points):
        return []
    found = np.asarray(points, dtype=float)
    no_worse = (found[:, None, :] <= found[None, :, :]).all(axis=2)  # [i, j]: i is nowhere worse than j
    better = (found[:, None, :] < found[None, :, :]).any(axis=2)
    return np.flatnonzero(~(no_worse & better).any(axis=0)).tolist()
