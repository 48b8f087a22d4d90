"""Tables of samples, from files and from functions: interprets their columns, in one place for all formats."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Location, one_line
from ianvs.base.split_words import LEFT_OUT
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.arrays import Layout, arrays_listing
from ianvs.exam.data.cells import CellError, classes_of, text_of, truth_of
from ianvs.exam.data.csv_headers import column_place
from ianvs.exam.data.decode import decode_picture
from ianvs.exam.data.grids import (
    ABOUT,
    Cells,
    Grid,
    domain_column,
    holds_paths,
    label_columns,
    listed,
    no_number,
    sample_columns,
)
from ianvs.exam.data.index import files_listing, rows_listing, stem_of
from ianvs.exam.data.listing import Listing, SourceError, column, data_warning, summary
from ianvs.exam.data.row_numbers import identifies_rows, left_out_warning, may_number_rows
from ianvs.exam.data.split_columns import Split, is_used_for_both, split_column, split_warnings
from ianvs.exam.data.typed_labels import type_name


@dataclass(frozen=True)
class Rows:
    """The samples of a table.

    Attributes:
        form: "arrays", "text" or "paths".
        x: (N, ...) array, or N strings or paths as written.
        y: (N,) classes, strings, or cells for a data type to read; (N, C) numbers if `label` lists columns.
        domains: (N,) names, "" if none is written.
        classes: Class names in a schema.
        features: Names of the columns of numbers in `x`.
        row_ids: Those of `features` that number the rows.
        left_out_columns: Columns that are left out as row numbers because of their names.
        label_columns: Names of the columns of `y`.
        text_columns: Further columns (topic, id, ...): the name in a Table -> (N,) strings.
    """

    form: str
    x: Any
    y: NDArray[Any]
    domains: list[str]
    classes: tuple[str, ...] | None = None
    features: tuple[str, ...] = ()
    row_ids: tuple[str, ...] = ()
    left_out_columns: tuple[str, ...] = ()
    label_columns: tuple[str, ...] = ()
    text_columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def table_listing(grid: Grid, spec: DatasetSpec, part: str) -> Listing:
    """Return the listing of the table in a file. Raises SourceError.

    part: "train" or "test", for a table with a column that assigns rows to parts.
    """
    split = split_column(grid, spec)
    rows = table_rows(grid, spec, None if split is None else split.column)
    count = len(rows.y)
    lines = np.zeros(count, np.int64) if grid.lines is None else np.asarray(grid.lines[:count], np.int64)
    labels, typed = rows.y, spec.data_type is not None
    if rows.form == "paths":
        names = [""] * count if typed else labels.tolist()
        listing = replace(files_listing(grid.path, spec, rows.x, names, lines, rows.domains), classes=rows.classes)
        listing = replace(listing, y=labels) if typed else listing
    elif rows.form == "text":
        listing = rows_listing(grid.path, lines, "text", column(rows.x), "text", labels, rows.domains)
        marks = tuple(name for name in ABOUT if ABOUT[name] in rows.text_columns)
        columns: dict[str, Any] = {**rows.text_columns, "marks": marks}
        listing = replace(listing, **columns)
    elif rows.features:
        listing = rows_listing(grid.path, lines, "arrays", rows.x, "class", labels, rows.domains)
        listing = replace(_with_features(listing, rows), classes=rows.classes)
    else:
        arrays = {"x": rows.x, "y": labels} | ({"domain": column(rows.domains)} if any(rows.domains) else {})
        called = dict.fromkeys(arrays, grid.path.name)
        usual: Layout | None = "NHWC" if rows.x.dtype == np.uint8 and rows.x.shape[-1] == 3 else None  # as decoded
        place, stem = Location(grid.path), stem_of(grid.path)
        listing = arrays_listing(arrays, stem, place, called, rows.classes, spec.layout, usual, type_name(spec))
        listing = replace(listing, lines=lines)
    doubts = split_warnings(grid, spec, rows.features, listing.place(0).line)
    listing = replace(listing, label_columns=rows.label_columns, warnings=(*grid.warnings, *listing.warnings, *doubts))
    return listing if split is None else _rows_of_part(listing, grid, split, part, is_used_for_both(grid.path, spec))


def table_rows(grid: Grid, spec: DatasetSpec, split: str | None = None) -> Rows:
    """Return the samples of a table. split: a column that is no sample. Raises SourceError."""
    labels, domain = label_columns(grid, spec), domain_column(grid, spec)
    first = next(grid.blocks(grid.columns), None)
    if first is None:
        raise SourceError.single("has no samples.", Location(grid.path), "empty-dataset")
    sample, features, left_out = sample_columns(grid, spec, first, labels, (*labels, domain, split))
    kind = "numbers" if sample is None else _sample_form(first[sample])
    doubtful = () if spec.input else tuple(name for name in features if may_number_rows(name))
    further = tuple(name for name in ABOUT if name in grid.columns and name != sample) if kind == "text" else ()
    collected: dict[str, list[Any]] = {name: [] for name in ("labels", "domains", "texts", *further)}
    float64_columns: dict[str, list[NDArray[np.float64]]] = {name: [] for name in doubtful}
    of_samples, of_domains = [sample] if sample else features, [domain] if domain else []
    wanted = list(dict.fromkeys([*of_samples, *labels, *of_domains, *further]))
    count = 0

    def arrays() -> Iterator[NDArray[Any]]:
        nonlocal count
        for block in grid.blocks(wanted):
            at = _BlockRows(grid, count)
            collected["labels"] += _labels(block, labels, spec, at, texts=kind == "text")
            collected["domains"] += _names(block[domain], domain, grid) if domain else []
            for name in further:
                collected[name] += [str(cell or "").strip() for cell in block[name]]
            count += len(block[wanted[0]])
            if sample is None:
                numbers = {name: at.numbers(block[name], name) for name in features}
                for name in doubtful:
                    float64_columns[name].append(numbers[name])
                with np.errstate(over="ignore"):  # numbers too large for float32 become infinite, which is reported
                    yield np.column_stack([*numbers.values()]).astype(np.float32)
            elif kind in ("text", "paths"):
                collected["texts"] += at.texts(block[sample], sample)
            else:
                yield at.arrays(block[sample], sample, spec)

    x = _to_memory_map(arrays(), grid)
    several = isinstance(spec.label, tuple)
    if spec.data_type is None and "" in collected["labels"]:
        empty = [row for row, label in enumerate(collected["labels"]) if not label]
        raise SourceError(summary([grid.row_error(row, f"the column '{labels[0]}' is empty.") for row in empty]))
    return Rows(
        form=kind if x is None else "arrays",
        x=collected["texts"] if x is None else x,
        y=np.array(collected["labels"], np.float64) if several else column(collected["labels"]),
        domains=collected["domains"] or [""] * count,
        classes=None if several else grid.classes.get(labels[0]),
        features=tuple(features),
        row_ids=tuple(name for name, cells in float64_columns.items() if identifies_rows(np.concatenate(cells))),
        left_out_columns=tuple(left_out),
        label_columns=labels if several else (),
        text_columns={ABOUT[name]: np.array(collected[name], dtype=str) for name in further},
    )


@dataclass(frozen=True)
class _BlockRows:
    """The rows of a block, which begins at row `start` of the table."""

    grid: Grid
    start: int

    def row_error(self, row: int, message: str) -> SourceError:
        return SourceError([self.grid.row_error(self.start + row, message)])

    def numbers(self, cells: Cells, name: str) -> NDArray[np.float64]:
        if isinstance(cells, np.ndarray):
            return cells.astype(np.float64)
        numbers = np.zeros(len(cells))
        for row, cell in enumerate(cells):
            try:
                numbers[row] = self.grid.number(cell)
                if isinstance(cell, str) and np.isnan(numbers[row]):
                    raise ValueError("a missing number in words")
            except (TypeError, ValueError):
                raise SourceError([no_number(self.grid, self.start + row, name, cell)]) from None
        return numbers

    def texts(self, cells: Cells, name: str) -> list[str]:
        for row, cell in enumerate(cells):
            if cell is None:
                raise self.row_error(row, f"the column '{name}' is empty.")
        return [cell if isinstance(cell, str) else text_of(cell) for cell in cells]

    def arrays(self, cells: Cells, name: str, spec: DatasetSpec) -> NDArray[Any]:
        """Return (n, ...) of cells with images or arrays: uint8, of files (n, height, width, 3); others float32."""
        if isinstance(cells, np.ndarray):
            return cells if cells.dtype == np.uint8 else cells.astype(np.float32)
        arrays: list[NDArray[Any]] = []
        for row, cell in enumerate(cells):
            arrays.append(self._array(cell, name, row, spec))
            if arrays[-1].shape != arrays[0].shape:
                raise self.row_error(row, _shape_error(name, arrays[-1], arrays[0]))
        return np.stack(arrays)

    def _array(self, cell: object, name: str, row: int, spec: DatasetSpec) -> NDArray[Any]:
        if isinstance(cell, bytes):
            try:
                return decode_picture(str(self.grid.path), spec.image_size, cell, spec.value_range)
            except SourceError as broken:
                raise self.row_error(row, f"the image in '{name}' {broken.problems[0].message}") from None
        try:
            return np.array(cell if isinstance(cell, list) else None, np.float64).astype(np.float32)
        except (TypeError, ValueError):
            description = "is empty" if cell is None else f"is a {type(cell).__name__}"
            message = f"'{name}' {description}; expected a number, a list as long as the others, or an image."
            raise self.row_error(row, message) from None


def _shape_error(name: str, actual: NDArray[Any], first: NDArray[Any]) -> str:
    if first.ndim == 3 and first.dtype == np.uint8:
        sizes = " and ".join(f"{array.shape[0]}x{array.shape[1]}" for array in (first, actual))
        return f"the images in '{name}' differ in size, {sizes}. Set `image_size: [height, width]`."
    return f"'{name}' holds {actual.shape} numbers, the first row {first.shape}; expected a list as long as the others."


def _labels(
    block: Mapping[str, Cells], columns: Sequence[str], spec: DatasetSpec, at: _BlockRows, *, texts: bool
) -> list[Any]:
    """Return the label of each row, "" if it is empty. texts: labels are answers, not classes."""
    if isinstance(spec.label, tuple):
        return [*np.column_stack([_truths(block[name], name, at) for name in columns])]
    name, cells = columns[0], block[columns[0]]
    if spec.data_type is not None:  # the data type reads them
        return listed(cells)
    if (classes := at.grid.classes.get(name)) is not None:
        cells = [_class_name(classes, cell) for cell in listed(cells)]
    try:
        return list(map(text_of, cells)) if texts else classes_of(cells).tolist()
    except CellError as error:
        raise at.row_error(error.row, f"'{name}' {error.message}.") from None
    except ValueError as error:
        raise at.row_error(0, f"'{name}' {error}.") from None


def _truths(cells: Cells, name: str, at: _BlockRows) -> NDArray[np.float64]:
    truths, problems = np.zeros(len(cells)), []
    for row, cell in enumerate(listed(cells)):
        try:
            truths[row] = truth_of(cell)
        except (TypeError, ValueError):
            message = f"the column '{name}' of `label` holds {str(cell).strip()!r}; expected a number, such as 0 or 1."
            problems.append(at.grid.row_error(at.start + row, message))
    if problems:
        raise SourceError(summary(problems))
    return truths


def _names(cells: Cells, name: str, grid: Grid) -> list[str]:
    classes = grid.classes.get(name)
    return [text_of(cell if classes is None else _class_name(classes, cell)) for cell in listed(cells)]


def _class_name(classes: Sequence[str], cell: object) -> object:
    """Return the class name that a number stands for; Hugging Face's -1 is no label."""
    if not isinstance(cell, int):
        return cell
    return classes[cell] if 0 <= cell < len(classes) else None


