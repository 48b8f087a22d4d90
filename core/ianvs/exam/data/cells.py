"""Parses cells of tables: numbers, classes, strings, or nothing. All files, arrays and objects use the same grammar.

Python's float() and int() accept more than people mean: underscores (`1_0` is 10) and the digits of every script.
"""

import math
import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WHOLE = re.compile(r"(-?\d+)\.0*", re.ASCII)  # as spreadsheets and float columns write a class index
CLASS_INDEX = re.compile(r"-?[0-9]+")
"""A label that is an integer in the digits 0 to 9, perhaps with a minus sign."""


def number_of(cell: object) -> float:
    """Return the number in a cell of a table.

    Args:
        cell: A number, or text as in a csv: ASCII digits, perhaps with sign, point, exponent and blanks around; also
            nan and inf.

    Raises:
        ValueError: If it is text that is no number, or a number too large for a float.
        TypeError: If it is neither text nor a number.
    """
    if isinstance(cell, str) and ("_" in cell or not cell.isascii()):
        raise ValueError(f"{cell!r} is not a number")
    try:
        return float(cell)  # type: ignore[arg-type]  # whatever json holds
    except OverflowError:  # an int of hundreds of digits, which json may hold
        raise ValueError("the number is too large") from None


def is_number(cell: object) -> bool:
    """Return whether `number_of` accepts a cell."""
    try:
        number_of(cell)
    except (TypeError, ValueError):
        return False
    return True


def truth_of(cell: object) -> float:
    """Return the number in a cell that may be the word true or false. Raises as `number_of`."""
    words = {"true": 1.0, "false": 0.0}  # as pandas writes them
    word = cell.strip().casefold() if isinstance(cell, str) else ""
    return words[word] if word in words else number_of(cell)


def text_of(cell: object) -> str:
    """Return a cell as a stripped string: 2 and 2.0 are "2", bytes are UTF-8; "" for None and nan.

    Raises:
        ValueError: If it holds several values.
    """
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "backslashreplace").strip()
    if hasattr(cell, "item") and getattr(cell, "shape", None) in ((), (1,)):
        return text_of(cell.item())
    if isinstance(cell, float):
        if math.isnan(cell):
            return ""
        return str(int(cell)) if cell.is_integer() else str(cell)
    if isinstance(cell, list | tuple | dict | set | np.ndarray):
        raise ValueError(f"is a {type(cell).__name__}; expected one name or number")
    return "" if cell is None else str(cell).strip()


def class_of(cell: object) -> str:
    """Return a label as the name of a class, for all types of files: 2, 2.0, "2" and "2.0" are one class.

    Raises:
        ValueError: If it holds several values.
    """
    text = cell.strip() if isinstance(cell, str) else text_of(cell)
    whole = _WHOLE.fullmatch(text)
    return text if whole is None else "0" if whole[1] == "-0" else whole[1]


def classes_of(cells: NDArray[Any] | Sequence[Any]) -> NDArray[Any]:
    """Return (N,) `class_of` of each cell, "" for empty ones.

    Raises:
        CellError: If a cell holds several values.
    """
    if isinstance(cells, np.ndarray) and cells.dtype != object:
        values, where = np.unique(cells, return_inverse=True)
        names = np.array([sys.intern(class_of(value)) for value in values.tolist()], dtype=object)
        return names[where.reshape(-1)]
    cache: dict[object, str] = {}
    classes = np.empty(len(cells), dtype=object)
    for row, cell in enumerate(cells):
        try:
            name = cache.get(cell)
        except TypeError:  # it has no hash
            name = None
        if name is None or type(cell) is not str:  # True and 1 are equal keys
            try:
                name = sys.intern(class_of(cell))
            except ValueError as error:
                raise CellError(str(error), row) from None
            if type(cell) is str:
                cache[cell] = name
        classes[row] = name
    return classes


class CellError(ValueError):
    """An error of a cell, with its row."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.message, self.row = message, row
