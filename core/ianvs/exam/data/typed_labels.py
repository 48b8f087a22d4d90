"""Labels of the testenv's data type (`data_type`), which reads them itself."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Location, PluginError, ValidationError, one_line
from ianvs.config.spec import DatasetSpec, DataTypeSpec
from ianvs.exam.data.cells import CLASS_INDEX
from ianvs.exam.data.label_cells import DOCUMENTED, NO_SEPARATOR, UnclearLabelsError, split_labels
from ianvs.exam.data.listing import Listing, SourceError, column, data_warning
from ianvs.plugins.loader import load_once
from ianvs.plugins.source import source_of

DATA_TYPES = "ianvs.data_types"  # ianvs.exam.data_types.ENTRY_POINTS, which builds on this package
Parts = tuple[Listing, Listing]  # training, test
ReadLabels = Callable[[object, tuple[str, ...] | None], tuple[NDArray[Any], tuple[str, ...]]]
"""Converts returned labels to the column `y` and the class names. Raises ValueError."""


class LabelReader(Protocol):
    """The methods of a data type that read labels."""

    several_labels: bool
    read: ReadLabels


def label_reader(type_spec: DataTypeSpec) -> LabelReader:
    """Return the data type. Raises PluginError."""
    reader: LabelReader = load_once(type_url(type_spec), type_spec.name, DATA_TYPES).target()
    return reader


def read_typed_labels(parts: Parts, spec: DatasetSpec) -> Parts:
    """Return the parts with labels read by the data type of `spec`.

    Class names that are given nowhere are collected from both parts. Raises SourceError, with the line of the first
    wrong sample if there are lines.
    """
    type_spec = spec.data_type
    if type_spec is None:
        _refuse_separator(spec)
    place = type_spec.place  # also reports a type that does not exist
    if isinstance(spec.classes, Mapping):
        raise SourceError.single(
            "`classes` of a domain each are for samples with one class. List all.", place, "conflicting-keys"
        )
    try:
        reader = label_reader(type_spec)
    except PluginError as error:
        raise SourceError([ValidationError.from_exception(error, place, "unknown-task-or-type")]) from None
    names = spec.classes or parts[0].classes
    if not reader.several_labels:
        if spec.label_separator is not None:
            _refuse_separator(spec)
    elif columns := parts[0].label_columns:
        names = spec.classes or columns
        parts = _with_label_columns(parts[0], names, spec), _with_label_columns(parts[1], names, spec)
    else:
        parts = _split(parts, names, spec)
    if names is None:
        with suppress(ValueError):  # reported when the parts are read
            _, names = reader.read(np.concatenate([listing.y for listing in parts]), None)
    train, test = (_read(listing, reader.read, names, type_spec.name) for listing in parts)
    return train, test


def _refuse_separator(spec: DatasetSpec) -> NoReturn:
    message = "`label_separator` is for samples with several labels. Add `data_type: multilabel`, or take it out."
    raise SourceError.single(message, spec.places.get("label_separator", spec.place), "unfit-key")


def with_combinations_noted(parts: Parts, spec: DatasetSpec) -> Parts:
    """Return the parts, with a warning if each class looks like a combination of labels in one cell."""
    train, test = parts
    if spec.classes is not None or any(part.label_form != "class" or part.classes is not None for part in parts):
        return parts
    cells = [*dict.fromkeys(train.y.tolist()), *dict.fromkeys(test.y.tolist())]
    if all(map(CLASS_INDEX.fullmatch, cells)):
        return parts  # numbers hold no separator
    try:
        split = split_labels(cells, None, None)
    except UnclearLabelsError:
        return parts  # as in class names of several words
    if split.separator == NO_SEPARATOR or len(split.labels[split.index]) < 2:
        return parts
    cell = cells[split.index]
    message = (
        f"the label '{cell}' looks like {one_line(split.labels[split.index])}: every combination of labels is a class "
        "of its own. If a sample has several labels, add `data_type: multilabel` to the dataset; if these are classes, "
        "list them by `classes`."
    )
    index = [*train.y.tolist(), *test.y.tolist()].index(cell)
    return train.noted([data_warning(message, _place(parts, index))]), test


def _with_label_columns(listing: Listing, names: Sequence[str], spec: DatasetSpec) -> Listing:
    """Return `listing` with a column of its labels for each of `names`, in that order. Raises SourceError."""
    columns = listing.label_columns
    if {*columns} != {*names}:
        message = f"`classes` lists {one_line(names)}, `label` the columns {one_line(columns)}. Make them the same."
        raise SourceError.single(message, spec.places.get("classes", spec.place), "conflicting-keys")
    return replace(listing, y=listing.y[:, [columns.index(name) for name in names]])


def _split(parts: Parts, names: Sequence[str] | None, spec: DatasetSpec) -> Parts:
    """Return the parts with a list of labels for each string, all split alike. Raises SourceError."""
    train, test = parts
    if any(listing.y.ndim > 1 for listing in parts):
        return parts
    cells = [*train.y.tolist(), *test.y.tolist()]
    try:
        split = split_labels(cells, spec.label_separator, names)
    except UnclearLabelsError as unclear:
        raise SourceError.single(str(unclear), _place(parts, unclear.index), "ambiguous-data") from None
    if spec.label_separator is None and split.remark:
        train = train.noted([data_warning(split.remark, _place(parts, split.index))])
    if split.separator != DOCUMENTED:
        train = train.noted(marks=[f"labels by {split.separator}"])
    return (
        replace(train, y=column(split.labels[: len(train)])),
        replace(test, y=column(split.labels[len(train) :])),
    )


def _place(parts: Parts, index: int) -> Location:
    return parts[0].place(index) if index < len(parts[0]) else parts[1].place(index - len(parts[0]))


def _read(listing: Listing, read: ReadLabels, names: tuple[str, ...] | None, type_name: str) -> Listing:
    try:
        labels, names = read(listing.y, names)
    except ValueError as error:
        raise SourceError(
            [ValidationError.from_exception(error, _first_wrong(listing, read, names), "invalid-record")]
        ) from None
    return replace(listing, label_form=type_name, y=labels, classes=names)


def _first_wrong(listing: Listing, read: ReadLabels, names: tuple[str, ...] | None) -> Location:
    for i in range(len(listing) if listing.place(0).line else 0):
        try:
            read(listing.y[i : i + 1], names)
        except ValueError:
            return listing.place(i)
    return Location(listing.sources[0])


def type_name(spec: DatasetSpec) -> str | None:
    """Return the name of the data type of `spec`, or None."""
    return None if spec.data_type is None else spec.data_type.name


def type_facts(type_spec: DataTypeSpec) -> dict[str, object]:
    """Return the facts that identify an author's data type."""
    return {"data_type": type_spec.name, "source": source_of(type_url(type_spec), type_spec.name, DATA_TYPES)}


def type_url(type_spec: DataTypeSpec | None) -> str | None:
    return None if type_spec is None or type_spec.url is None else str(type_spec.url)