def _sample_form(cells: Cells) -> str:
    """Return the type of a column of samples by its first non-empty cell: "arrays", "text" or "paths"."""
    if isinstance(cells, np.ndarray):
        return "arrays"
    first = next((cell for cell in cells if cell is not None and cell != ""), "")
    if not isinstance(first, str):
        return "arrays"
    return "paths" if holds_paths(cells) else "text"


def _to_memory_map(blocks: Iterator[NDArray[Any]], grid: Grid) -> NDArray[Any] | None:
    """Return all blocks concatenated in a memory map of a temporary file; None without blocks."""
    kind, count = None, 0
    with tempfile.TemporaryFile() as file:
        for block in blocks:
            actual = (block.dtype, block.shape[1:])
            kind = kind or actual
            if actual != kind:
                message = (
                    f"the sample is {actual[0]} {actual[1]}, in row 1 it is {kind[0]} {kind[1]}. Make them the same,"
                )
                raise SourceError([grid.row_error(count, f"{message} or images so by `image_size: [height, width]`.")])
            block.tofile(file)
            count += len(block)
        file.flush()
        return None if kind is None else np.memmap(file, kind[0], "r", shape=(count, *kind[1]))


def _with_features(listing: Listing, rows: Rows) -> Listing:
    """Return the `listing` of a table of numbers with the names of its columns."""
    gone, first = rows.left_out_columns, listing.place(0)
    places = [column_place(first.file, name, first.line) for name in gone]
    return replace(
        listing,
        features=rows.features,
        row_ids=rows.row_ids,
        warnings=tuple(left_out_warning(name, rows.features, place) for name, place in zip(gone, places, strict=True)),
        marks=tuple(f"without {name}" for name in gone),
    )


