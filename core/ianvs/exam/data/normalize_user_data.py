"""Stores the return value of a user's function (docs/extending.md#a-dataset) as plain files: arrays, paths,
conversations.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError, closest, code_of, one_line
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.array_names import KEYS
from ianvs.exam.data.conversations import holds_conversations
from ianvs.exam.data.file_formats import all_formats
from ianvs.exam.data.grids import LABEL_COLUMNS, SAMPLE_COLUMNS, Grid, chosen_column, domain_column, label_column
from ianvs.exam.data.records import Records
from ianvs.exam.data.sources import PARTS, split_by_share
from ianvs.exam.data.typed_labels import ReadLabels
from ianvs.exam.data.user_values import in_words, to_array, to_labels, to_numbers, to_pixels

CONVERSATIONS = "conversations.jsonl"
LABELS = "y.jsonl"
TENSORS = "tensors"  # a file that marks that x held tensors, whose channels come first unless detected otherwise
Read = Callable[[object, str], NDArray[Any]]  # labels, and their name in errors
_WHOLE = 'expected {"train": ..., "test": ...}, or (train, test)'
_PART = 'expected (x, y), {"x": ..., "y": ...}, a torch Dataset, a table, or a list of conversations'
_COLUMN = "column-"  # prefix of files of further columns


def store_returned(
    returned: object, folder: Path, owner: str, spec: DatasetSpec, read: ReadLabels | None = None
) -> tuple[str, ...] | None:
    """Write what `owner` returned to `folder`/train and `folder`/test. Returns the classes that it, or its table,
    names.

    A part is x.npy with y.npy, and perhaps ids.npy and domain.npy; x.npy holds numbers or strings, the paths of images.
    TENSORS is beside it if these were tensors. Or a part is CONVERSATIONS, one per line, if strings have a question and
    an answer.

    Args:
        returned: The return value of the function.
        folder: Folder for the files.
        owner: The function's name, for messages.
        spec: Names of columns of tables, and the share of the training part that becomes the test part.
        read: Reads labels of the testenv's data type; labels that are no numbers are LABELS, one per line.

    Raises:
        DataError: For anything else.
    """
    given = _parts(returned, owner, spec)
    classes = given.get("classes")
    if classes is not None and (isinstance(classes, str) or not isinstance(classes, Collection) or not classes):
        raise DataError(
            f"classes is {in_words(classes)}; expected a list of names, in the order of their indices.",
            code="invalid-result",
        )
    names = None if classes is None else tuple(map(str, classes))

    def labels(y: object, where: str) -> NDArray[Any]:
        nonlocal names
        if read is None:
            return to_labels(y, where)
        try:
            array, names = read(y, names)
        except ValueError as error:
            raise DataError(f"{where}: {error}", code=code_of(error, "invalid-result")) from None
        return array

    of_table: dict[str, tuple[str, ...] | None] = {}
    for part in PARTS:
        (folder / part).mkdir()
        if part in given:
            of_table[part] = _store(given[part], folder / part, part, spec, labels)
    if spec.test_share is not None:
        _move_test_share(folder / "train", folder / "test", spec)
    return of_table["train"] if names is None else names


def _parts(returned: object, owner: str, spec: DatasetSpec) -> Mapping[str, object]:
    names = (*PARTS, "classes")
    share = spec.test_share is not None
    if isinstance(returned, Mapping) and not (share and "train" not in returned):
        splits = (file_format.splits(returned) for file_format in all_formats() if file_format.splits is not None)
        given: Mapping[str, object] = next((split for split in splits if split is not None), returned)
    elif share and not isinstance(returned, tuple) and not hasattr(returned, "test"):
        given = {"train": returned}
    elif isinstance(returned, tuple) and len(returned) == 2:
        given = dict(zip(PARTS, returned, strict=True))
    elif all(hasattr(returned, part) for part in PARTS):
        given = {name: getattr(returned, name) for name in names if hasattr(returned, name)}
    else:
        raise DataError(
            f"{owner} returned {in_words(returned)}; {_WHOLE}, where each part is (x, y) or the like.",
            code="invalid-result",
        )
    if share and "test" in given:
        raise DataError(
            f"{owner} returned a test part, and `test_share` would make another one. Keep one of them.",
            code="conflicting-keys",
        )
    needed = ("train",) if share else PARTS
    _refuse_keys(given, names, needed, f"what {owner} returned", f"{_WHOLE}, or `test_share` in the dataset")
    return given


def _refuse_keys(
    given: Mapping[str, object], names: Sequence[str], needed: Sequence[str], owner: str, expected: str
) -> None:
    for key in given:
        if key not in names:
            raise DataError(
                f"{owner} has '{key}', which means nothing; {expected}.{closest(str(key), names)}",
                code="invalid-result",
            )
    for key in needed:
        if key not in given:
            raise DataError(
                f"{owner} has no '{key}', only {one_line(list(given)) or 'nothing'}; {expected}.", code="invalid-result"
            )


def _store(value: object, folder: Path, part: str, spec: DatasetSpec, read: Read) -> tuple[str, ...] | None:
    """Write one part. Returns the classes that a table names."""
    given: dict[str, Any]
    if isinstance(value, Mapping):
        given = dict(value)
        _refuse_keys(given, (*KEYS, "columns"), ("x",), part, _PART)
        _store_columns(given.pop("columns", {}), folder, part)
    elif isinstance(value, tuple) and len(value) in (2, 3) and not isinstance(value[0], Mapping):
        given = dict(zip(("x", "y", "domain"), value, strict=False))
    else:
        given = {"x": value}
    x = given.pop("x")
    tables = (
        (file_format.given(x, part, spec) for file_format in all_formats() if file_format.given is not None)
        if not given
        else ()
    )
    if (table := next(filter(None, tables), None)) is not None:
        _store(table[0], folder, part, DatasetSpec(), read)
        return table[1]
    if "y" in given:
        _save_labels(folder, read(given.pop("y"), f"y of {part}"))
        _store_x(x, folder, f"x of {part}", spec)
    elif not _is_sequence(x):
        endless = "" if x is None or hasattr(x, "__len__") else ", which has no length: return a list of its samples"
        raise DataError(f"{part} is {in_words(x)}{endless}; {_PART}.", code="invalid-result")
    elif not len(x):
        raise DataError(f"{part} is empty; expected at least one sample.", code="empty-dataset")
    elif isinstance(first := x[0], Mapping) and (keys := _keys(first, part, spec)) is None:
        if given:
            raise DataError(
                f"{part} has {one_line(list(given))} beside conversations, which name their own `domain`.",
                code="invalid-result",
            )
        records = [x[i] for i in range(len(x))]
        try:
            lines = [json.dumps(record, sort_keys=True) for record in records]
        except (TypeError, ValueError) as error:
            remedy = (
                f"{one_line(SAMPLE_COLUMNS)}, or the key that `input` names in the dataset; found {in_words(first)}"
            )
            message = f"the conversations of {part} can't be written as json ({error}). If they are none, expected"
            raise DataError(f"{message} {remedy}.", code="invalid-result") from None
        (folder / CONVERSATIONS).write_text("\n".join(lines) + "\n")
    else:
        named = keys if isinstance(first, Mapping) else None
        given = _store_pairs(x, folder, part, named, read, spec) | given
    for key, names in given.items():
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise DataError(
                f"{key} of {part} is {in_words(names)}; expected a name for each sample.", code="invalid-result"
            )
        _save(folder / f"{key}.npy", np.array([str(name) for name in names], dtype=str))
    return None


def _store_columns(columns: object, folder: Path, part: str) -> None:
    """Write further columns of the samples, for metrics that use them."""
    if not isinstance(columns, Mapping) or not all(isinstance(name, str) and name.isidentifier() for name in columns):
        raise DataError(
            f"columns of {part} is {in_words(columns)}; expected a mapping of names, such as `weight`, to a value for "
            "each sample.",
            code="invalid-result",
        )
    for name, values in columns.items():
        array = to_array(values, f"column '{name}' of {part}")
        if array.dtype.kind not in "iufbU" or not array.ndim:
            raise DataError(
                f"column '{name}' of {part} is {in_words(array)}; expected a number or a text for each sample.",
                code="invalid-result",
            )
        _save(folder / f"{_COLUMN}{name}.npy", array)


def stored_columns(folder: Path) -> dict[str, NDArray[Any]]:
    """Return what `_store_columns` wrote to a part's folder."""
    files = sorted(folder.glob(f"{_COLUMN}*.npy"))
    return {file.stem.removeprefix(_COLUMN): np.load(file, mmap_mode="r") for file in files}


