"""Tables of samples: csv and tsv with a header, json (a list of records), jsonl (a record a line).

Large csv files of plain numbers are read column by column; anything unusual in one is left to the careful reader.
"""

import csv
import io
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ianvs.base.errors import Place, Problem, closest, one_line
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam.data.index import PICTURE_SUFFIXES, Lines, files_listing, read_text, stem_of, suffix_of, text_lines
from ianvs.exam.data.listing import Listing, SourceError, column, numbered_names, summary
from ianvs.exam.data.records import Records

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

    def place(self, row: int) -> Place:
        return Place(self.path, self.lines[row], 1 if self.lines[row] else 0)

    def named(self, candidates: Sequence[str]) -> str | None:
        """The first of `candidates` that is a column, whatever its case."""
        folded = {name.casefold(): name for name in reversed(self.columns)}
        return next((folded[name] for name in candidates if name in folded), None)

    def values(self, name: str) -> list[Any]:
        """The cells of a column. Raises SourceError for the records that lack it."""
        lacking = [self.place(index) for index, row in enumerate(self.rows) if name not in row]
        if lacking:
            raise SourceError(summary([Problem(f"a record has no '{name}'.", place) for place in lacking]))
        return [row[name] for row in self.rows]


def read_table(source: SourceSpec, spec: DatasetSpec, records: Records | None = None) -> Listing:
    """Samples are pictures (a column image, path, file or x), texts (question), or all numeric columns together.

    records: those of the file, if they are read already; else it is a csv or tsv.
    """
    if records is None and (quickly := _numbers_of_csv(source.path, spec)) is not None:
        return quickly
    table = _of_records(read_csv(source.path) if records is None else records)
    label = label_column(table, spec)
    values = table.values(label)
    labels = [token(value) for value in values] if spec.data_type is None else [""] * len(values)
    empty = [table.place(row) for row, token in enumerate(labels) if not token]
    if empty and spec.data_type is None:
        raise SourceError(summary([Problem(f"the column '{label}' is empty.", place) for place in empty]))
    domain = domain_column(table, spec)
    domains = [str(value).strip() for value in table.values(domain)] if domain else [""] * len(labels)
    features = [name for name in table.columns if name not in (label, domain)]
    chosen = chosen_column(table, spec, "input")
    features = features if chosen is None else [chosen]
    sample = chosen or table.named([name for name in SAMPLE_COLUMNS if name != label.casefold()])
    written = column(labels if spec.data_type is None else values)
    numbers, odd = _numbers(table, features)
    text = table.named([TEXT_COLUMN]) if sample is None else None
    if chosen is not None and numbers is None and not str(table.rows[0].get(chosen)).lower().endswith(PICTURE_SUFFIXES):
        text = chosen
    if text is not None:
        listing = table_listing(table, "text", column(table.values(text)), "text", column(values), domains)
        about = {to: _written(table, name) for name, to in ABOUT.items() if name in table.columns and name != text}
        return replace(listing, about=about, marks=tuple(about))
    if numbers is not None:
        return table_listing(table, "arrays", numbers, "class", written, domains)
    if sample is None:
        raise SourceError([no_sample_column(table, features, odd)])
    paths = [str(value).strip() for value in table.values(sample)]
    listing = files_listing(table.path, spec, paths, labels, table.lines, domains)
    return listing if spec.data_type is None else replace(listing, labels=written)


def _numbers_of_csv(path: Path, spec: DatasetSpec) -> Listing | None:
    """What `read_table` lists of a large csv of numbers; None for any other, and where it can't be read, which the
    careful reader tells."""
    if path.suffix.lower() != ".csv":
        return None
    try:
        with path.open("rb") as file:
            header = file.readline().decode("utf-8-sig", "replace")
    except OSError:
        return None
    bare = Table(path, tuple(name.strip() for name in header.split(",")), (), (1,))
    try:
        label, domain = label_column(bare, spec), domain_column(bare, spec)
    except SourceError:
        return None
    if (
        spec.input is not None
        or bare.named([name for name in (*SAMPLE_COLUMNS, TEXT_COLUMN) if name != label.casefold()]) is not None
    ):
        return None
    found = read_numbers(path, [label, *([domain] if domain else [])])
    if found is None:
        return None
    numbers, texts = found
    table = replace(bare, lines=np.arange(2, len(numbers) + 2, dtype=np.int64))
    domains = texts[domain] if domain else [""] * len(numbers)
    return table_listing(table, "arrays", numbers, "class", texts[label], domains)


