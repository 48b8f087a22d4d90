"""Mean and spread of repeated measurements, and ranking by several keys."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ranking", "Summary", "rank", "summarise"]


@dataclass(frozen=True)
class Summary:
    """Mean and spread of n values. `std` is the sample standard deviation (n - 1 in the denominator)."""

    mean: float | None  # None: a value is missing, or there is none at all
    std: float | None  # None as `mean`, and for a single value
    n: int  # how many values were there


@dataclass(frozen=True)
class Ranking:
    """`order[i]` is the position of the row in place i; `ranks[row]` its rank, counted from 1."""

    order: tuple[int, ...]
    ranks: tuple[int, ...]


def summarise(values: Iterable[float | None]) -> Summary:
    """Mean, sample standard deviation and number of `values`; None and nan are missing values.

    A missing value makes no mean: the mean of what happens to be left would compare unlike things.
    The order of the values does not matter, not even in the last bit.
    """
    given = list(values)
    present = sorted(float(value) for value in given if value is not None and not math.isnan(value))
    count = len(present)
    if count == 0 or count < len(given):
        return Summary(None, None, count)
    if present[0] == present[-1]:  # equal values have exactly their own mean, whatever rounding says
        return Summary(present[0], 0.0 if count > 1 and math.isfinite(present[0]) else None, count)
    array = np.array(present)
    with np.errstate(invalid="ignore"):
        mean = float(array.mean())
        std = float(array.std(ddof=1))
    return Summary(None if math.isnan(mean) else mean, std if math.isfinite(std) else None, count)


def rank(rows: Sequence[Sequence[float | None]], descending: Sequence[bool]) -> Ranking:
    """Rank `rows` by their first key, ties by the second, and so on.

    rows: (N, K) key values, None or nan where missing: last in its key, whatever the direction.
    descending: (K,) True where a higher value is better.
    Rows that are equal in every key share a rank and the next one is skipped ("1, 2, 2, 4"); they keep their order.
    """
    table = np.array([[math.nan if v is None else v for v in row] for row in rows], dtype=np.float64)
    table = table.reshape(len(rows), len(descending))
    keys: list[NDArray[np.float64]] = []
    for column, falls in zip(table.T, descending, strict=True):
        missing = np.isnan(column)
        value = np.where(missing, 0.0, -column if falls else column)
        keys += [missing.astype(np.float64), value]
    if not keys:
        return Ranking(tuple(range(len(rows))), (1,) * len(rows))
    order = np.lexsort(keys[::-1])  # lexsort is stable, and its last key is the primary one
    stacked = np.stack(keys)[:, order]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (stacked[:, 1:] != stacked[:, :-1]).any(axis=0)
    places = np.maximum.accumulate(np.where(new, np.arange(1, len(rows) + 1), 0))
    ranks = np.empty(len(rows), dtype=np.int64)
    ranks[order] = places
    return Ranking(tuple(order.tolist()), tuple(ranks.tolist()))
