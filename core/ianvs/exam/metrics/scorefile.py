"""Reads a score matrix from a json or csv file, checked entry by entry."""

import csv
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError, closest, shown_path
from ianvs.base.types import Curve, ScoreMatrix

Array = NDArray[np.float64]

_REFERENCES = {"untrained": "untrained", "b": "untrained", "joint": "joint", "single_task": "single_task", "R0": "R0"}
_MISSING = ("", "nan", "null", "none", "na")  # cells of a csv


@dataclass
class _Content:
    """The content of a file. references: by name; None: the file states that there is none. curve: as in the json."""

    rows: list[list[float]] = field(default_factory=list)
    references: dict[str, list[float] | None] = field(default_factory=dict)
    curve: object = None
    higher_is_better: bool = True


def read_scores(path: Path) -> tuple[ScoreMatrix, Array | None]:
    """Return the score matrix and its references, and the row `R0` if there is one (Ianvs's own model before round 1).

    json: an object with `R`, a list of T rows after rounds 1..T, null where not evaluated; optional lists `untrained`
    (or `b`), `joint`, `single_task`, `R0`, or null for "there is none". `curve`, optional, is a list of examinations
    in the order of time, {"samples", "begun", "ended", "scores"}, as in `Curve` (base/types.py). `higher_is_better`:
    false for errors, of which less is better.
    csv: one row for each round; an empty cell or nan is "not evaluated". A first row of nothing but text is a header, a
    first column of nothing but text holds names; a file whose first cell is empty or "round" has both. A row named
    untrained, b, joint, single_task or R0 is that reference; an empty one says "there is none".
    Raises DataError.
    """
    file, reader = shown_path(path), {".json": _read_json, ".csv": _read_csv}.get(path.suffix.lower())
    if reader is None and path.is_file():
        raise DataError(f"{file}: a score matrix is read from a .json or a .csv file.", code="wrong-path-type")
    if reader is None or not path.exists():
        raise DataError(f"{file}: there is no such file.", code="missing-file")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file} can't be read: {error}", code="unreadable-file") from error
    return _checked(reader(text, file), file)


def _read_json(text: str, file: str) -> _Content:
    def no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
        keys = [key for key, _ in pairs]
        for key in keys:
            if keys.count(key) > 1:
                raise DataError(f"{file}: '{key}' occurs twice; keep one.", code="duplicate-key")
        return dict(pairs)

    try:
        content = json.loads(text, object_pairs_hook=no_duplicates)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{file}:{error.lineno}:{error.colno}: not json: {error.msg}.", code="unreadable-data"
        ) from error
    if not isinstance(content, dict) or "R" not in content:
        raise DataError(
            f'{file}: expected an object with the score matrix as "R", e.g. '
            '{"R": [[0.9, 0.3], [0.8, 0.88]], "untrained": [0.1, 0.12]}.',
            code="missing-key",
        )
    higher = content.pop("higher_is_better", True)
    if not isinstance(higher, bool):
        raise DataError(f"{file}: higher_is_better is true or false, found {higher!r}.", code="wrong-type")
    content_read = _Content(curve=content.pop("curve", None), higher_is_better=higher)
    for key, value in content.items():
        if key == "R":
            if not isinstance(value, list) or not value:
                raise DataError(f"{file}: R must be a list of rows, one for each round.", code="wrong-type")
            content_read.rows = [_json_row(row, f"{file}: R[{k}]") for k, row in enumerate(value)]
        else:
            name = _reference(key, content_read.references, file)
            content_read.references[name] = None if value is None else _json_row(value, f"{file}: {key}")
    return content_read


def _read_csv(text: str, file: str) -> _Content:
    reader = csv.reader(text.splitlines(), skipinitialspace=True)
    lines = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    lines = [(number, row) for number, row in lines if any(row)]
    if not lines:
        raise DataError(f"{file} is empty.", code="empty-file")
    # A single typing error must not turn a row of scores into a header, so all cells have to be text.
    first = lines[0][1]
    labelled = first[0].casefold() in ("", "round")
    header = labelled or all(map(_is_text, first[1:] or first))
    lines = lines[header:]
    named = labelled or all(_is_text(row[0]) for _, row in lines)
    content = _Content()
    for number, row in lines:
        numbers = [
            _number(None if cell.casefold() in _MISSING else cell, f"{file}:{number}: column {column}")
            for column, cell in list(enumerate(row, start=1))[named:]
        ]
        if named and row[0] in _REFERENCES:
            name = _reference(row[0], content.references, file)
            content.references[name] = None if all(map(math.isnan, numbers)) else numbers
        else:
            content.rows.append(numbers)
    return content


def _is_text(cell: str) -> bool:
    if cell.casefold() in _MISSING:
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


def _reference(key: str, given: Mapping[str, object], file: str) -> str:
    if key not in _REFERENCES:
        keys = ("R", *_REFERENCES, "curve", "higher_is_better")
        raise DataError(
            f"{file}: '{key}' is not known.{closest(key, keys)} A score file holds {', '.join(keys)}.",
            code="unknown-key",
        )
    if _REFERENCES[key] in given:
        raise DataError(
            f"{file}: '{_REFERENCES[key]}' is given twice ('b' is another name of 'untrained').", code="duplicate-key"
        )
    return _REFERENCES[key]


