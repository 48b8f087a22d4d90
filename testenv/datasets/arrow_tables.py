"""Tables in the formats of Apache Arrow: parquet, arrow and feather files, data frames, and Hugging Face datasets.

They are read in blocks of rows, so memory holds labels, texts, and one block. Columns are named and chosen as in csv
and json files. The metadata of Hugging Face gives the names of classes; its images are structs of a file's bytes and
path. A folder written by `Dataset.save_to_disk` is read with pyarrow alone.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from ianvs.base.errors import DataError, Location, ValidationError, first_line, one_line
from ianvs.base.tool_files import is_of_tool
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.conversations import holds_conversations, read_conversations
from ianvs.exam.data.file_formats import FileFormat, Returned
from ianvs.exam.data.grids import DOMAIN_COLUMN, TEXT_COLUMN, Grid, domain_column, rows_of
from ianvs.exam.data.listing import Listing, SourceError
from ianvs.exam.data.records import Records
from ianvs.exam.data.tables import table_listing, table_rows

_STATE = "state.json"  # of a folder of save_to_disk
_ROWS = 4096  # of a block
_TESTS = ("test", "validation", "val", "valid")  # splits that can be the test part; the first existing one is used
Batches = Callable[[Sequence[str]], Iterable[Any]]
"""Returns the RecordBatches of a table, anew at each call, with at least the requested columns."""


def _pyarrow() -> Any:
    try:
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise DataError(
            "tables of this kind are read by pyarrow: pip install 'ianvs-bench[parquet]'.", code="missing-package"
        ) from None
    return pyarrow


def _files(folder: Path) -> tuple[Path, ...]:
    """Return the file itself, those of a folder of save_to_disk, or the parquet files of one split in the layout of
    the hub.
    """
    if folder.is_file():
        return (folder,)
    if not (folder / _STATE).is_file():
        shards = sorted(shard for shard in folder.glob("*.parquet") if not is_of_tool(shard.name))
        tests = [shard for shard in shards if shard.name.startswith(_TESTS)]
        return () if len(tests) not in (0, len(shards)) else tuple(shards)
    try:
        listed = json.loads((folder / _STATE).read_text(encoding="utf-8"))["_data_files"]
        return tuple(folder / entry["filename"] for entry in listed)
    except (ValueError, KeyError, TypeError):
        return ()  # not a dataset of Hugging Face


def _read(files: Sequence[Path], path: Path, spec: DatasetSpec, part: str) -> Listing:
    reading = files[0]

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        nonlocal reading
        for reading in files:
            yield from _opened(reading, _pyarrow())[1](columns)

    try:
        grid = _grid(_opened(reading, _pyarrow())[0], batches, path)
        if (conversations := _conversations(grid, spec)) is not None:
            none = (0,) * len(conversations)
            return read_conversations(Records(path, tuple(conversations), (), none, "row {number}: "), spec)
        return table_listing(grid, spec, part)
    except SourceError:
        raise
    except DataError as error:
        raise SourceError([ValidationError.from_exception(error, Location(path), "unreadable-data")]) from None
    except (ValueError, KeyError, OSError) as error:  # includes the errors of pyarrow
        why = f"{reading.name} can't be read by pyarrow ({first_line(error)})"
        raise SourceError.single(f"{why}. Write it again.", Location(path), "unreadable-data") from None


def _opened(path: Path, arrow: Any) -> tuple[Any, Batches]:
    """Return a table's schema and batches; those of arrow files are views of a memory map."""
    if path.suffix.lower() == ".parquet":
        parquet = arrow.parquet.ParquetFile(path)
        groups = range(parquet.num_row_groups)  # one by one: reading several together takes more memory
        return parquet.schema_arrow, lambda columns: chain.from_iterable(
            parquet.iter_batches(_ROWS, row_groups=[group], columns=columns) for group in groups
        )
    source = arrow.memory_map(str(path))
    try:
        file = arrow.ipc.open_file(source)
        return file.schema, lambda columns: map(file.get_batch, range(file.num_record_batches))
    except arrow.ArrowInvalid:
        stream = arrow.ipc.open_stream(source)  # as written by Hugging Face
        return stream.schema, lambda columns: stream