def table_listing(
    table: Table, form: str, x: NDArray[Any], label_form: str, labels: NDArray[Any], domains: ArrayLike
) -> Listing:
    count, lines = len(table.lines), np.asarray(table.lines, dtype=np.int64)
    ids = numbered_names(stem_of(table.path), count)
    known = np.asarray(domains, dtype=object)
    return Listing(form, x, label_form, labels, ids, known, (table.path,), np.zeros(count, dtype=np.int64), lines)


def chosen_column(table: Table, spec: DatasetSpec, key: str) -> str | None:
    """The column that the dataset names by its `key`, None where it has none."""
    name: str | None = getattr(spec, key)
    if name is None or name in table.columns:
        return name
    message = f"{table.path.name} has no column '{name}'. It has: {one_line(table.columns)}."
    raise SourceError([Problem(message + closest(name, table.columns), spec.places.get(key))])


def label_column(table: Table, spec: DatasetSpec) -> str:
    found = chosen_column(table, spec, "label") or table.named(LABEL_COLUMNS)
    if found is None:
        near = next((hint for name in table.columns if (hint := closest(name, LABEL_COLUMNS))), "")
        message = (
            f"no column holds the label: expected one of {', '.join(LABEL_COLUMNS)}, found {one_line(table.columns)}."
            f"{near} Or name the column by `label` in the dataset."
        )
        raise SourceError([Problem(message, Place(table.path, 1, 1) if table.lines[0] else Place(table.path))])
    return found


def domain_column(table: Table, spec: DatasetSpec) -> str | None:
    return chosen_column(table, spec, "domain") or table.named([DOMAIN_COLUMN])


def no_sample_column(table: Table, features: Sequence[str], odd: tuple[int, str] | None) -> Problem:
    near = next((hint for name in features if (hint := closest(name, (*SAMPLE_COLUMNS, TEXT_COLUMN)))), "")
    why = f" '{odd[1]}' is not numeric: {table.rows[odd[0]].get(odd[1])!r}." if odd else ""
    message = (
        f"no column holds the sample: expected one of {', '.join(SAMPLE_COLUMNS)} (a picture's path), {TEXT_COLUMN} "
        f"(a text), or only numeric columns beside the label; found {one_line(features)}.{why}{near} Or name "
        "the column by `input` in the dataset."
    )
    return Problem(message, table.place(odd[0]) if odd else Place(table.path))


def _written(table: Table, name: str) -> NDArray[np.str_]:
    return np.array([str(row.get(name) or "").strip() for row in table.rows], dtype=str)


def _numbers(table: Table, features: Sequence[str]) -> tuple[NDArray[np.float32] | None, tuple[int, str] | None]:
    """((N, D) float32, None), or (None, (row, column) of the first value that is no number)."""
    if not features:
        return None, None
    try:
        return np.array([[float(row[name]) for name in features] for row in table.rows], dtype=np.float32), None
    except (KeyError, TypeError, ValueError):
        for index, row in enumerate(table.rows):
            for name in features:
                try:
                    float(row[name])
                except (KeyError, TypeError, ValueError):
                    return None, (index, name)
        raise


def token(value: object) -> str:
    """A label as text: 2, 2.0 and "2" are one class."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value).strip()


def csv_header(path: Path) -> tuple[str, ...]:
    """The names of the columns of a csv or tsv file. Raises SourceError for a file that can't be read."""
    names = next(csv.reader(text_lines(path), delimiter=_delimiter(path)), [])
    return tuple(name.strip() for name in names)


def _delimiter(path: Path) -> str:
    return "\t" if suffix_of(path) == ".tsv" else ","


