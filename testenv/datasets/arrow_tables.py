"""Tables in Apache Arrow's forms: parquet, arrow and feather files, data frames, and Hugging Face datasets.

They are read in blocks of rows: in memory are labels, texts, and one block. The columns are named, and chosen, as those
of csv and json files are. What Hugging Face adds to a schema tells the names of classes; its pictures are structs of a
file's bytes and its path. A folder of `Dataset.save_to_disk` is read by pyarrow alone.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError, Location, ValidationError, first_line, one_line
from ianvs.base.tool_files import is_of_tool
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.arrays import Layout, arrays_listing
from ianvs.exam.data.conversations import conversations_listing, holds_conversations
from ianvs.exam.data.decode import decode_picture
from ianvs.exam.data.index import PICTURE_SUFFIXES, files_listing
from ianvs.exam.data.listing import Listing, SourceError, column
from ianvs.exam.data.records import Records
from ianvs.exam.data.row_numbers import feature_names, identifies_rows, may_number_rows
from ianvs.exam.data.table_forms import Returned, TableForm
from ianvs.exam.data.tables import (
    DOMAIN_COLUMN,
    SAMPLE_COLUMNS,
    TEXT_COLUMN,
    Table,
    chosen_columns,
    domain_column,
    label_columns,
    no_sample_column,
    table_listing,
    token,
    with_features,
)
from ianvs.exam.data.typed_labels import type_name

_STATE = "state.json"  # of a folder of save_to_disk
_ROWS = 4096  # of a block
_TESTS = ("test", "validation", "val", "valid")  # splits that can be the test part, the first that is there
Batches = Callable[[Sequence[str]], Iterable[Any]]
"""The RecordBatches of a table, again at each call, with at least the columns that are asked for."""


def _pyarrow() -> Any:
    try:
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise DataError(
            "tables of this kind are read by pyarrow: pip install 'ianvs[parquet]'.", code="missing-package"
        ) from None
    return pyarrow


def _folder_files(folder: Path) -> tuple[Path, ...]:
    """Of a folder of save_to_disk, or the parquet files of one split, as the hub has them."""
    if not (folder / _STATE).is_file():
        shards = sorted(shard for shard in folder.glob("*.parquet") if not is_of_tool(shard.name))
        tests = [shard for shard in shards if shard.name.startswith(_TESTS)]
        return () if len(tests) not in (0, len(shards)) else tuple(shards)
    try:
        listed = json.loads((folder / _STATE).read_text(encoding="utf-8"))["_data_files"]
        return tuple(folder / one["filename"] for one in listed)
    except (ValueError, KeyError, TypeError):
        return ()  # none of Hugging Face


@dataclass(frozen=True)
class _Held:
    """The samples of a table. x: an array, texts, paths as written, or records of conversations, which need no y."""

    form: str  # "arrays", "text", "paths", "conversations"
    x: Any
    y: list[Any]  # labels as text, or as they are for a data type to read
    domains: list[str]  # "" where none is written
    classes: tuple[str, ...] | None = None
    features: tuple[str, ...] = ()  # names of the columns of numbers in `x`
    row_ids: tuple[str, ...] = ()  # those whose name and values are those of a row number
    nameless: tuple[str, ...] = ()  # columns that are left out
    label_columns: tuple[str, ...] = ()  # names of the columns of `y`, where the dataset lists several


def _read(files: Sequence[Path], path: Path, spec: DatasetSpec) -> Listing:
    reading = files[0]

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        nonlocal reading
        for reading in files:
            yield from _opened(reading, _pyarrow())[1](columns)

    try:
        held = _held(_opened(reading, _pyarrow())[0], batches, path, spec)
    except SourceError:
        raise
    except DataError as error:
        raise SourceError([ValidationError.of(error, Location(path), "unreadable-data")]) from None
    except (ValueError, KeyError, OSError) as error:  # pyarrow's are among them
        said = f"{reading.name} can't be read by pyarrow ({first_line(error)})"
        raise SourceError(
            [ValidationError(f"{said}. Write it again.", Location(path), code="unreadable-data")]
        ) from None
    none = np.zeros(len(held.x), np.int64)
    y = np.array(held.y, np.float64) if held.label_columns else column(held.y)
    if held.form == "conversations":
        told = lambda i, slip: ValidationError(f"row {i + 1}: {slip.message}", Location(path), code="invalid-record")  # noqa: E731
        return conversations_listing(held.x, path, none.tolist(), told)
    if held.form == "paths":
        names = [""] * len(held.y) if spec.data_type else held.y
        found = replace(files_listing(path, spec, held.x, names, none, held.domains), classes=held.classes)
        return replace(found, labels=y, label_columns=held.label_columns) if spec.data_type else found
    if held.form == "text":
        return table_listing(Table(path, (), (), none), "text", column(held.x), "text", column(held.y), held.domains)
    arrays = {"x": held.x, "y": y if spec.data_type else np.array(held.y)} | (
        {"domain": np.array(held.domains)} if any(held.domains) else {}
    )
    called = dict.fromkeys(arrays, path.name)
    usual: Layout | None = "NHWC" if held.x.dtype == np.uint8 and held.x.shape[-1] == 3 else None  # as decoded
    listing = arrays_listing(
        arrays, path.stem, Location(path), called, held.classes, spec.layout, usual, type_name(spec)
    )
    listing = with_features(listing, held.features, held.row_ids, held.nameless)
    return replace(listing, label_columns=held.label_columns)


def _opened(path: Path, arrow: Any) -> tuple[Any, Batches]:
    """Its schema and batches; those of arrow files lie in a map of the file."""
    if path.suffix.lower() == ".parquet":
        parquet = arrow.parquet.ParquetFile(path)
        groups = range(parquet.num_row_groups)  # one by one: of several together more is in memory
        return parquet.schema_arrow, lambda columns: chain.from_iterable(
            parquet.iter_batches(_ROWS, row_groups=[group], columns=columns) for group in groups
        )
    source = arrow.memory_map(str(path))
    try:
        file = arrow.ipc.open_file(source)
        return file.schema, lambda columns: map(file.get_batch, range(file.num_record_batches))
    except arrow.ArrowInvalid:
        stream = arrow.ipc.open_stream(source)  # as Hugging Face writes it
        return stream.schema, lambda columns: stream


def _given(value: Any, what: str, spec: DatasetSpec) -> Returned | None:
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
        said = f"{type(value).__name__} has cells that pyarrow can't hold ({str(error.args[-1]).splitlines()[0]})"
        raise DataError(f"{said}. Return (x, y) arrays instead.", code="unreadable-data") from None
    held = _held(table.schema, lambda columns: table.select(columns).to_batches(), Path(what), spec)
    if held.form == "conversations":
        return held.x, None
    if held.form == "text":
        texts = zip(held.x, held.y, held.domains, strict=True)
        return [{TEXT_COLUMN: x, "answer": y} | ({DOMAIN_COLUMN: name} if name else {}) for x, y, name in texts], None
    if numbering := [*held.nameless, *held.row_ids]:
        message = (
            f"{what} has the column '{numbering[0]}', which looks like the number of the row. Return the table without "
            "it, or list the columns that are features by `input: [...]` in the dataset."
        )
        raise DataError(message, code="invalid-record")
    if held.label_columns:
        raise DataError(
            f"`label` lists columns of {what}. Return (x, y), y an array (N, C), and name their `classes`.",
            code="invalid-record",
        )
    return {"x": held.x, "y": held.y} | ({"domain": held.domains} if any(held.domains) else {}), held.classes


def _is_hugging_face(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "datasets"


def _splits(given: Mapping[str, object]) -> dict[str, object] | None:
    """Train and test of a DatasetDict; the first of `_TESTS` that it has, and no other split."""
    if not _is_hugging_face(given):
        return None
    if "train" not in given:
        raise DataError(
            f"a DatasetDict without 'train': it has {one_line(list(given))}. Return (train, test) of them.",
            code="missing-data",
        )
    tests = [given[name] for name in _TESTS if name in given]
    return {"train": given["train"]} | ({"test": tests[0]} if tests else {})


def _held(schema: Any, batches: Batches, path: Path, spec: DatasetSpec) -> _Held:
    """All samples of a table. path: what messages call it. Raises SourceError with the row of what is wrong."""
    features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}")).get("info", {}).get("features", {})
    classes = {name: tuple(one["names"]) for name, one in features.items() if "names" in one}
    index = (schema.pandas_metadata or {}).get("index_columns", [])  # of a data frame, which are no columns of it
    columns = tuple(name for name in schema.names if name not in index)

    def blocks(names: Sequence[str]) -> Iterator[dict[str, Any]]:
        for batch in batches(list(names)):
            for start in range(0, len(batch), _ROWS):
                yield {name: _values(batch.column(name).slice(start, _ROWS)) for name in names}

    first = next(blocks(columns), None)
    if first is None:
        raise SourceError([ValidationError("has no samples.", Location(path), code="empty-dataset")])
    head = Table(path, columns, _rows(first), (0,))
    domain = domain_column(head, spec)
    if spec.input is spec.label is None and holds_conversations(Records(path, tuple(head.rows), (), ()), spec):
        said = [row for block in blocks(columns) for row in _rows(block)]
        return _Held("conversations", [row | {DOMAIN_COLUMN: row[domain]} for row in said] if domain else said, [], [])
    labelled = label_columns(head, spec)
    label, several = labelled[0], isinstance(spec.label, tuple)
    listed = chosen_columns(head, spec, "input")
    others, nameless = (list(listed), []) if listed else feature_names(columns, (*labelled, domain))
    named = head.named([name for name in SAMPLE_COLUMNS if name not in map(str.casefold, labelled)])
    if isinstance(spec.input, str):
        sample: str | None = spec.input
    else:
        sample = None if listed or (named and _is_number(first[named])) else named
    odd = [name for name in others if not _is_number(first[name])]
    ids_in_words = [] if listed else [name for name in odd if may_number_rows(name)]
    if sample is None and odd and len(odd) == len(ids_in_words) < len(others):
        others, nameless = [name for name in others if name not in odd], [*nameless, *odd]
        odd = []
    if (sample is None and odd and (listed or (sample := head.named([TEXT_COLUMN])) is None)) or not others:
        raise SourceError([no_sample_column(head, others, (0, odd[0]) if odd else None)])
    labels: list[Any] = []
    domains: list[str] = []
    texts: list[str] = []
    doubtful: dict[str, list[Any]] = {name: [] for name in others if not listed and may_number_rows(name)}

    def samples() -> Iterator[NDArray[Any]]:
        inputs = others if sample is None else [sample]
        for block in blocks(list(dict.fromkeys([*inputs, *labelled, *([domain] if domain else [])]))):
            start = len(labels)
            if several:
                labels.extend(np.column_stack([_array(block[name], name, spec, path, start) for name in labelled]))
            elif spec.data_type:
                labels.extend(_listed(block[label]))  # the type reads them
            else:
                labels.extend(_names(block[label], label, classes.get(label), path, start))
            domains.extend(_names(block[domain], domain, classes.get(domain), path, start) if domain else [])
            if sample is not None and isinstance(first[sample][0], str):
                texts.extend(_names(block[sample], sample, None, path, start))
            else:
                arrays = [_array(block[name], name, spec, path, start) for name in inputs]
                for name in doubtful if sample is None else ():
                    doubtful[name].append(block[name])
                yield arrays[0] if sample is not None else np.column_stack(arrays).astype(np.float32, copy=False)

    x = _mapped(samples(), path)
    form = "arrays" if x is not None else "paths" if texts[0].lower().endswith(PICTURE_SUFFIXES) else "text"
    held = _Held(form, texts if x is None else x, labels, domains or [""] * len(labels), classes.get(label))
    if several:
        held = replace(held, label_columns=labelled, classes=None)
    if sample is not None:
        return held
    row_ids = tuple(name for name, values in doubtful.items() if identifies_rows(np.concatenate(values)))
    return replace(held, features=tuple(others), row_ids=row_ids, nameless=tuple(nameless))


def _mapped(blocks: Iterable[NDArray[Any]], path: Path) -> NDArray[Any] | None:
    """All blocks one after the other, in a map of a file that has no name; None without any."""
    kind, count = None, 0
    with tempfile.TemporaryFile() as file:
        for block in blocks:
            found = (block.dtype, block.shape[1:])
            kind = kind or found
            if found != kind:
                message = (
                    f"the sample is {found[0]} {found[1]}, in row 1 it is {kind[0]} {kind[1]}. Make them the same,"
                )
                raise _slip(path, count, f"{message} or pictures so by `image_size: [height, width]`.")
            block.tofile(file)
            count += len(block)
        file.flush()
        return None if kind is None else np.memmap(file, kind[0], "r", shape=(count, *kind[1]))


def _values(array: Any) -> Any:
    """(n, ...) numbers of a column, or a list: of texts, the bytes of picture files, or what json can hold."""
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


def _array(values: Any, name: str, spec: DatasetSpec, path: Path, start: int) -> NDArray[Any]:
    """(n, ...) of a block from row `start` on: uint8, of picture files (n, height, width, 3); others float32."""
    if isinstance(values, np.ndarray):
        return values if values.dtype == np.uint8 else values.astype(np.float32)
    pictures: list[NDArray[np.uint8]] = []
    empty = next((row for row, value in enumerate(values, start) if value is None), None)
    for row, value in enumerate(values, start) if empty is None else [(empty, None)]:
        if not isinstance(value, bytes):
            what = "is empty" if value is None else f"is a {type(value).__name__}"
            message = f"'{name}' {what}; expected a number, a list as long as the others, or a picture."
            raise _slip(path, row, message)
        try:
            pictures.append(decode_picture(str(path), spec.image_size, value, spec.value_range))
        except SourceError as broken:
            raise _slip(path, row, f"the picture in '{name}' {broken.problems[0].message}") from None
        if pictures[-1].shape != pictures[0].shape:
            sizes = " and ".join(f"{one.shape[0]}x{one.shape[1]}" for one in (pictures[0], pictures[-1]))
            message = f"the pictures in '{name}' differ in size, {sizes}. Set `image_size: [height, width]`."
            raise _slip(path, row, message)
    return np.stack(pictures)


def _names(values: Any, name: str, classes: Sequence[str] | None, path: Path, start: int) -> list[str]:
    """Labels, domains or texts of a block from row `start` on. classes: what numbers stand for."""
    told = []
    for row, value in enumerate(_listed(values), start):
        if classes is not None and isinstance(value, int):
            value = classes[value] if 0 <= value < len(classes) else None  # Hugging Face's -1 is no label
        if isinstance(value, list | dict | bytes):
            raise _slip(path, row, f"'{name}' is a {type(value).__name__}; expected one name or number.")
        told.append(sys.intern(token(value)))  # they come again and again
        if not told[-1]:
            raise _slip(path, row, f"the column '{name}' is empty.")
    return told


def _rows(block: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(block, row, strict=True)) for row in zip(*map(_listed, block.values()), strict=True)]


def _listed(values: Any) -> list[Any]:
    listed: list[Any] = values.tolist() if isinstance(values, np.ndarray) else values
    return listed


def _is_number(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.ndim == 1


def _slip(path: Path, row: int, message: str) -> SourceError:
    return SourceError([ValidationError(f"row {row + 1}: {message}", Location(path), code="invalid-record")])


FORMS = (TableForm((".parquet", ".arrow", ".feather"), _folder_files, _read, _given, _splits),)
