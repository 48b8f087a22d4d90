"""The cells of a table in the form that its reader gives, and which of its columns are samples, labels and domains."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Location, ValidationError, closest, one_line
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.cells import is_number, number_of, truth_of
from ianvs.exam.data.csv_headers import yaml_list
from ianvs.exam.data.index import PICTURE_SUFFIXES, Lines
from ianvs.exam.data.listing import SourceError, summary
from ianvs.exam.data.records import Records, json_kind
from ianvs.exam.data.row_numbers import feature_names, identifies_rows, may_number_rows

SAMPLE_COLUMNS = ("image", "path", "file", "x", "img", "pixel_values")
PATH_COLUMNS = (
    *("filename", "file_name", "filepath", "file_path", "image_path", "image_id", "image_file", "image_name"),
    *("img_path", "imagepath", "imagename", "img_name", "path_to_image"),
)
"""Names of the column of samples if its cells are paths of images; otherwise a name means something else."""
LABEL_COLUMNS = ("label", "y", "target", "class", "answer", "labels")
TEXT_COLUMN = "question"
DOMAIN_COLUMN = "domain"
ABOUT = {"topic": "topics", "fact": "facts", "feedback": "feedback"}
"""Columns on the subject of a text and feedback to its answers: names in a Table by names in files."""

Cells = NDArray[Any] | list[Any]
"""Some cells of a column: numbers as an array (n, ...), anything else as a list."""
_MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "nil", "missing", "unknown", "?", "-", "--", "."}
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?", re.ASCII)
_MONEY = re.compile(r"^[$€£¥]|[$€£¥]$")
_LOOKED_AT = 100  # cells of a column that decide whether it holds numbers


@dataclass(frozen=True)
class Grid:
    """The cells of a table as a file or an object has them.

    Attributes:
        path: Of the file; the name of an object in messages.
        columns: Their names.
        blocks: The cells of some columns, a block of rows at a time; each call starts from the beginning.
        lines: (N,) lines of the rows; None if a format has none.
        classes: Names that integers stand for, by column.
        comma: Whether decimals may be written with a comma.
        warnings: Of the reader of the file.
    """

    path: Path
    columns: tuple[str, ...]
    blocks: Callable[[Sequence[str]], Iterator[Mapping[str, Cells]]] = lambda names: iter(())
    lines: Lines | None = None
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    comma: bool = False
    warnings: tuple[ValidationError, ...] = ()

    def place(self, row: int) -> Location:
        return Location.of_line(self.path, 0 if self.lines is None else self.lines[row])

    def row_error(self, row: int, message: str) -> ValidationError:
        """Return an error of a row, with its line or its number."""
        return ValidationError(
            message if self.lines is not None else f"row {row + 1}: {message}", self.place(row), code="invalid-record"
        )

    def named(self, candidates: Sequence[str]) -> str | None:
        """Return the first of `candidates` that is a column, ignoring case."""
        folded = {name.casefold(): name for name in reversed(self.columns)}
        return next((folded[name] for name in candidates if name in folded), None)

    def cells(self, name: str) -> Cells:
        """Return all cells of a column."""
        blocks = [block[name] for block in self.blocks([name])]
        if all(isinstance(part, np.ndarray) for part in blocks):
            return np.concatenate(blocks)
        return [cell for part in blocks for cell in part]

    def number(self, cell: object) -> float:
        """Return the number in a cell. Raises as `number_of`."""
        if self.comma and isinstance(cell, str) and cell.count(",") == 1 and "." not in cell:
            cell = cell.replace(",", ".")
        return number_of(cell)

    def is_number(self, cell: object) -> bool:
        return is_number(cell.replace(",", ".") if self.comma and isinstance(cell, str) else cell)


def records_grid(records: Records) -> Grid:
    """Return the fields of JSON records; a missing field is an empty cell. Raises SourceError."""
    message = 'record {}: expected an object with names, such as {{"image": "a.png", "label": "cat"}}, found {}.'
    problems = [
        ValidationError(message.format(i + 1, json_kind(value)), records.place(i), code="invalid-record")
        for i, value in enumerate(records.values)
        if not isinstance(value, dict)
    ]
    if problems:
        raise SourceError(summary(problems))

    def blocks(names: Sequence[str]) -> Iterator[Mapping[str, Cells]]:
        yield {name: [record.get(name) for record in records.values] for name in names}

    return Grid(records.path, tuple(records.values[0]), blocks, records.lines)


def sample_columns(
    grid: Grid, spec: DatasetSpec, first: Mapping[str, Cells], labels: Sequence[str], reserved: Sequence[str | None]
) -> tuple[str | None, list[str], list[str]]:
    """Return (the column of samples or None, columns of features, columns that are left out for their names).

    first: the first block of rows. reserved: columns of labels, domains and the like.
    """
    given = chosen_columns(grid, spec, "input")
    if isinstance(spec.input, str):
        return (None, list(given), []) if _look_numeric(first[spec.input], grid) else (spec.input, [], [])
    if not given:
        named = grid.named([name for name in SAMPLE_COLUMNS if name not in map(str.casefold, labels)])
        if named is not None and not _look_numeric(first[named], grid):
            return named, [], []
        paths = grid.named([name for name in PATH_COLUMNS if name not in map(str.casefold, labels)])
        if named is None and paths is not None and holds_paths(first[paths]):
            return paths, [], []
        text = grid.named([TEXT_COLUMN])
        if named is None and text is not None and text not in reserved:
            return text, [], []
    features, left_out = (list(given), []) if given else feature_names(grid.columns, reserved)
    odd = [name for name in features if not _look_numeric(first[name], grid)]
    ids = [] if given else [name for name in odd if may_number_rows(name) and identifies_rows(grid.cells(name))]
    if len(ids) < len(features):
        features, left_out = [name for name in features if name not in ids], [*left_out, *ids]
        odd = [name for name in odd if name not in ids]
    if odd or not features:
        raise SourceError([_no_samples(grid, features, odd[0] if odd else None)])
    return None, features, left_out


def chosen_columns(table: Grid, spec: DatasetSpec, key: str) -> tuple[str, ...]:
    """Return the columns that the dataset names by its `key`, () if the key is not set. Raises SourceError."""
    given: str | tuple[str, ...] | None = getattr(spec, key)
    names = (given,) if isinstance(given, str) else tuple(given or ())
    problems = []
    for name in names:
        if name not in table.columns:
            message = f"{table.path.name} has no column '{name}'. It has: {one_line(table.columns)}."
            problems.append(
                ValidationError(message + closest(name, table.columns), spec.places.get(key), code="missing-column")
            )
    if problems:
        raise SourceError(problems)
    return names


def chosen_column(table: Grid, spec: DatasetSpec, key: str) -> str | None:
    """Return the column that the dataset names by its `key`; None if the key is not set. Raises SourceError for
    several.
    """
    names = chosen_columns(table, spec, key)
    if len(names) > 1:
        message = f"`{key}` lists {len(names)} columns; {table.path.name} has one for it. Name that column."
        raise SourceError.single(message, spec.places.get(key), "wrong-length")
    return names[0] if names else None


def label_columns(table: Grid, spec: DatasetSpec) -> tuple[str, ...]:
    """Return the column that holds the label, or those that `label` lists. Raises SourceError."""
    if not isinstance(spec.label, tuple):
        return (label_column(table, spec),)
    if spec.data_type is None:
        message = (
            "`label` lists columns, and the dataset does not say what they hold. Add `data_type: multilabel` for a "
            "column of 0 and 1 for each class, or `data_type: regression` for numbers."
        )
        raise SourceError.single(message, spec.places.get("label"), "missing-key")
    return chosen_columns(table, spec, "label")


def label_column(table: Grid, spec: DatasetSpec) -> str:
    column_name = chosen_column(table, spec, "label") or table.named(LABEL_COLUMNS)
    if column_name is None:
        near = next((hint for name in table.columns if (hint := closest(name, LABEL_COLUMNS))), "")
        message = (
            f"no column holds the label: expected one of {', '.join(LABEL_COLUMNS)}, found {one_line(table.columns)}."
            f"{near}{_bit_columns_hint(table, spec)} Or name the column by `label` in the dataset."
        )
        raise SourceError.single(
            message, Location(table.path) if table.lines is None else Location(table.path, 1, 1), "missing-column"
        )
    return column_name


def _bit_columns_hint(table: Grid, spec: DatasetSpec) -> str:
    """Return a hint that columns of 0 and 1 may be the classes; "" without such columns."""
    first: Mapping[str, Cells] = next(table.blocks(table.columns), {})
    bits = [name for name, cells in first.items() if len(cells) and all(map(_is_bit, listed(cells)))]
    if len(bits) < 2:
        return ""
    added = "" if spec.data_type else " and `data_type: multilabel`"
    return f" If {bits[0]} to {bits[-1]}, of 0 and 1, are a class each: `label: {yaml_list(bits, len(bits))}`{added}."


def _is_bit(cell: object) -> bool:
    try:
        return truth_of(cell) in (-1.0, 0.0, 1.0)
    except (TypeError, ValueError):
        return False


def domain_column(table: Grid, spec: DatasetSpec) -> str | None:
    return chosen_column(table, spec, "domain") or table.named([DOMAIN_COLUMN])


def _no_samples(grid: Grid, features: Sequence[str], odd: str | None) -> ValidationError:
    """Return the error that a table has no samples. odd: a column that keeps `features` from being all numbers."""
    cells = [] if odd is None else listed(grid.cells(odd))
    for row, cell in enumerate(cells):
        if not grid.is_number(cell):
            return no_number(grid, row, str(odd), cell, features)
    return _no_sample_column(grid, features, None)


def no_number(grid: Grid, row: int, name: str, cell: object, features: Sequence[str] | None = None) -> ValidationError:
    """Return the error of the first cell of a column of features that holds no number.

    If most of its cells are numbers, or the others are missing values, the cell is wrong, else the choice of columns.
    """
    cells = listed(grid.cells(name))
    others = [other for other in cells if _is_missing(other) or not grid.is_number(other)]
    if written := _number_in_another_form(cell):
        return grid.row_error(row, f"the column '{name}' holds {str(cell).strip()!r}, {written}.")
    missing = [other for other in others if _is_missing(other)]
    if len(others) == len(cells) or (len(missing) < len(others) and 2 * len(others) >= len(cells)):
        return _no_sample_column(grid, list(grid.columns) if features is None else features, (row, name, cell))
    more = f" ({len(others)} rows are so)" if len(others) > 1 else ""
    text = str(cell).strip() if isinstance(cell, str) else "" if cell is None else repr(cell)
    holds = f"holds {text!r}, which is not a number" if text else "is empty"
    return grid.row_error(
        row,
        f"the column '{name}' {holds}{more}; a feature has a number in each row. Fill it, take the row out, or list "
        "the columns that are features by `input: [...]` in the dataset.",
    )


def _number_in_another_form(cell: object) -> str:
    """Return what of a cell is written unlike a number that is read, and the remedy; "" for any other cell."""
    text = str(cell).strip() if isinstance(cell, str) else ""
    if is_number(text.removesuffix("%")) and text.endswith("%"):
        return f"a percentage. Write the number alone, such as {text[:-1].strip()}, in all rows"
    if _THOUSANDS.fullmatch(text):
        decimal = (
            "" if text.count(",") > 1 or "." in text else f" (or {text.replace(',', '.')} if it is a decimal comma)"
        )
        return f"a number with a comma. Write it without, {text.replace(',', '')}{decimal}, in all rows"
    if is_number(point := text.replace(",", ".")) and "," in text:
        return f"a number with a decimal comma. Write a point, {point}, in all rows"
    if _MONEY.search(text) and is_number(bare := _MONEY.sub("", text).replace(",", "").strip()):
        return f"a number with a currency sign. Write the number alone, {bare}, in all rows"
    return ""


def _is_missing(cell: object) -> bool:
    """Return whether a cell is empty or holds a usual marker of a missing number."""
    return cell is None or (isinstance(cell, str) and cell.strip().casefold() in _MISSING)


def _no_sample_column(grid: Grid, features: Sequence[str], odd: tuple[int, str, object] | None) -> ValidationError:
    near = next((hint for name in features if (hint := closest(name, (*SAMPLE_COLUMNS, TEXT_COLUMN)))), "")
    why = f" '{odd[1]}' is not numeric: {odd[2]!r}." if odd else ""
    message = (
        f"no column holds the sample: expected one of {', '.join(SAMPLE_COLUMNS)} (an image's path), {TEXT_COLUMN} "
        f"(a text), or only numeric columns beside the label; found {one_line(features)}.{why}{near} Or name "
        "the column by `input` in the dataset."
    )
    return ValidationError(message, grid.place(odd[0]) if odd else Location(grid.path), code="missing-column")


def holds_paths(cells: Cells) -> bool:
    """Return whether the first non-empty cell is the path of an image."""
    first = next((cell for cell in listed(cells) if cell is not None and cell != ""), "")
    return isinstance(first, str) and first.strip().lower().endswith(PICTURE_SUFFIXES)


def listed(cells: Cells) -> list[Any]:
    listed: list[Any] = cells.tolist() if isinstance(cells, np.ndarray) else cells
    return listed


def rows_of(block: Mapping[str, Cells]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a block as records."""
    return (dict(zip(block, row, strict=True)) for row in zip(*map(listed, block.values()), strict=True))


def _look_numeric(cells: Cells, grid: Grid) -> bool:
    """Return whether the cells of a column seem to be numbers; a single one that is none is reported later."""
    if isinstance(cells, np.ndarray):
        return cells.ndim == 1
    return any(grid.is_number(cell) for cell in cells[:_LOOKED_AT])