def _rows_of_part(listing: Listing, grid: Grid, split: Split, part: str, both: bool) -> Listing:
    """Return the rows of a table that a column assigns to `part`. both: whether the table is read for both parts."""
    parts = [split.parts[text_of(cell)] for cell in listed(grid.cells(split.column))]
    mask = np.array([row_part == part for row_part in parts])
    place = column_place(grid.path, split.column, listing.place(0).line)
    if not mask.any():
        message = (
            f"no row is of the {part} part by the column '{split.column}'. Write train or test there, or rename it."
        )
        raise SourceError.single(message, place, "missing-data")
    if mask.all():
        return listing
    if not both:
        message = (
            f"{mask.sum()} of {len(mask)} rows are of the {part} part by the column '{split.column}', and the others "
            "are left out. If that is no split, give the column another name."
        )
    else:
        counts = f"{parts.count('train')} rows for training, {parts.count('test')} for testing"
        remedy = "Nothing has to be done." if split.certain else "If it is no split, give it another name."
        message = f"the column '{split.column}' is read as the split: {counts}. {remedy}"
    warnings = [] if both and part == "test" else [data_warning(message, place)]  # one for both parts
    taken = listing.take(mask).noted(warnings, [f"{part} by {split.column}"])
    if part == "train" or LEFT_OUT not in parts:
        return taken
    words = one_line(sorted(word for word, meant in split.parts.items() if meant == LEFT_OUT))
    unused = (
        f"{parts.count(LEFT_OUT)} validation rows ({words} in the column '{split.column}') are left out: they are "
        "neither training nor test samples. To use them, write train or test in that column."
    )
    return taken.noted([data_warning(unused, place)], ["without validation"])
