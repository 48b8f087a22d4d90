"""Tables in Apache Arrow's forms: parquet, arrow and feather files, data frames, and Hugging Face datasets.

A folder of `Dataset.save_to_disk` is read by pyarrow alone. What Hugging Face adds to a table's schema tells the names
of classes; pictures are structs of a file's bytes and its path.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ianvs.base.errors import DataError, one_line
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.table_forms import Held, TableForm
from ianvs.testenv.datasets.table_blocks import Blocks, read_blocks

__all__ = ["FORMS"]

SUFFIXES = (".parquet", ".arrow", ".feather")
_STATE = "state.json"  # of a folder of save_to_disk
_ROWS = 4096  # of a block
_TESTS = ("test", "validation", "val", "valid")  # splits that can be the test part, the first that is there


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise DataError("tables of this kind are read by pyarrow: pip install 'ianvs[parquet]'.") from None
    return pyarrow


def _folder_files(folder: Path) -> tuple[Path, ...]:
    if not (folder / _STATE).is_file():
        return ()
    try:
        listed = json.loads((folder / _STATE).read_text(encoding="utf-8"))["_data_files"]
        return tuple(folder / one["filename"] for one in listed)
    except (ValueError, KeyError, TypeError):
        raise DataError(f"its {_STATE} is not one of Dataset.save_to_disk. Save the dataset again.") from None


def _read(files: Sequence[Path], path: Path, spec: DatasetSpec) -> Held:
    arrow = _pyarrow()

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        for file in files:
            reading[0] = file
            yield from _file(file, arrow)[1](columns)

    reading = [files[0]]
    try:
        return read_blocks(_blocks(_file(files[0], arrow)[0], batches), path, spec)
    except (arrow.ArrowException, OSError, KeyError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{reading[0].name} can't be read by pyarrow ({said}). Write it again.") from None


def _file(path: Path, arrow: Any) -> tuple[Any, Callable[[Sequence[str]], Iterator[Any]]]:
    """Its schema, and what reads its batches; those of arrow files have all columns, in a map of the file."""
    if path.suffix.lower() == ".parquet":
        parquet = arrow.parquet.ParquetFile(path)
        return parquet.schema_arrow, lambda columns: parquet.iter_batches(_ROWS, columns=columns)
    source = arrow.memory_map(str(path))
    try:
        held = arrow.ipc.open_file(source)
        return held.schema, lambda columns: map(held.get_batch, range(held.num_record_batches))
    except arrow.ArrowInvalid:
        stream = arrow.ipc.open_stream(source)  # as Hugging Face writes it
        return stream.schema, lambda columns: iter(stream)


def _given(value: Any, path: Path, spec: DatasetSpec) -> Held | None:
    ours = _is_hugging_face(value)
    if not ours and not hasattr(value, "__arrow_c_stream__"):
        return None
    arrow = _pyarrow()
    if ours and not hasattr(value, "__len__"):
        raise DataError("a Hugging Face dataset that streams has no length. Load it without `streaming=True`.")
    try:
        table = None if ours else arrow.table(value)
    except (arrow.ArrowException, TypeError, ValueError) as error:
        said = str(error).splitlines()[0]
        message = f"{type(value).__name__} has cells that pyarrow can't hold ({said}). Return (x, y) arrays instead."
        raise DataError(message) from None

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        if table is not None:
            yield from table.select(columns).to_batches()
            return
        for block in value.select_columns(columns).with_format("arrow").iter(_ROWS):
            yield from block.combine_chunks().to_batches()

    return read_blocks(_blocks(value.features.arrow_schema if table is None else table.schema, batches), path, spec)


def _is_hugging_face(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "datasets"


def _splits(given: Mapping[str, object]) -> dict[str, object] | None:
    """Train and test of a DatasetDict; the first of `_TESTS` that it has, and no other split."""
    if not _is_hugging_face(given):
        return None
    if "train" not in given:
        raise DataError(f"a DatasetDict without 'train': it has {one_line(list(given))}. Return (train, test) of them.")
    test = next((name for name in _TESTS if name in given), None)
    return {"train": given["train"]} | ({} if test is None else {"test": given[test]})


def _blocks(schema: Any, batches: Any) -> Blocks:
    """batches: of the columns that are asked for, RecordBatches of any length."""
    index = {name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)}
    features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}")).get("info", {}).get("features", {})
    kinds = {name: told for name, told in features.items() if isinstance(told, dict)}
    classes = {name: tuple(told["names"]) for name, told in kinds.items() if told.get("_type") == "ClassLabel"}

    def read(columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        for batch in batches(list(columns)):
            for start in range(0, len(batch), _ROWS):
                part = batch.slice(start, _ROWS)
                yield {name: _values(part.column(name)) for name in columns}

    return Blocks(tuple(name for name in schema.names if name not in index), read, classes)


def _values(array: Any) -> Any:
    """Of one column, as `Blocks` has them."""
    arrow = _pyarrow()
    types = arrow.types
    if isinstance(array, arrow.DictionaryArray):
        array = array.dictionary_decode()
    if isinstance(array, arrow.ExtensionArray):
        array = array.storage
    if types.is_decimal(array.type):
        array = array.cast(arrow.float64())
    if types.is_struct(array.type) and {field.name for field in array.type} == {"bytes", "path"}:
        return [
            None if cell is None else cell["path"] if cell["bytes"] is None else cell["bytes"]
            for cell in array.to_pylist()
        ]
    numbers = _numbers(array, arrow)
    return array.to_pylist() if numbers is None else numbers


def _numbers(array: Any, arrow: Any) -> Any:
    """An (n, ...) array of numbers, or of lists of numbers that are equally long; None for others."""
    import pyarrow.compute

    types, shape = arrow.types, [len(array)]
    while not array.null_count and (types.is_list(array.type) or types.is_large_list(array.type)):
        lengths = pyarrow.compute.min_max(pyarrow.compute.list_value_length(array)).as_py()
        if lengths["min"] != lengths["max"]:
            return None
        shape.append(lengths["min"] or 0)
        array = array.flatten()
    if not array.null_count and types.is_fixed_size_list(array.type):
        shape.append(array.type.list_size)
        array = array.flatten()
    plain = types.is_integer(array.type) or types.is_floating(array.type) or types.is_boolean(array.type)
    return array.to_numpy(zero_copy_only=False).reshape(shape) if plain and not array.null_count else None


FORMS = (TableForm(SUFFIXES, _folder_files, _read, _given, _splits),)
