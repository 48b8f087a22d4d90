"""csv and tsv files with a header: their cells as strings, with their lines.

pyarrow reads a large file of plain numbers a block at a time. If a file has anything unusual, the slower reader takes
it, which reports errors with their place.
"""

import csv
import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ianvs.base.errors import Location, ValidationError, one_line
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.cells import is_number
from ianvs.exam.data.conversation_forms import Forms
from ianvs.exam.data.conversations import holds_conversations, read_conversations
from ianvs.exam.data.csv_headers import (
    column_names,
    csv_header,
    delimiter_note,
    delimiter_of,
    header_of,
    require_header,
    separator_line,
)
from ianvs.exam.data.grids import LABEL_COLUMNS, Cells, Grid, chosen_columns, domain_column, label_column, rows_of
from ianvs.exam.data.index import read_text
from ianvs.exam.data.listing import Listing, SourceError, summary
from ianvs.exam.data.records import Records
from ianvs.exam.data.row_numbers import feature_names
from ianvs.exam.data.tables import table_listing

_LOOKED_AT = 100  # cells of a column that decide whether it has decimal commas
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
WORTH_ARROW = 2**20  # bytes; loading pyarrow for less would cost more than it saves
_BLOCK = 1 << 22  # bytes that are parsed at a time; some blocks are read ahead


def read_csv(files: Sequence[Path], path: Path, spec: DatasetSpec, part: str) -> Listing:
    """Read a table or conversations from a csv or tsv file. Raises SourceError."""
    require_header(path)
    if not Forms().matching(dict.fromkeys(csv_header(path))):
        if (quick := _read_with_arrow(path, spec)) is not None:
            with suppress(ImportError, ValueError, OSError):  # includes pyarrow's errors
                return table_listing(quick, spec, part)
        return table_listing(_read_all_cells(path, spec), spec, part)
    grid = _read_all_cells(path, spec)
    [block] = grid.blocks(grid.columns)
    records = Records(path, tuple(rows_of(block)), (), tuple(grid.lines or ()))
    talk = not (spec.input or spec.label) and holds_conversations(records, spec)
    return read_conversations(records, spec) if talk else table_listing(grid, spec, part)


def _read_all_cells(path: Path, spec: DatasetSpec) -> Grid:
    """Return all cells as strings."""
    text = read_text(path)
    delimiter = delimiter_of(path, header_of(path))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    rows: list[Sequence[str]] = []
    lines: list[int] = []
    problems: list[ValidationError] = []
    columns: tuple[str, ...] = ()
    rows_before_header = False
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not columns:
                if rows_before_header or separator_line(delimiter.join(cells)) is None:
                    columns = column_names(cells)
                rows_before_header = True
                continue
            if len(cells) != len(columns):
                message = f"{len(cells)} cells, but the header names {len(columns)} columns ({one_line(columns)})."
                problems.append(ValidationError(message, Location(path, reader.line_num, 1), code="invalid-record"))
                continue
            rows.append(cells)
            lines.append(reader.line_num)
    except csv.Error as error:
        place = Location(path, reader.line_num, 1)
        problems.append(ValidationError(f"is not well-formed csv: {error}.", place, code="unreadable-data"))
    if len(set(columns)) != len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        message = f"the header names the column '{twice}' twice."
        problems.append(ValidationError(message, Location(path, 1, 1), code="duplicate-entry"))
    if problems:
        raise SourceError(summary(problems))
    if not rows:
        raise SourceError.single("has no samples.", Location(path), "empty-dataset")
    whole: dict[str, Cells] = {name: list(cells) for name, cells in zip(columns, zip(*rows, strict=True), strict=True)}
    if delimiter == ",":
        labels = {*(spec.label if isinstance(spec.label, tuple) else [spec.label]), *LABEL_COLUMNS}
        comma = _have_quoted_decimals([cells for name, cells in whole.items() if not {name, name.casefold()} & labels])
    else:
        comma = any(_decimal_comma(cell) for cells in whole.values() for cell in cells[:_LOOKED_AT])
    note = delimiter_note(path, delimiter, comma)
    return Grid(path, columns, partial(_whole, whole), lines, comma=comma, warnings=(note,) if note else ())


def _whole(cells: Mapping[str, Cells], names: Sequence[str]) -> Iterator[Mapping[str, Cells]]:
    yield {name: cells[name] for name in names}


def _decimal_comma(cell: Any) -> bool:
    return "," in cell and is_number(cell.replace(",", "."))


def _have_quoted_decimals(columns: Sequence[Cells]) -> bool:
    """Return whether quoted numbers of a comma-separated csv have decimal commas: "0,126", but not "1,234".

    At least one must be impossible as a number with thousands separators, and none may have a decimal point.
    """
    cells = [column[:_LOOKED_AT] for column in columns]
    numeric = [
        column
        for column in cells
        if all(not cell.strip() or _decimal_comma(cell) or is_number(cell) for cell in column)
    ]
    written = [cell.strip() for column in numeric for cell in column]
    return any(_decimal_comma(cell) and not _THOUSANDS.fullmatch(cell) for cell in written) and not any(
        "." in cell for cell in written
    )


def _read_with_arrow(path: Path, spec: DatasetSpec) -> Grid | None:
    """Return the numbers of a large csv, read by pyarrow; None for a small file or one with anything but numbers.

    Its blocks raise ValueError if the file has quotes, blank or uneven lines, empty cells, or a cell that is no number:
    the slower reader then reports what is wrong, and where.
    """
    if path.suffix.lower() != ".csv" or isinstance(spec.label, tuple) or isinstance(spec.input, str):
        return None
    if path.stat().st_size < WORTH_ARROW:
        return None
    header = header_of(path)
    columns = column_names(header.split(","))
    bare = Grid(path, columns)
    try:
        texts = [name for name in (label_column(bare, spec), domain_column(bare, spec)) if name]
        listed = chosen_columns(bare, spec, "input")
    except SourceError:
        return None
    features = list(listed) or feature_names(columns, texts)[0]
    if len(set(columns)) != len(columns) or '"' in header:
        return None
    return Grid(path, columns, partial(_blocks, path, columns, features), range(2, sys.maxsize))


def _blocks(
    path: Path, columns: Sequence[str], features: Sequence[str], names: Sequence[str]
) -> Iterator[Mapping[str, Cells]]:
    """Yield blocks of rows: float64 of `features`, stripped strings of others. Raises ValueError for anything
    unusual.
    """
    from pyarrow import csv as arrow_csv
    from pyarrow import float64, string

    kinds = {name: float64() if name in features else string() for name in columns}
    reader = arrow_csv.open_csv(
        path,
        arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK, skip_rows=1, column_names=list(columns)),
        arrow_csv.ParseOptions(quote_char=False, ignore_empty_lines=False),
        arrow_csv.ConvertOptions(
            column_types=kinds, include_columns=list(names), null_values=[], strings_can_be_null=False
        ),
    )
    with reader:
        for batch in reader:
            block_cells: dict[str, Cells] = {}
            for name in names:
                cells = batch.column(name)
                if name in features:
                    block_cells[name] = numbers = cells.to_numpy(zero_copy_only=False)
                    if np.isnan(numbers).any():
                        raise ValueError("a missing number")
                    continue
                texts = block_cells[name] = [sys.intern(cell.strip()) for cell in cells.to_pylist()]
                if not all(texts) or any('"' in cell for cell in set(texts)):
                    raise ValueError("an empty cell, or a quoted one")
            yield block_cells