def _checked(content: _Content, file: str) -> tuple[ScoreMatrix, Array | None]:
    """Check shapes: R (T, J) without gaps, `joint` and `single_task` (T,), `untrained` and `R0` (J,)."""
    rows = content.rows
    if not rows or not rows[0]:
        raise DataError(f"{file}: R has no scores.", code="empty-value")
    rounds, tests = len(rows), len(rows[0])
    for k, row in enumerate(rows):
        if len(row) != tests:
            raise DataError(
                f"{file}: row {k + 1} of R has {len(row)} scores, row 1 has {tests}. Every row needs one "
                "for each test set; leave it empty (json: null) if it was not evaluated.",
                code="wrong-length",
            )
    if rounds == tests + 1 and "untrained" not in content.references:
        raise DataError(
            f"{file}: R has {rounds} rows for {tests} test sets. If its first row is the untrained model, "
            'move it to "untrained" (csv: name the row untrained), so that R starts with the row after round 1. If '
            f'there are {rounds} rounds, say that none is the untrained model: "untrained": null (csv: an empty row of '
            "that name).",
            code="wrong-length",
        )
    references: dict[str, Array] = {}
    for name in ("untrained", "R0", "joint", "single_task"):
        if (values := content.references.get(name)) is None:
            continue
        length, noun = (tests, "test set") if name in ("untrained", "R0") else (rounds, "round")
        if len(values) != length:
            raise DataError(
                f"{file}: '{name}' has {len(values)} scores; it needs {length}, one for each {noun} of R.",
                code="wrong-length",
            )
        references[name] = np.array(values, dtype=np.float64)
    first_row = references.pop("R0", None)
    inputs = ScoreMatrix.from_rounds(
        np.array(rows, dtype=np.float64),
        **references,
        curve=None if content.curve is None else _curve(content.curve, rounds, tests, f"{file}: curve"),
        higher_is_better=content.higher_is_better,
    )
    return inputs, first_row


_COUNTS = ("samples", "begun", "ended")


def _json_row(row: object, where: str) -> list[float]:
    """Return a json list of numbers as floats, nan for null; `where` begins the message of a DataError."""
    if not isinstance(row, list):
        raise DataError(f"{where} must be a list of numbers; it is {json.dumps(row)}.", code="wrong-type")
    numbers = []
    for j, value in enumerate(row):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise _no_number(f"{where}[{j}]", json.dumps(value))
        numbers.append(_number(value, f"{where}[{j}]"))
    return numbers


def _number(value: str | float | None, where: str) -> float:
    """Return `value` as a float, nan for None; `where` begins the message of a DataError."""
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
    return DataError(
        f"{where} is {shown}, not a finite number. Leave it empty (json: null) if it was not evaluated.",
        code="invalid-value",
    )


def _curve(entries: object, rounds: int, tests: int, where: str) -> Curve:
    """Return the json list of examinations under "curve": objects of samples, begun, ended and one score per test set.

    rounds, tests: the shape of R. `where` begins the message of a DataError.
    """
    if not isinstance(entries, list) or not entries:
        raise DataError(
            f"{where} must be a list of examinations in the order of time, e.g. "
            '[{"samples": 100, "begun": 1, "ended": 0, "scores": [0.4, 0.1]}].',
            code="wrong-type",
        )
    counts: list[list[int]] = []
    scores: list[list[float]] = []
    for e, entry in enumerate(entries):
        count, row = _examination(entry, f"{where}[{e}]")
        counts.append(count)
        scores.append(_json_row(row, f"{where}[{e}].scores"))
        if len(scores[-1]) != tests:
            raise DataError(
                f"{where}[{e}].scores has {len(scores[-1])} scores; it needs {tests}, one for each test set of R.",
                code="wrong-length",
            )
        if not 0 <= counts[-1][2] <= counts[-1][1] <= rounds:
            raise DataError(
                f"{where}[{e}]: {counts[-1][1]} rounds begun and {counts[-1][2]} ended; no more can have ended than "
                f"have begun, and R has {rounds}.",
                code="out-of-range",
            )
        for name, now, before in zip(_COUNTS, counts[-1], counts[-2] if e else (0, 0, 0), strict=True):
            if now < before:
                raise DataError(
                    f"{where}[{e}].{name} is {now} after {before}; a curve is in the order of time, so it never falls.",
                    code="invalid-value",
                )
    samples, begun, ended = np.array(counts, dtype=np.int64).T
    return Curve(samples, begun, ended, np.array(scores, dtype=np.float64))


def _examination(entry: object, where: str) -> tuple[list[int], object]:
    """Return samples, begun and ended of one evaluation, and its scores. Raises DataError for other keys."""
    keys = (*_COUNTS, "scores")
    if not isinstance(entry, dict):
        raise DataError(
            f"{where} must be an object of {', '.join(keys)}; it is {json.dumps(entry)}.", code="wrong-type"
        )
    for key in entry:
        if key not in keys:
            raise DataError(
                f"{where}: '{key}' is not known.{closest(key, keys)} It holds {', '.join(keys)}.", code="unknown-key"
            )
    for key in keys:
        if key not in entry:
            raise DataError(f"{where} has no '{key}'; an examination holds {', '.join(keys)}.", code="missing-key")
    for key in _COUNTS:
        if isinstance(entry[key], bool) or not isinstance(entry[key], int):
            raise DataError(f"{where}.{key} is {json.dumps(entry[key])}; it must be a whole number.", code="wrong-type")
    return [entry[key] for key in _COUNTS], entry["scores"]
