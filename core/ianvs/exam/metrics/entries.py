"""Entries of a file of scores: numbers, rows of them, and curves. Every message names the file and the entry."""

from __future__ import annotations

import json
import math

import numpy as np

from ianvs.base.errors import DataError, closest
from ianvs.base.types import Curve

__all__ = ["json_row", "number_of", "read_curve"]

_COUNTS = ("samples", "begun", "ended")


def json_row(row: object, where: str) -> list[float]:
    """A json list of numbers as floats, nan for null; `where` begins the message of a DataError."""
    if not isinstance(row, list):
        raise DataError(f"{where} must be a list of numbers; it is {json.dumps(row)}.")
    numbers = []
    for j, value in enumerate(row):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise _no_number(f"{where}[{j}]", json.dumps(value))
        numbers.append(number_of(value, f"{where}[{j}]"))
    return numbers


def number_of(value: str | float | None, where: str) -> float:
    """`value` as a float, nan for None; `where` begins the message of a DataError."""
    if value is None:
        return math.nan
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise _no_number(where, repr(value)) from None
    if math.isinf(number):
        raise _no_number(where, str(value))
    return number


def _no_number(where: str, shown: str) -> DataError:
    return DataError(f"{where} is {shown}, not a finite number. Leave it empty (json: null) if it was not evaluated.")


def read_curve(entries: object, rounds: int, tests: int, where: str) -> Curve:
    """The json list of examinations under "curve": objects of samples, begun, ended and one score per test set.

    rounds, tests: the shape of R. `where` begins the message of a DataError.
    """
    if not isinstance(entries, list) or not entries:
        raise DataError(
            f"{where} must be a list of examinations in the order of time, e.g. "
            '[{"samples": 100, "begun": 1, "ended": 0, "scores": [0.4, 0.1]}].'
        )
    counts: list[list[int]] = []
    scores: list[list[float]] = []
    for e, entry in enumerate(entries):
        found, row = _examination(entry, f"{where}[{e}]")
        counts.append(found)
        scores.append(json_row(row, f"{where}[{e}].scores"))
        if len(scores[-1]) != tests:
            raise DataError(
                f"{where}[{e}].scores has {len(scores[-1])} scores; it needs {tests}, one for each test set of R."
            )
        if not 0 <= counts[-1][2] <= counts[-1][1] <= rounds:
            raise DataError(
                f"{where}[{e}]: {counts[-1][1]} rounds begun and {counts[-1][2]} ended; no more can have ended than "
                f"have begun, and R has {rounds}."
            )
        for name, now, before in zip(_COUNTS, counts[-1], counts[-2] if e else (0, 0, 0), strict=True):
            if now < before:
                raise DataError(
                    f"{where}[{e}].{name} is {now} after {before}; a curve is in the order of time, so it never falls."
                )
    samples, begun, ended = np.array(counts, dtype=np.int64).T
    return Curve(samples, begun, ended, np.array(scores, dtype=np.float64))


def _examination(entry: object, where: str) -> tuple[list[int], object]:
    """samples, begun and ended of one examination; and its scores, besides which it has nothing."""
    keys = (*_COUNTS, "scores")
    if not isinstance(entry, dict):
        raise DataError(f"{where} must be an object of {', '.join(keys)}; it is {json.dumps(entry)}.")
    for key in entry:
        if key not in keys:
            raise DataError(f"{where}: '{key}' is not known.{closest(key, keys)} It holds {', '.join(keys)}.")
    for key in keys:
        if key not in entry:
            raise DataError(f"{where} has no '{key}'; an examination holds {', '.join(keys)}.")
    for key in _COUNTS:
        if isinstance(entry[key], bool) or not isinstance(entry[key], int):
            raise DataError(f"{where}.{key} is {json.dumps(entry[key])}; it must be a whole number.")
    return [entry[key] for key in _COUNTS], entry["scores"]