def _given(value: Any, call: str, spec: DatasetSpec) -> Returned | None:
    ours = _is_hugging_face(value)
    if not ours and not hasattr(value, "__arrow_c_stream__"):
        return None
    arrow = _pyarrow()
    if ours and not hasattr(value, "__len__"):
        raise DataError(
            "a Hugging Face dataset that streams has no length. Load it without `streaming=True`.",
            code="unreadable-data",
        )
    try:
        table = value.with_format("arrow")[:] if ours else arrow.table(value)
    except (arrow.ArrowException, TypeError, ValueError) as error:
        why = f"{type(value).__name__} has cells that pyarrow can't hold ({str(error.args[-1]).splitlines()[0]})"
        raise DataError(f"{why}. Return (x, y) arrays instead.", code="unreadable-data") from None
    grid = _grid(table.schema, lambda columns: table.select(columns).to_batches(), Path(call))
    if (conversations := _conversations(grid, spec)) is not None:
        return conversations, None
    rows = table_rows(grid, spec)
    if rows.form == "text":
        texts = zip(rows.x, rows.y.tolist(), rows.domains, strict=True)
        return [{TEXT_COLUMN: x, "answer": y} | ({DOMAIN_COLUMN: name} if name else {}) for x, y, name in texts], None
    if numbering := [*rows.left_out_columns, *rows.row_ids]:
        message = (
            f"{call} has the column '{numbering[0]}', which looks like the number of the row. Return the table without "
            "it, or list the columns that are features by `input: [...]` in the dataset."
        )
        raise DataError(message, code="invalid-record")
    if rows.label_columns:
        raise DataError(
            f"`label` lists columns of {call}. Return (x, y), y an array (N, C), and name their `classes`.",
            code="invalid-record",
        )
    return {"x": rows.x, "y": rows.y} | ({"domain": rows.domains} if any(rows.domains) else {}), rows.classes


def _is_hugging_face(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "datasets"


def _splits(given: Mapping[str, object]) -> dict[str, object] | None:
    """Return train and test of a DatasetDict: the test part is the first existing split of `_TESTS`.

    Others are left out.
    """
    if not _is_hugging_face(given):
        return None
    if "train" not in given:
        raise DataError(
            f"a DatasetDict without 'train': it has {one_line(list(given))}. Return (train, test) of them.",
            code="missing-data",
        )
    tests = [given[name] for name in _TESTS if name in given]
    return {"train": given["train"]} | ({"test": tests[0]} if tests else {})


def _grid(schema: Any, batches: Batches, path: Path) -> Grid:
    """Return the cells of a table. path: its name in messages."""
    features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}")).get("info", {}).get("features", {})
    classes = {name: tuple(feature["names"]) for name, feature in features.items() if "names" in feature}
    # Index levels of a data frame, which are not columns.
    index = (schema.pandas_metadata or {}).get("index_columns", [])

    def blocks(names: Sequence[str]) -> Iterator[dict[str, Any]]:
        for batch in batches(list(names)):
            for start in range(0, len(batch), _ROWS):
                yield {name: _values(batch.column(name).slice(start, _ROWS)) for name in names}

    return Grid(path, tuple(name for name in schema.names if name not in index), blocks, classes=classes)


def _conversations(grid: Grid, spec: DatasetSpec) -> list[dict[str, Any]] | None:
    """Return the records of a table of conversations; None for other tables."""
    first = next(grid.blocks(grid.columns), None)
    if first is None or spec.input is not None or spec.label is not None:
        return None
    domain = domain_column(grid, spec)
    if not holds_conversations(Records(grid.path, tuple(rows_of(first)), (), ()), spec):
        return None
    rows = [row for block in grid.blocks(grid.columns) for row in rows_of(block)]
    return [row | {DOMAIN_COLUMN: row[domain]} for row in rows] if domain else rows


def _values(array: Any) -> Any:
    """Return the numbers (n, ...) of a column, or a list of texts, bytes of image files, or json values."""
    arrow, shape = _pyarrow(), [len(array)]
    types = arrow.types
    array = array.dictionary_decode() if isinstance(array, arrow.DictionaryArray) else array
    cells = array.storage if isinstance(array, arrow.ExtensionArray) else array
    cells = whole = cells.cast(arrow.float64()) if types.is_decimal(cells.type) else cells
    if types.is_struct(cells.type) and {field.name for field in cells.type} == {"bytes", "path"}:
        return [cell and (cell["path"] if cell["bytes"] is None else cell["bytes"]) for cell in cells.to_pylist()]
    while not cells.null_count and (hasattr(cells.type, "value_type")):
        lengths = arrow.compute.min_max(arrow.compute.list_value_length(cells)).as_py()
        if lengths["min"] != lengths["max"]:
            break
        shape.append(lengths["min"] or 0)
        cells = cells.flatten()
    number = types.is_integer(cells.type) or types.is_floating(cells.type) or types.is_boolean(cells.type)
    return cells.to_numpy(zero_copy_only=False).reshape(shape) if number and not cells.null_count else whole.to_pylist()


FORMS = (FileFormat((".parquet", ".arrow", ".feather"), _read, _files, _given, _splits),)
