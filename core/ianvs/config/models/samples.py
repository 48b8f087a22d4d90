"""Where a dataset's samples come from: files of several forms, and which of them go together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, ValidationInfo

from ianvs.config.models.base import (
    ByForm,
    ListForm,
    MappingForm,
    Slip,
    TextForm,
    at,
    entries,
    found_path,
    path_text,
    repeated,
)
from ianvs.config.paths import Lookup, Want
from ianvs.config.strict_yaml import Steps
from ianvs.errors import closest, one_line

__all__ = [
    "FORMS",
    "DataFiles",
    "IndexFiles",
    "InfoFiles",
    "LegacyFiles",
    "Root",
    "conflicting_sources",
    "legacy_form",
]

FORMS = {"index": "index", "data": "data", "data_info": "data", "url": None}
"""Endings of the keys `train_*`, `test_*`, and the form of what they name; None: told by the file's suffix."""

_INDEX_SUFFIXES = (".txt", ".csv", ".json")
_DATA_SUFFIXES = (".jsonl", ".npz", ".npy")


def legacy_form(path: Path) -> str | None:
    """ "index" or "data" for the path of a `train_url`, by its suffix; None if the suffix does not tell."""
    if path.suffix in _INDEX_SUFFIXES:
        return "index"
    return "data" if path.suffix in _DATA_SUFFIXES or path.is_dir() else None


def _root(value: Any, info: ValidationInfo) -> Path | None:
    lookup: Lookup | None = info.context
    if lookup and lookup.root:
        return lookup.root
    if value is None:
        return None
    if lookup and info.data.get("download"):
        try:
            return lookup.find(path_text(value), "folder")
        except ValueError:
            return lookup.plain(path_text(value))  # the download makes it
    return found_path(value, info, "folder")


def _samples(value: Any, info: ValidationInfo, want: Want) -> Path:
    root = info.data.get("root", _WRONG)
    if root is _WRONG or (root and not root.is_dir()):  # what lies below a wrong root can't be judged
        return Path(path_text(value))
    return found_path(value, info, want, below=root)


def _index(value: Any, info: ValidationInfo) -> Path:
    return _samples(value, info, "file")


def _data(value: Any, info: ValidationInfo) -> Path:
    return _samples(value, info, "any")


def _legacy(value: Any, info: ValidationInfo) -> Path:
    path = _samples(value, info, "any")
    if legacy_form(path) is None and path.exists():
        key = str(info.field_name).removesuffix("_url")
        raise ValueError(f"whether '{value}' is an index is not clear. Write {key}_index or {key}_data.")
    return path


Root = Annotated[Path | None, BeforeValidator(_root)]

_WRONG = object()

T = TypeVar("T")
_Several = Annotated[
    Annotated[T, TextForm]
    | Annotated[list[T], Field(min_length=1), ListForm]
    | Annotated[dict[str, T], Field(min_length=1), MappingForm],
    ByForm,
]
IndexFiles = _Several[Annotated[Path, BeforeValidator(_index)]]
"""A path, a list of paths, or a mapping from domains to paths."""
DataFiles = _Several[Annotated[Path, BeforeValidator(_data)]]
InfoFiles = _Several[Annotated[Path, BeforeValidator(_index)]]
LegacyFiles = _Several[Annotated[Path, BeforeValidator(_legacy)]]


def conflicting_sources(testenv: Any, known: Iterable[str]) -> Iterator[Slip]:
    """What is wrong with the keys of `dataset` taken together. `known` are all its keys."""
    dataset = at(testenv, "dataset")
    if not isinstance(dataset, dict):
        return
    train, test = ([f"{part}_{end}" for end in FORMS if dataset.get(f"{part}_{end}")] for part in ("train", "test"))
    for given in (train, test):
        for key in given[1:]:
            yield Slip(f"{given[0]} and {key} are both given. Keep one.", ("dataset", key))
    if dataset.get("name") is not None:
        for key in train[:1] + test[:1]:
            message = f"dataset has a name, which brings its own data, and {key}. Keep one of them."
            yield Slip(message, ("dataset", key))
    elif not any(closest(key, known) for key in dataset.keys() - set(known)):  # else the slip is that key
        yield from _missing(train, test)
    yield from _using(testenv, dataset, train)


def _missing(train: list[str], test: list[str]) -> Iterator[Slip]:
    if not train and not test:
        message = "dataset names no data. Give the name of a built-in source, or train_index and test_index"
        yield Slip(f"{message} (train_data and test_data for files that hold the samples).", ("dataset",))
    elif not test:
        yield Slip(f"{train[0]} is given and no test data. Add test_index or test_data.", ("dataset", train[0]))
    elif not train:
        yield Slip(f"{test[0]} is given and no training data. Add train_index or train_data.", ("dataset", test[0]))


def _using(testenv: Any, dataset: dict[str, Any], train: list[str]) -> Iterator[Slip]:
    if dataset.get("using") and at(testenv, "using"):
        yield Slip("using is given in dataset and in testenv. Keep one.", ("using",))
    domains = dataset.get(train[0]) if train else None
    for path in (("dataset", "using"), ("using",)):
        value = at(testenv, *path)
        words: list[tuple[Steps, Any]] = list(entries(testenv, *path))
        if isinstance(value, str):
            words = [(path, word) for word in value.replace(",", " ").split()]
        yield from repeated("domain", words, "Name it once.")
        for where, word in words:
            if isinstance(domains, dict) and isinstance(word, str) and word not in domains:
                hint = closest(word, domains) or f" There are: {one_line(list(domains))}."
                yield Slip(f"domain '{word}' is not in {train[0]}.{hint}", where, key=False)
