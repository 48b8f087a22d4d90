"""Mean and spread of repeated measurements, and ranking by several keys."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """Mean and spread of n values.

    Attributes:
        mean: None if a value is missing.
        std: The sample standard deviation (n - 1 in the denominator).
        n: Number of values.
    """

    mean: float | None  # None: a value is missing, or there is none at all
    std: float | None  # None as `mean`, and for a single value
    n: int  # number of values


@dataclass(frozen=True)
class Ranking:
    """Rows in order.

    Attributes:
        order: order[i] is the position of the row in place i.
        ranks: ranks[row] is its rank, counted from 1.
    """

    order: tuple[int, ...]
    ranks: tuple[int, ...]


def summarise(values: Iterable[float | None]) -> Summary:
    """Return the mean, sample standard deviation and number of values.

    A missing value (None or nan) makes the mean None: the mean of the others would compare different things. The order
    of the values has no effect, not even in the last bit.
    """
    all_values = list(values)
    present = sorted(float(value) for value in all_values if value is not None and not math.isnan(value))
    count = len(present)
    if count == 0 or count < len(all_values):
        return Summary(None, None, count)
    if present[0] == present[-1]:  # avoid rounding errors for equal values
        return Summary(present[0], 0.0 if count > 1 and math.isfinite(present[0]) else None, count)
    array = np.array(present)
    with np.errstate(invalid="ignore"):
        mean = float(array.mean())
        std = float(array.std(ddof=1))
    return Summary(None if math.isnan(mean) else mean, std if math.isfinite(std) else None, count)


def rank(rows: Sequence[Sequence[float | None]], descending: Sequence[bool]) -> Ranking:
    """Rank rows by their first key, ties by the second, and so on.

    Rows that are equal in every key share a rank, and the next one is skipped ("1, 2, 2, 4"). They keep their order.

    Args:
        rows: (N, K) key values. A missing one (None or nan) is last in its key, whatever the direction.
        descending: (K,) whether a higher value is better.
    """
    keys = [
        tuple(_key(value, is_descending) for value, is_descending in zip(row, descending, strict=True)) for row in rows
    ]
    order = sorted(range(len(keys)), key=keys.__getitem__)  # stable
    in_order = [keys[i] for i in order]
    return Ranking(tuple(order), tuple(1 + bisect_left(in_order, key) for key in keys))


def _key(value: float | None, descending: bool) -> tuple[bool, float]:
    """Return an ascending sort key; missing values are last."""
    if value is None or math.isnan(value):
        return True, 0.0
    return False, -value if descending else value
