"""A metric of a case, as stored in scores.json."""

import math
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ianvs.base.types import Curve, RoundResult

Parts = Mapping[str, float | None] | None
LEFT_OUT = ("left_out", "left_out_in_rounds")


class StoredScore(NamedTuple):
    """A stored metric.

    Attributes:
        values: (T + 1, J).
        details: [k][j] parts, if the metric has them.
        between: (J,) by the number of samples that had arrived.
        left_out: (G, J) after the last round without each group of samples; None without groups.
        left_out_in_rounds: (G, T + 1, J) without each of fewer groups, from the untrained model on.
    """

    values: NDArray[np.float64]
    details: Sequence[Sequence[Parts]]
    between: Mapping[int, NDArray[np.float64]]
    left_out: NDArray[np.float64] | None
    left_out_in_rounds: NDArray[np.float64] | None = None


def finite(value: SupportsFloat) -> float | None:
    """Return a finite number; None for others, which json can't represent."""
    number = float(value)
    return number if math.isfinite(number) else None


_MANY = 10_000  # limit of numbers in a list; more are stored as bytes

Stored = list[Any] | dict[str, Any]


def numbers(values: ArrayLike) -> Stored:
    """Return an array for json: lists with None for values that are not finite; large ones as compressed float64."""
    array = np.asarray(values, dtype="<f8")
    if array.size > _MANY:
        return packed(array)
    finite = array.astype(object)
    finite[~np.isfinite(array)] = None
    items: list[Any] = finite.tolist()
    return items


def packed(values: ArrayLike) -> dict[str, Any]:
    """Return an array in compressed form, which is ten times faster to read than a list of numbers."""
    array = np.asarray(values, dtype="<f8")
    return {"shape": array.shape, "zlib": b64encode(zlib.compress(array.tobytes())).decode()}


def _array(stored: Stored) -> NDArray[np.float64]:
    if isinstance(stored, dict):
        return np.frombuffer(zlib.decompress(b64decode(stored["zlib"])), dtype="<f8").reshape(stored["shape"]).copy()
    return np.array(stored, dtype=float)


def parts_of(details: Sequence[Sequence[Parts]]) -> Sequence[Sequence[Parts]] | None:
    """Return `details` for json; None if there are no parts."""
    return details if any(part is not None for row in details for part in row) else None


def score_record(
    values: ArrayLike,
    details: Sequence[Sequence[Parts]] = (),
    between: Mapping[int, ArrayLike] = MappingProxyType({}),
    about: Mapping[str, str] | None = None,
    left_out: ArrayLike | None = None,
    left_out_in_rounds: ArrayLike | None = None,
) -> dict[str, Any]:
    """Convert a metric for scores.json.

    Args:
        values: [k][j] scores, nan where there is none.
        details: [k][j] parts of a score, where the metric has them.
        between: [j] scores between the ends of rounds, by the number of samples that had arrived.
        about: What the score was computed with, such as the revision of an encoder.
        left_out: [g][j] scores after the last round without the g-th group of samples.
        left_out_in_rounds: [g][k][j] the same after every round.
    """
    within = {n: numbers(row) for n, row in between.items()}
    record = {"values": numbers(values), "details": parts_of(details), "between": within, "about": dict(about or {})}
    without = zip(LEFT_OUT, (left_out, left_out_in_rounds), strict=True)
    return record | {name: packed(values) for name, values in without if values is not None and np.size(values)}


def stored_score(stored: Mapping[str, Any]) -> StoredScore:
    """Read the result of `score_record`."""
    values = _array(stored["values"])
    between = {int(n): _array(row) for n, row in stored.get("between", {}).items()}
    left_out = (_array(stored[name]) if stored.get(name) else None for name in LEFT_OUT)
    details = stored["details"]
    if details is None:
        details = [[None] * values.shape[-1]] * len(values)
    return StoredScore(values, details, between, *left_out)


def score_curve(score: StoredScore, rounds: Sequence[RoundResult]) -> Curve:
    """Return evaluations within rounds and at their ends, in order; without the untrained model."""
    values, between = score.values, score.between
    points: list[tuple[int, int, int, NDArray[np.float64]]] = []
    arrived = 0
    for round_ in rounds[1 : len(values)]:
        points += [(n, begun, ended, between[n]) for n, begun, ended in round_.examined[:-1] if n in between]
        arrived += round_.train_samples
        n = round_.examined[-1][0] if round_.examined else arrived
        points.append((n, round_.index, round_.index, values[round_.index]))
    return Curve(
        np.array([point[0] for point in points], dtype=np.int64),
        np.array([point[1] for point in points], dtype=np.int64),
        np.array([point[2] for point in points], dtype=np.int64),
        np.array([point[3] for point in points]).reshape(len(points), values.shape[1]),
    )
