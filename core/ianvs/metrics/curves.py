"""Curves of scores over time, as formulas read them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ianvs.types import Curve

__all__ = ["checked", "round_ends", "rows_as_curve"]


def rows_as_curve(R: NDArray[np.float64]) -> Curve:
    """The rows of R, (T, J), as a curve that is examined at the end of rounds alone, each round one step long."""
    steps = np.arange(1, len(R) + 1, dtype=np.int64)
    return Curve(samples=steps, begun=steps, ended=steps, scores=R)


def checked(curve: Curve, tests: int) -> Curve:
    """The same curve with arrays of the types that it promises. Raises ValueError if they don't fit each other."""
    samples, begun, ended = (np.asarray(part, np.int64) for part in (curve.samples, curve.begun, curve.ended))
    scores = np.asarray(curve.scores, dtype=np.float64)
    shapes = {samples.shape, begun.shape, ended.shape, scores.shape[:1]}
    if len(shapes) > 1 or scores.ndim != 2 or scores.shape[1] != tests:
        raise ValueError(
            f"a curve of E examinations on {tests} test sets has samples, begun, ended (E,) and scores (E, {tests}); "
            f"these are {samples.shape}, {begun.shape}, {ended.shape} and {scores.shape}"
        )
    if any((np.diff(part) < 0).any() for part in (samples, begun, ended)) or (begun < ended).any():
        raise ValueError("a curve is in the order of time: samples, begun and ended never fall, begun is never < ended")
    return Curve(samples, begun, ended, scores)


def round_ends(curve: Curve, rounds: int) -> list[int | None]:
    """For each round the number of the examination at its end; None where there was none."""
    ends: list[int | None] = []
    for count in range(1, rounds + 1):
        within = np.flatnonzero(curve.begun <= count)
        last = int(within[-1]) if within.size else None
        ends.append(last if last is not None and curve.ended[last] == count else None)
    return ends
