"""What an author's function returned (docs/add_a_dataset.md) -> plain files: arrays, paths, or conversations."""

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError, closest, one_line
from ianvs.exam.data.arrays import COLUMNS, plain_array
from ianvs.exam.data.sources import PARTS
from ianvs.exam.data.typed_labels import ReadLabels

CONVERSATIONS = "conversations.jsonl"
LABELS = "y.jsonl"
TENSORS = "tensors"  # a file that says that x held tensors, whose channels come first if nothing else tells
_WHOLE = 'expected {"train": ..., "test": ...}, or (train, test)'
_PART = 'expected (x, y), {"x": ..., "y": ...}, a torch Dataset, or a list of conversations'


def store_returned(
    returned: object, folder: Path, owner: str, read: ReadLabels | None = None
) -> tuple[str, ...] | None:
    """Write what `owner` returned to `folder`/train and `folder`/test; the classes that it named.

    A part is x.npy with y.npy, and perhaps ids.npy and domain.npy; x.npy holds numbers, or texts: paths of pictures.
    TENSORS lies beside it if these came as tensors. Or it is CONVERSATIONS, one a line. Raises DataError for anything
    else.

    read: of a data type that the testenv says; its labels that are no numbers are LABELS, one a line.
    """
    given = _parts(returned, owner)
    classes = given.get("classes")
    if classes is not None and (isinstance(classes, str) or not isinstance(classes, Collection) or not classes):
        raise DataError(f"classes is {_said(classes)}; expected a list of names, in the order of their indices.")
    names = None if classes is None else tuple(map(str, classes))
    for part in PARTS:
        (folder / part).mkdir()

        def labels(y: object, where: str) -> NDArray[Any]:
            nonlocal names
            if read is None:
                return _labels(y, where)
            try:
                array, names = read(y, names)
            except ValueError as error:
                raise DataError(f"{where}: {error}") from None
            return array

        _store(given[part], folder / part, part, labels)
    return names


def _parts(returned: object, owner: str) -> Mapping[str, object]:
    known = (*PARTS, "classes")
    if isinstance(returned, Mapping):
        given: Mapping[str, object] = returned
    elif isinstance(returned, tuple) and len(returned) == 2:
        given = dict(zip(PARTS, returned, strict=True))
    elif all(hasattr(returned, part) for part in PARTS):
        given = {name: getattr(returned, name) for name in known if hasattr(returned, name)}
    else:
        raise DataError(f"{owner} returned {_said(returned)}; {_WHOLE}, where each part is (x, y) or the like.")
    _refuse_keys(given, known, PARTS, f"what {owner} returned", _WHOLE)
    return given


def _refuse_keys(
    given: Mapping[str, object], known: Sequence[str], needed: Sequence[str], what: str, expected: str
) -> None:
    for key in given:
        if key not in known:
            raise DataError(f"{what} has '{key}', which means nothing; {expected}.{closest(str(key), known)}")
    for key in needed:
        if key not in given:
            raise DataError(f"{what} has no '{key}', only {one_line(list(given)) or 'nothing'}; {expected}.")


def _store(value: object, folder: Path, part: str, labels: Callable[[object, str], NDArray[Any]]) -> None:
    given: dict[str, Any]
    if isinstance(value, Mapping):
        given = dict(value)
        _refuse_keys(given, COLUMNS, ("x",), part, _PART)
    elif isinstance(value, tuple) and len(value) in (2, 3) and not isinstance(value[0], Mapping):
        given = dict(zip(("x", "y", "domain"), value, strict=False))
    else:
        given = {"x": value}
    x = given.pop("x")
    if "y" in given:
        _save_labels(folder, labels(given.pop("y"), f"y of {part}"))
        _store_x(x, folder, f"x of {part}")
    elif not _is_sequence(x):
        raise DataError(f"{part} is {_said(x)}; {_PART}.")
    elif not len(x):
        raise DataError(f"{part} is empty; expected at least one sample.")
    elif isinstance(x[0], Mapping):
        if given:
            raise DataError(f"{part} has {one_line(list(given))} beside conversations, which name their own `domain`.")
        records = [x[i] for i in range(len(x))]
        try:
            lines = [json.dumps(record, sort_keys=True) for record in records]
        except (TypeError, ValueError) as error:
            raise DataError(f"the conversations of {part} can't be written as json ({error}).") from None
        (folder / CONVERSATIONS).write_text("\n".join(lines) + "\n")
    else:
        given = _store_pairs(x, folder, part, labels) | given
    for key, names in given.items():
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise DataError(f"{key} of {part} is {_said(names)}; expected a name for each sample.")
        _save(folder / f"{key}.npy", np.array([str(name) for name in names], dtype=str))