def read_csv(path: Path) -> Records:
    """The rows of a csv or tsv file, each by the names of its columns, as texts. Raises SourceError."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True, delimiter=_delimiter(path))
    rows: list[Mapping[str, str]] = []
    lines: list[int] = []
    problems: list[Problem] = []
    columns: tuple[str, ...] = ()
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not columns:
                columns = tuple(cell.strip() for cell in cells)
                continue
            if len(cells) != len(columns):
                message = f"{len(cells)} cells, but the header names {len(columns)} columns ({one_line(columns)})."
                problems.append(Problem(message, Place(path, reader.line_num, 1)))
                continue
            rows.append(dict(zip(columns, cells, strict=True)))
            lines.append(reader.line_num)
    except csv.Error as error:
        problems.append(Problem(f"is not well-formed csv: {error}.", Place(path, reader.line_num, 1)))
    if len(set(columns)) != len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        problems.append(Problem(f"the header names the column '{twice}' twice.", Place(path, 1, 1)))
    _checked(Table(path, columns, rows, lines), problems)
    return Records(path, tuple(rows), (), tuple(lines))


def _of_records(records: Records) -> Table:
    columns = tuple(records.values[0]) if isinstance(records.values[0], dict) else ()
    wrong = [index for index, record in enumerate(records.values) if not isinstance(record, dict)]
    message = "record {}: expected a record like {{...}}, found {}."
    problems = [Problem(message.format(i + 1, type(records.values[i]).__name__), records.place(i)) for i in wrong]
    return _checked(Table(records.path, columns, records.values, records.lines), problems)


def _checked(table: Table, problems: Sequence[Problem]) -> Table:
    if problems:
        raise SourceError(summary(problems))
    if not table.rows:
        raise SourceError([Problem("has no samples.", Place(table.path))])
    return table


WORTH_PANDAS = 2**20  # bytes; loading pandas for less would cost more than it saves
_BLOCK = 1 << 24  # bytes that are parsed at a time


def read_numbers(path: Path, texts: Sequence[str]) -> tuple[NDArray[np.float32], dict[str, NDArray[np.object_]]] | None:
    """The cells of a csv whose columns, but for `texts`, hold numbers; each line after the header is a row.

    (N, D) numbers in the order of the file's columns, in a map of a file that has no name; and of each of `texts` the
    (N,) stripped cells. It is read a block at a time.

    None for a small file, and one that holds quotes, blank or uneven lines, empty cells, or a cell that is no number:
    Python's own csv module and float() say what is wrong with it, and where.
    """
    if path.stat().st_size < WORTH_PANDAS:
        return None
    cells: dict[str, list[str]] = {name: [] for name in texts}
    count = 0
    with path.open("rb") as file, tempfile.TemporaryFile() as numbers:
        columns = [name.strip() for name in file.readline().decode("utf-8-sig", "replace").split(",")]
        if len(set(columns)) != len(columns) or not all(columns) or not set(texts) < set(columns):
            return None
        while block := file.read(_BLOCK):
            found = _numbers_in(block + file.readline(), columns, texts)
            if found is None:
                return None
            found[0].tofile(numbers)
            count += len(found[0])
            for name in texts:
                cells[name] += found[1][name]
        if not count:
            return None
        numbers.flush()
        kept = np.memmap(numbers, np.float32, "r", shape=(count, len(columns) - len(texts)))
    return kept, {name: np.array(held, object) for name, held in cells.items()}


def _numbers_in(
    block: bytes, columns: Sequence[str], texts: Sequence[str]
) -> tuple[NDArray[np.float32], dict[str, list[str]]] | None:
    """Of whole lines, as `read_numbers`."""
    if b'"' in block or b"\r" in block.replace(b"\r\n", b"\n"):
        return None
    features = [place for place, name in enumerate(columns) if name not in texts]
    try:
        with warnings.catch_warnings(), tempfile.NamedTemporaryFile() as file:
            warnings.simplefilter("error")
            file.write(block)
            file.flush()
            numbers = np.loadtxt(  # parses numbers as float() does, to the last bit; much faster by a file's name
                file.name, np.float64, comments=None, delimiter=",", usecols=features, ndmin=2, encoding="utf-8"
            ).astype(np.float32)
            import pandas

            frame = pandas.read_csv(
                io.BytesIO(block), header=None, names=list(columns), index_col=False, usecols=list(texts),
                dtype="object", keep_default_na=False, na_values=[], skip_blank_lines=False, encoding="utf-8",
            )  # fmt: skip
            cells = {name: [sys.intern(str(cell).strip()) for cell in frame[name].tolist()] for name in texts}
    except (ValueError, Warning):
        return None
    lines = block.count(b"\n") + (not block.endswith(b"\n"))
    if len(numbers) != lines or block.count(b",") != lines * (len(columns) - 1):
        return None
    return (numbers, cells) if all(all(column) for column in cells.values()) else None
