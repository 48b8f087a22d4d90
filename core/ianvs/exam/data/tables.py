"""Tables of samples: csv and tsv with a header, json (a list of records), jsonl (a record a line).

Large csv files of plain numbers are read column by column; anything unusual in one is left to the careful reader.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ianvs.base.errors import Location, ValidationError, closest, one_line
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam.data.csv_headers import column_names, column_place, delimiter_of, yaml_list
from ianvs.exam.data.index import PICTURE_SUFFIXES, Lines, files_listing, read_text, stem_of
from ianvs.exam.data.large_csv import read_numbers
from ianvs.exam.data.listing import Listing, SourceError, column, numbered_names, summary
from ianvs.exam.data.number_cells import number_of
from ianvs.exam.data.records import Records
from ianvs.exam.data.row_numbers import feature_names, identifies_rows, left_out, may_number_rows

SAMPLE_COLUMNS = ("image", "path", "file", "x", "img", "pixel_values")
LABEL_COLUMNS = ("label", "y", "target", "class", "answer", "labels")
TEXT_COLUMN = "question"
DOMAIN_COLUMN = "domain"
ABOUT = {"topic": "topics", "fact": "facts", "feedback": "feedback"}
"""Columns that tell what a text is about, and what is said of its answers: the columns of Samples by their names."""


@dataclass(frozen=True)
class Table:
    path: Path
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]
    lines: Lines  # 0 where a format has no lines

    def place(self, row: int) -> Location:
        return Location(self.path, self.lines[row], 1 if self.lines[row] else 0)

    def named(self, candidates: Sequence[str]) -> str | None:
        """The first of `candidates` that is a column, whatever its case."""
        folded = {name.casefold(): name for name in reversed(self.columns)}
        return next((folded[name] for name in candidates if name in folded), None)

    def values(self, name: str) -> list[Any]:
        """The cells of a column. Raises SourceError for the records that lack it."""
        lacking = [self.place(index) for index, row in enumerate(self.rows) if name not in row]
        if lacking:
            raise SourceError(
                summary(
                    [ValidationError(f"a record has no '{name}'.", place, code="invalid-record") for place in lacking]
                )
            )
        return [row[name] for row in self.rows]


def read_table(source: SourceSpec, spec: DatasetSpec, records: Records | None = None) -> Listing:
    """Samples are pictures (a column image, path, file or x), texts (question), or all numeric columns together.

    records: those of the file, if they are read already; else it is a csv or tsv.
    """
    if records is None and (quickly := _numbers_of_csv(source.path, spec)) is not None:
        return quickly
    table = _of_records(read_csv(source.path) if records is None else records)
    columns = label_columns(table, spec)
    written = _label_numbers(table, columns) if isinstance(spec.label, tuple) else column(table.values(columns[0]))
    labels = [token(value) for value in written] if spec.data_type is None else [""] * len(written)
    empty = [table.place(row) for row, token in enumerate(labels) if not token]
    if empty and spec.data_type is None:
        raise SourceError(
            summary(
                [
                    ValidationError(f"the column '{columns[0]}' is empty.", place, code="invalid-record")
                    for place in empty
                ]
            )
        )
    domain = domain_column(table, spec)
    domains = [str(value).strip() for value in table.values(domain)] if domain else [""] * len(labels)
    listed = chosen_columns(table, spec, "input")
    chosen = listed[0] if isinstance(spec.input, str) else None
    features, nameless = (list(listed), []) if listed else feature_names(table.columns, (*columns, domain))
    sample = chosen or table.named([name for name in SAMPLE_COLUMNS if name not in map(str.casefold, columns)])
    shown = column(labels) if spec.data_type is None else written
    row_ids = [] if listed else [name for name in features if _identifies_rows(table, name)]
    texts = [name for name in row_ids if _numbers(table, [name])[0] is None]
    if len(texts) < len(features):
        features = [name for name in features if name not in texts]
        nameless += texts
    numbers, odd = _numbers(table, features)
    text = table.named([TEXT_COLUMN]) if sample is None else None
    if chosen is not None and numbers is None and not str(table.rows[0].get(chosen)).lower().endswith(PICTURE_SUFFIXES):
        text = chosen
    if text is not None:
        listing = table_listing(table, "text", column(table.values(text)), "text", shown, domains)
        about = {to: _written(table, name) for name, to in ABOUT.items() if name in table.columns and name != text}
        return replace(listing, about=about, marks=tuple(about))
    if numbers is not None:
        listing = table_listing(table, "arrays", numbers, "class", shown, domains)
        listing = with_features(listing, features, row_ids, nameless)
        return replace(listing, label_columns=columns if written.ndim == 2 else ())
    if sample is None or isinstance(spec.input, tuple):
        raise SourceError([no_sample_column(table, features, odd)])
    paths = [str(value).strip() for value in table.values(sample)]
    listing = files_listing(table.path, spec, paths, labels, table.lines, domains)
    if spec.data_type is None:
        return listing
    return replace(listing, labels=written, label_columns=columns if written.ndim == 2 else ())


def _numbers_of_csv(path: Path, spec: DatasetSpec) -> Listing | None:
    """What `read_table` lists of a large csv of numbers; None for any other, and where it can't be read, which the
    careful reader tells."""
    if path.suffix.lower() != ".csv" or isinstance(spec.label, tuple) or isinstance(spec.input, str):
        return None
    try:
        with path.open("rb") as file:
            header = file.readline().decode("utf-8-sig", "replace")
    except OSError:
        return None
    bare = Table(path, column_names(header.split(",")), (), (1,))
    try:
        label, domain = label_column(bare, spec), domain_column(bare, spec)
        listed = chosen_columns(bare, spec, "input")
    except SourceError:
        return None
    if not listed and bare.named([name for name in (*SAMPLE_COLUMNS, TEXT_COLUMN) if name != label.casefold()]):
        return None
    features, nameless = (list(listed), []) if listed else feature_names(bare.columns, (label, domain))
    doubtful = [] if listed else [name for name in features if may_number_rows(name)]
    found = read_numbers(path, [label, *([domain] if domain else [])], features, doubtful)
    if found is None:
        return None
    table = replace(bare, lines=np.arange(2, len(found.numbers) + 2, dtype=np.int64))
    domains = found.texts[domain] if domain else [""] * len(found.numbers)
    listing = table_listing(table, "arrays", found.numbers, "class", found.texts[label], domains)
    row_ids = [name for name in doubtful if identifies_rows(found.exact[name])]
    return with_features(listing, features, row_ids, nameless)


def _identifies_rows(table: Table, name: str) -> bool:
    return may_number_rows(name) and identifies_rows([row.get(name) for row in table.rows])


def _label_numbers(table: Table, columns: Sequence[str]) -> NDArray[np.float64]:
    """(N, C) numbers of the columns that `label` lists. Raises SourceError."""
    rows: list[list[float]] = []
    problems: list[ValidationError] = []
    for index, cells in enumerate(zip(*map(table.values, columns), strict=True)):
        try:
            rows.append([_truth(cell) for cell in cells])
        except (TypeError, ValueError):
            name, cell = next((name, cell) for name, cell in zip(columns, cells, strict=True) if not _is_truth(cell))
            message = f"the column '{name}' of `label` holds {str(cell).strip()!r}; expected a number, such as 0 or 1."
            problems.append(ValidationError(message, table.place(index), code="invalid-record"))
    if problems:
        raise SourceError(summary(problems))
    return np.array(rows, dtype=np.float64)


def _truth(cell: object) -> float:
    words = {"true": 1.0, "false": 0.0}  # as pandas writes them
    word = cell.strip().casefold() if isinstance(cell, str) else ""
    return words[word] if word in words else number_of(cell)


def _is_truth(cell: object) -> bool:
    try:
        _truth(cell)
    except (TypeError, ValueError):
        return False
    return True


def table_listing(
    table: Table, form: str, x: NDArray[Any], label_form: str, labels: NDArray[Any], domains: ArrayLike
) -> Listing:
    count, lines = len(table.lines), np.asarray(table.lines, dtype=np.int64)
    ids = numbered_names(stem_of(table.path), count)
    known = np.asarray(domains, dtype=object)
    return Listing(form, x, label_form, labels, ids, known, (table.path,), np.zeros(count, dtype=np.int64), lines)


def with_features(listing: Listing, features: Sequence[str], row_ids: Sequence[str], gone: Sequence[str]) -> Listing:
    """`listing` of a table of numbers with the names of its columns. gone: those that are left out for their names."""
    places = [column_place(listing.sources[0], name, int(listing.lines[0])) for name in gone]
    return replace(
        listing,
        features=tuple(features),
        row_ids=tuple(name for name in row_ids if name in features),
        warnings=tuple(left_out(name, features, place) for name, place in zip(gone, places, strict=True)),
        marks=tuple(f"without {name}" for name in gone),
    )


def chosen_columns(table: Table, spec: DatasetSpec, key: str) -> tuple[str, ...]:
    """The columns that the dataset names by its `key`, () where it names none. Raises SourceError."""
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


def chosen_column(table: Table, spec: DatasetSpec, key: str) -> str | None:
    """The one column that the dataset names by its `key`, None where it has none. Raises SourceError for several."""
    names = chosen_columns(table, spec, key)
    if len(names) > 1:
        message = f"`{key}` lists {len(names)} columns; {table.path.name} has one for it. Name that column."
        raise SourceError([ValidationError(message, spec.places.get(key), code="wrong-length")])
    return names[0] if names else None


def label_columns(table: Table, spec: DatasetSpec) -> tuple[str, ...]:
    """The column that holds the label, or those that `label` lists. Raises SourceError."""
    if not isinstance(spec.label, tuple):
        return (label_column(table, spec),)
    if spec.data_type is None:
        message = (
            "`label` lists columns, and the dataset does not say what they hold. Add `data_type: multilabel` for a "
            "column of 0 and 1 for each class, or `data_type: regression` for numbers."
        )
        raise SourceError([ValidationError(message, spec.places.get("label"), code="missing-key")])
    return chosen_columns(table, spec, "label")


def label_column(table: Table, spec: DatasetSpec) -> str:
    found = chosen_column(table, spec, "label") or table.named(LABEL_COLUMNS)
    if found is None:
        near = next((hint for name in table.columns if (hint := closest(name, LABEL_COLUMNS))), "")
        message = (
            f"no column holds the label: expected one of {', '.join(LABEL_COLUMNS)}, found {one_line(table.columns)}."
            f"{near}{_of_bits(table, spec)} Or name the column by `label` in the dataset."
        )
        raise SourceError(
            [
                ValidationError(
                    message,
                    Location(table.path, 1, 1) if table.lines[0] else Location(table.path),
                    code="missing-column",
                )
            ]
        )
    return found


def _of_bits(table: Table, spec: DatasetSpec) -> str:
    """How to say that columns of 0 and 1 are the classes, "" where there are none."""
    bits = [name for name in table.columns if all(_is_bit(row.get(name)) for row in table.rows)]
    if len(bits) < 2 or not table.rows:
        return ""
    added = "" if spec.data_type else " and `data_type: multilabel`"
    return f" If {bits[0]} to {bits[-1]}, of 0 and 1, are a class each: `label: {yaml_list(bits, len(bits))}`{added}."


def _is_bit(cell: object) -> bool:
    return _is_truth(cell) and _truth(cell) in (-1.0, 0.0, 1.0)


def domain_column(table: Table, spec: DatasetSpec) -> str | None:
    return chosen_column(table, spec, "domain") or table.named([DOMAIN_COLUMN])


def no_sample_column(table: Table, features: Sequence[str], odd: tuple[int, str] | None) -> ValidationError:
    near = next((hint for name in features if (hint := closest(name, (*SAMPLE_COLUMNS, TEXT_COLUMN)))), "")
    why = f" '{odd[1]}' is not numeric: {table.rows[odd[0]].get(odd[1])!r}." if odd else ""
    message = (
        f"no column holds the sample: expected one of {', '.join(SAMPLE_COLUMNS)} (a picture's path), {TEXT_COLUMN} "
        f"(a text), or only numeric columns beside the label; found {one_line(features)}.{why}{near} Or name "
        "the column by `input` in the dataset."
    )
    return ValidationError(message, table.place(odd[0]) if odd else Location(table.path), code="missing-column")


def _written(table: Table, name: str) -> NDArray[np.str_]:
    return np.array([str(row.get(name) or "").strip() for row in table.rows], dtype=str)


def _numbers(table: Table, features: Sequence[str]) -> tuple[NDArray[np.float32] | None, tuple[int, str] | None]:
    """((N, D) float32, None), or (None, (row, column) of the first value that is no number)."""
    if not features:
        return None, None
    try:
        with np.errstate(over="ignore"):  # what float32 can't hold is infinite, which is told
            return np.array([[number_of(row[name]) for name in features] for row in table.rows], dtype=np.float32), None
    except (KeyError, TypeError, ValueError):
        for index, row in enumerate(table.rows):
            for name in features:
                try:
                    number_of(row[name])
                except (KeyError, TypeError, ValueError):
                    return None, (index, name)
        raise


def token(value: object) -> str:
    """A label as text: 2, 2.0 and "2" are one class."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value).strip()