def _store_pairs(
    samples: Any, folder: Path, part: str, labels: Callable[[object, str], NDArray[Any]]
) -> dict[str, list[Any]]:
    """x and y of a map-style dataset, one sample at a time; the domains, if it gives some."""
    given: list[object] = []
    domains: list[object] = []

    def inputs() -> Iterable[object]:
        for i in range(len(samples)):
            pair = samples[i]
            if not (isinstance(pair, tuple | list) and len(pair) in (2, 3)):
                raise DataError(f"{part}[{i}] is {_said(pair)}; expected (sample, label), or (sample, label, domain).")
            given.append(pair[1])
            domains.extend(pair[2:])
            yield pair[0]

    _write_x(inputs(), len(samples), folder, part)
    _save_labels(folder, labels(given, f"the labels of {part}"))
    return {"domain": domains} if domains else {}


def _store_x(x: Any, folder: Path, where: str) -> None:
    if not isinstance(x, list | tuple):
        _mark(x, folder)
        x = _plain(x, where)
        if x.dtype.kind != "O":  # objects: a column of a table
            _save(folder / "x.npy", x if x.dtype.kind == "U" else _numbers(x, where))
            return
    _write_x(x, len(x), folder, where)


def _write_x(samples: Iterable[object], count: int, folder: Path, where: str) -> None:
    """One array of all samples, written while they come; or their paths."""
    paths: list[str] = []
    written: np.memmap[Any, Any] | None = None
    for i, sample in enumerate(samples):
        if isinstance(sample, str | os.PathLike):
            paths.append(os.fspath(sample))
            continue
        _mark(sample, folder)
        pixels = _numbers(_pixels(sample, f"{where}[{i}]"), f"{where}[{i}]")
        if written is None:
            written = np.lib.format.open_memmap(folder / "x.npy", "w+", pixels.dtype, (count, *pixels.shape))
        if pixels.shape != written.shape[1:] or pixels.dtype != written.dtype:
            message = f"{where}[{i}] is {_said(pixels)}, {where}[0] is {_said(written[0])}. All samples have one shape:"
            raise DataError(f"{message} resize them, or return paths of pictures and set `image_size` in the dataset.")
        written[i] = pixels
    if paths and written is not None:
        raise DataError(f"{where} holds both paths and numbers; expected one of them.")
    if written is None:
        _save(folder / "x.npy", np.array(paths, dtype=str))
    else:
        written.flush()


def _pixels(sample: Any, where: str) -> NDArray[Any]:
    """An array of one sample. Of a PIL picture: grey or RGB."""
    if hasattr(sample, "getbands"):
        return np.asarray(sample if sample.mode in ("L", "RGB") else sample.convert("RGB"))
    return _plain(sample, where)


def _mark(x: object, folder: Path) -> None:
    if hasattr(x, "detach"):
        (folder / TENSORS).touch()


def _numbers(array: NDArray[Any], where: str) -> NDArray[Any]:
    """uint8 as it is, other numbers as float32."""
    if array.dtype.kind not in "iufb":
        raise DataError(f"{where} is {_said(array)}; expected numbers, or paths of pictures.")
    return array if array.dtype == np.uint8 else array.astype(np.float32, copy=False)


def _labels(labels: object, where: str) -> NDArray[Any]:
    """(N,) int64 or texts (names, or paths of label pictures), or (N, height, width) label pictures."""
    if isinstance(labels, list | tuple):
        labels = [_label(label) for label in labels]
    array = _plain(labels, where)
    if array.dtype == object:
        array = _plain([_label(label) for label in array.tolist()], where)
    if array.dtype.kind not in "iu":
        return array
    return array.astype(np.uint8 if array.ndim > 2 and array.min() >= 0 and array.max() <= 255 else np.int64)


def _label(label: object) -> object:
    if isinstance(label, os.PathLike):
        return os.fspath(label)
    if hasattr(label, "getbands"):
        return np.asarray(label)
    if hasattr(label, "item") and getattr(label, "shape", None) in ((), (1,)):
        return label.item()
    return plain_array(label) if hasattr(label, "detach") else label


def _plain(value: object, where: str) -> NDArray[Any]:
    try:
        return plain_array(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{where} is {_said(value)}, which is no array ({error}).") from None


def _is_sequence(value: object) -> bool:
    array = isinstance(value, np.ndarray) or hasattr(value, "detach")
    return not array and not isinstance(value, str) and hasattr(value, "__len__") and hasattr(value, "__getitem__")


def _save_labels(folder: Path, labels: NDArray[Any]) -> None:
    if labels.dtype != object:
        _save(folder / "y.npy", labels)
        return
    (folder / LABELS).write_text("".join(f"{json.dumps(one)}\n" for one in labels.tolist()))


def _save(file: Path, array: NDArray[Any]) -> None:
    np.save(file, np.ascontiguousarray(array), allow_pickle=False)


def _said(value: object) -> str:
    """A value in a few words, for messages."""
    if value is None or isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, Mapping):
        return f"a mapping with {one_line([repr(key) for key in value]) or 'nothing in it'}"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"{getattr(value, 'dtype', type(value).__name__)} {tuple(shape)}"
    return f"'{value}'" if isinstance(value, str) and len(value) <= 40 else f"{type(value).__name__}"