def _keys(sample: Mapping[str, Any], part: str, spec: DatasetSpec) -> list[str] | None:
    """Return the keys of input, label and perhaps domain in samples that are dicts; None for conversations."""
    head = Grid(Path(part), tuple(sample))
    named = chosen_column(head, spec, "input")
    if named is None and spec.label is None and holds_conversations(Records(head.path, (sample,), (), ()), spec):
        return None
    sample_key = named or head.named(SAMPLE_COLUMNS)
    if sample_key is None or (
        isinstance(sample[sample_key], str) and spec.label is None and not head.named(LABEL_COLUMNS)
    ):
        return None
    domain = domain_column(head, spec)
    return [sample_key, label_column(head, spec), *([domain] if domain else [])]


def _move_test_share(train: Path, test: Path, spec: DatasetSpec) -> None:
    """Move the test share of the samples in `train` to `test`."""
    arrays = {file.name: np.load(file) for file in train.glob("*.npy")}
    texts = {file.name: file.read_text().splitlines(keepends=True) for file in train.glob("*.jsonl")}
    lines = texts.get(CONVERSATIONS, [])
    domains = np.array([str(json.loads(line).get("domain", "")) for line in lines] or [""] * len(arrays["x.npy"]))
    domains, labels = arrays.get("domain.npy", domains), arrays.get("y.npy", np.zeros(0))
    classes = labels.ndim == 1 and labels.dtype.kind != "f"  # otherwise there are no classes to stratify by
    shared = split_by_share(labels.tolist(), classes, domains.tolist(), spec)
    for folder, taken in zip((train, test), shared, strict=True):
        for name, array in arrays.items():
            _save(folder / name, array[taken])
        for name, entries in texts.items():
            (folder / name).write_text("".join(entries[index] for index in taken))
    if (train / TENSORS).exists():
        (test / TENSORS).touch()