def read_csv(path: Path) -> Records:
    """The rows of a csv or tsv file, each by the names of its columns, as texts. Raises SourceError."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True, delimiter=delimiter_of(path))
    rows: list[Mapping[str, str]] = []
    lines: list[int] = []
    problems: list[ValidationError] = []
    columns: tuple[str, ...] = ()
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not columns:
                columns = column_names(cells)
                continue
            if len(cells) != len(columns):
                message = f"{len(cells)} cells, but the header names {len(columns)} columns ({one_line(columns)})."
                problems.append(ValidationError(message, Location(path, reader.line_num, 1), code="invalid-record"))
                continue
            rows.append(dict(zip(columns, cells, strict=True)))
            lines.append(reader.line_num)
    except csv.Error as error:
        problems.append(
            ValidationError(
                f"is not well-formed csv: {error}.", Location(path, reader.line_num, 1), code="unreadable-data"
            )
        )
    if len(set(columns)) != len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        problems.append(
            ValidationError(
                f"the header names the column '{twice}' twice.", Location(path, 1, 1), code="duplicate-entry"
            )
        )
    _checked(Table(path, columns, rows, lines), problems)
    return Records(path, tuple(rows), (), tuple(lines))


def _of_records(records: Records) -> Table:
    columns = tuple(records.values[0]) if isinstance(records.values[0], dict) else ()
    wrong = [index for index, record in enumerate(records.values) if not isinstance(record, dict)]
    message = "record {}: expected a record like {{...}}, found {}."
    problems = [
        ValidationError(
            message.format(i + 1, type(records.values[i]).__name__), records.place(i), code="invalid-record"
        )
        for i in wrong
    ]
    return _checked(Table(records.path, columns, records.values, records.lines), problems)


def _checked(table: Table, problems: Sequence[ValidationError]) -> Table:
    if problems:
        raise SourceError(summary(problems))
    if not table.rows:
        raise SourceError([ValidationError("has no samples.", Location(table.path), code="empty-dataset")])
    return table
