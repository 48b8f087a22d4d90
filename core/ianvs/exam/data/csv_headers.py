"""The header of a csv or tsv file: its delimiter, the names of its columns, and where they are."""

import csv
import json
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from ianvs.base.errors import Location, ValidationError, one_line
from ianvs.exam.data.cells import is_number
from ianvs.exam.data.index import PICTURE_SUFFIXES, suffix_of, text_lines
from ianvs.exam.data.listing import SourceError, data_warning

_PLAIN = re.compile(r"(?!(true|false|null)$)[A-Za-z_]\w*", re.ASCII | re.IGNORECASE)
_SEPARATOR = re.compile(r'\ufeff?"?sep=(.)"?[\s,;]*', re.IGNORECASE)
_DELIMITERS = (",", ";", "\t", "|")
_LOOKED_AT = 100  # rows that are compared with the first line
_IN_WORDS = {";": "';'", "\t": "tabs", "|": "'|'"}


def header_of(path: Path) -> str:
    """Return the header of a csv or tsv file, without Excel's line `sep=;`. Raises SourceError for an
    unreadable file.
    """
    return _read_header(path)[1]


def _read_header(path: Path) -> tuple[int, str, str | None]:
    """Return (line, text, separator in the preceding line `sep=;`) of the header; (0, "", None) for an empty file."""
    separator = None
    for number, text in enumerate(text_lines(path), start=1):
        if separator is None and (separator := separator_line(text)) is not None:
            continue
        if text.strip():
            return number, text, separator
    return 0, "", separator


def separator_line(text: str) -> str | None:
    """Return the separator in a line `sep=;`, which Excel writes and reads before the header; None for any other
    line.
    """
    match = _SEPARATOR.fullmatch(text.rstrip("\r\n"))
    return match[1] if match else None


def csv_header(path: Path) -> tuple[str, ...]:
    """Return the names of the columns of a csv or tsv file. Raises SourceError for a file that can't be read."""
    header = header_of(path)
    return column_names(next(csv.reader([header], delimiter=delimiter_of(path, header)), []))


def delimiter_of(path: Path, header: str) -> str:
    """Return the delimiter: that of a line `sep=;`, else a comma, unless only another delimiter splits the header."""
    if (separator := _read_header(path)[2]) is not None:
        return separator
    if suffix_of(path) == ".tsv":
        return "\t"
    counts = {mark: len(next(csv.reader([header], delimiter=mark), [])) for mark in _DELIMITERS}
    return "," if counts[","] > 1 else max(_DELIMITERS, key=lambda mark: counts[mark])


def require_header(path: Path) -> None:
    """Raise SourceError if the first line of a csv or tsv file is a row of data, or its delimiter is not read."""
    number, header, _ = _read_header(path)
    delimiter = delimiter_of(path, header)
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]
    below = [text for text in islice(text_lines(path), number, number + _LOOKED_AT) if text.strip()]
    if len(names) == 1:
        _require_known_delimiter(path, number, names[0], below)
    if not any(map(_is_data, names)):
        return
    rows = [cells for cells in csv.reader(below, delimiter=delimiter) if len(cells) == len(names)]
    if rows and _is_row(names, [[cell.strip() for cell in cells] for cells in zip(*rows, strict=True)]):
        message = (
            f"the first line seems to be a row of data, not the names of the columns: {one_line(names, 4)}. Write the "
            f"names above it, such as {delimiter.join([*(f'x{i}' for i in range(1, min(len(names), 4))), 'label'])}."
        )
        raise SourceError.single(message, Location(path, number, 1), "invalid-record")


def _require_known_delimiter(path: Path, number: int, header: str, below: Sequence[str]) -> None:
    """Raise SourceError if the lines of a table with one column have as many parts at blanks or colons each."""
    for mark, noun in ((":", "colons"), (None, "blanks")):
        counts = {len(text.split(mark)) for text in (header, *below)}
        if below and len(counts) == 1 and counts.pop() > 1:
            message = (
                f"its cells seem to be parted by {noun}; read are commas, semicolons, tabs and '|'. Write one of these "
                "between the cells."
            )
            raise SourceError.single(message, Location(path, number, 1), "unreadable-data")


def _is_data(name: str) -> bool:
    return is_number(name.replace(",", ".")) or name.lower().endswith(PICTURE_SUFFIXES)


def _is_row(names: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    """Return whether a header is like the rows below: each name is a number or a path as the cells are, or a cell.

    Names that count columns, 0, 1, 2, ..., are a header.
    """
    alike = all(
        name in cells if not all(map(_is_data, cells)) else _is_data(name)
        for name, cells in zip(names, columns, strict=True)
    )
    numbers = [name for name in names if name.isascii() and name.isdecimal()]
    counting = len(numbers) > 1 and numbers == [str(int(numbers[0]) + step) for step in range(len(numbers))]
    return alike and not (counting and len(numbers) == sum(map(_is_data, names)))


def delimiter_note(path: Path, delimiter: str, decimal_commas: bool) -> ValidationError | None:
    """Return a warning if the delimiter is no comma or numbers have decimal commas."""
    usual = delimiter == "," or suffix_of(path) == ".tsv"
    if usual and not (delimiter == "," and decimal_commas):
        return None
    message = "its quoted numbers have decimal commas, and are read so"
    if not usual:
        commas = " and its decimals have commas: both are read so" if decimal_commas else ", and are read so"
        message = f"its cells are parted by {_IN_WORDS.get(delimiter, repr(delimiter))}{commas}"
    return data_warning(f"{message}. Nothing has to be done.", Location(path, 1, 1))


def column_names(header: Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns; a cell without a name gets pandas's, `Unnamed: 0` for the first column."""
    names = [name.strip() for name in header]
    for position, name in enumerate(names):
        if not name:
            made = f"Unnamed: {position}"
            while made in names:  # a data frame that was written, read and written once more
                made += ".1"
            names[position] = made
    return tuple(names)


def column_place(path: Path, name: str, line: int) -> Location:
    """Return where a table names a column: the header of a csv, else the line of its first record, 0 without lines."""
    if suffix_of(path) not in (".csv", ".tsv"):
        return Location.of_line(path, line)
    number, header, _ = _read_header(path)
    delimiter = delimiter_of(path, header)
    starts, quoted = [0], False
    for position, character in enumerate(header):
        quoted ^= character == '"'
        if character == delimiter and not quoted:
            starts.append(position + 1)
    names = column_names(next(csv.reader([header], delimiter=delimiter), []))
    is_located = name in names and names.index(name) < len(starts)
    return Location(path, number, starts[names.index(name)] + 1 if is_located else 1)


def yaml_text(name: str) -> str:
    """Return a name in YAML syntax: quoted if YAML would read something else."""
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def yaml_list(names: Sequence[str], limit: int = 12) -> str:
    """Return a YAML list of column names, cut after `limit`."""
    return f"[{one_line([yaml_text(name) for name in names], limit)}]"
