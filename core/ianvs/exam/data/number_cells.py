"""Numbers written as text. One grammar for all tables, labels and class indices.

Python's float() and int() accept more than people mean: underscores (`1_0` is 10) and the digits of every script.
"""


def number_of(cell: object) -> float:
    """The number in a cell of a table.

    Args:
        cell: a number, or text as it stands in a csv: ASCII digits, perhaps with sign, point, exponent, and blanks
            around; also nan and inf.

    Raises:
        ValueError: it is text that is no number, or a number too large for a float.
        TypeError: it is neither text nor a number.
    """
    if isinstance(cell, str) and ("_" in cell or not cell.isascii()):
        raise ValueError(f"{cell!r} is not a number")
    try:
        return float(cell)  # type: ignore[arg-type]  # whatever json holds
    except OverflowError:  # of an int of hundreds of digits, which json may hold
        raise ValueError("the number is too large") from None


def is_class_index(text: str) -> bool:
    """Whether a label is an integer in the digits 0 to 9, perhaps with a minus."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal()