def _store_pairs(
    samples: Any, folder: Path, part: str, keys: Sequence[str] | None, read: Read, spec: DatasetSpec
) -> dict[str, list[Any]]:
    """Write x and y of a map-style dataset, one sample at a time. Returns the domains, if it has some. keys: of
    dicts.
    """
    given: list[object] = []
    domains: list[object] = []

    def inputs() -> Iterable[object]:
        for i in range(len(samples)):
            pair = samples[i]
            if keys is not None and isinstance(pair, Mapping):
                if lacking := [key for key in keys if key not in pair]:
                    raise DataError(
                        f"{part}[{i}] has no '{lacking[0]}', only {one_line(list(pair))}.", code="missing-column"
                    )
                pair = [pair[key] for key in keys]
            if not (isinstance(pair, tuple | list) and len(pair) in (2, 3)):
                raise DataError(
                    f"{part}[{i}] is {in_words(pair)}; expected (sample, label), or (sample, label, domain).",
                    code="invalid-result",
                )
            given.append(pair[1])
            domains.extend(pair[2:])
            yield pair[0]

    _write_x(inputs(), len(samples), folder, part, spec)
    _save_labels(folder, read(given, f"the labels of {part}"))
    return {"domain": domains} if domains else {}


def _store_x(x: Any, folder: Path, where: str, spec: DatasetSpec) -> None:
    if not isinstance(x, list | tuple):
        _mark(x, folder)
        x = to_array(x, where)
        if x.dtype.kind != "O":  # objects are a column of a table
            _save(folder / "x.npy", x if x.dtype.kind == "U" else to_numbers(x, where))
            return
    _write_x(x, len(x), folder, where, spec)


def _write_x(samples: Iterable[object], count: int, folder: Path, where: str, spec: DatasetSpec) -> None:
    """Write one array of all samples as they come, or their paths."""
    paths: list[str] = []
    written: np.memmap[Any, Any] | None = None
    for i, sample in enumerate(samples):
        if isinstance(sample, str | os.PathLike):
            paths.append(os.fspath(sample))
            continue
        _mark(sample, folder)
        pixels = to_numbers(to_pixels(sample, f"{where}[{i}]", spec), f"{where}[{i}]")
        if written is None:
            written = np.lib.format.open_memmap(folder / "x.npy", "w+", pixels.dtype, (count, *pixels.shape))
        picture = hasattr(sample, "getbands")
        if picture and pixels.ndim == 2 and written.ndim == 4:
            pixels = np.stack([pixels] * 3, axis=-1)
        elif picture and pixels.ndim == 3 and written.ndim == 3:  # the first colour image after grey ones
            written = _to_three_channels(written, i, folder)
        if pixels.shape != written.shape[1:] or pixels.dtype != written.dtype:
            forms = f"{where}[{i}] is {in_words(pixels)}, {where}[0] is {in_words(written[0])}"
            message = f"{forms}. All samples have one shape:"
            remedy = "resize them, or return PIL images or paths of images and set `image_size` in the dataset"
            if picture:
                remedy = "set `image_size: [height, width]` in the dataset"
            raise DataError(f"{message} {remedy}.", code="mismatched-data")
        written[i] = pixels
    if paths and written is not None:
        raise DataError(f"{where} holds both paths and numbers; expected one of them.", code="invalid-result")
    if written is None:
        _save(folder / "x.npy", np.array(paths, dtype=str))
    else:
        written.flush()


def _to_three_channels(grey: np.memmap[Any, Any], count: int, folder: Path) -> np.memmap[Any, Any]:
    """Convert the first `count` images from one channel to three."""
    part = folder / "x.part"
    coloured = np.lib.format.open_memmap(part, "w+", grey.dtype, (*grey.shape, 3))
    for i in range(count):
        coloured[i] = grey[i][..., None]
    part.replace(folder / "x.npy")
    return coloured


def _mark(x: object, folder: Path) -> None:
    if hasattr(x, "detach"):
        (folder / TENSORS).touch()


def _is_sequence(value: object) -> bool:
    array = isinstance(value, np.ndarray) or hasattr(value, "detach")
    return not array and not isinstance(value, str) and hasattr(value, "__len__") and hasattr(value, "__getitem__")


def _save_labels(folder: Path, labels: NDArray[Any]) -> None:
    if labels.dtype != object:
        _save(folder / "y.npy", labels)
        return
    (folder / LABELS).write_text("".join(f"{json.dumps(label)}\n" for label in labels.tolist()))


def _save(file: Path, array: NDArray[Any]) -> None:
    np.save(file, np.ascontiguousarray(array), allow_pickle=False)
