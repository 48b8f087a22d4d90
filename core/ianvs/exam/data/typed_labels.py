"""Labels of a data type that the testenv says (`data_type`): the type itself reads them."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Place, PluginError, Problem
from ianvs.config.spec import DatasetSpec, DataTypeSpec
from ianvs.exam.data.listing import Listing, SourceError
from ianvs.plugins.loader import load_once
from ianvs.plugins.source import source_of

DATA_TYPES = "ianvs.data_types"  # ianvs.exam.data_types.ENTRY_POINTS, which builds on this package
ReadLabels = Callable[[object, tuple[str, ...] | None], tuple[NDArray[Any], tuple[str, ...]]]
"""Makes the column `y`, and the names of the classes, of labels as they were returned. Raises ValueError."""


def label_reader(of: DataTypeSpec) -> ReadLabels:
    """`read` of a data type. Raises PluginError."""
    read: ReadLabels = load_once(_url(of), of.name, DATA_TYPES).target().read
    return read


def typed(parts: tuple[Listing, Listing], spec: DatasetSpec) -> tuple[Listing, Listing]:
    """The training and the test part of files, labels read by the data type that `spec` says, if it says one.

    Names of classes that are given nowhere are found in both parts. Raises SourceError, with the line of the
    first sample that is wrong where there are lines.
    """
    if (of := spec.data_type) is None:
        return parts
    place = of.place  # where a type that is not there is told, too
    if isinstance(spec.classes, Mapping):
        raise SourceError([Problem("`classes` of a domain each are for samples with one class. List all.", place)])
    try:
        read = label_reader(of)
    except PluginError as error:
        raise SourceError([Problem(str(error), place)]) from None
    names = spec.classes or parts[0].classes
    if names is None:
        with suppress(ValueError):  # which one of the parts will say
            _, names = read(np.concatenate([listing.labels for listing in parts]), None)
    train, test = (_read(listing, read, names, of.name) for listing in parts)
    return train, test


def _read(listing: Listing, read: ReadLabels, names: tuple[str, ...] | None, of: str) -> Listing:
    try:
        labels, names = read(listing.labels, names)
    except ValueError as error:
        raise SourceError([Problem(str(error), _first_wrong(listing, read, names))]) from None
    return replace(listing, label_form=of, labels=labels, classes=names)


def _first_wrong(listing: Listing, read: ReadLabels, names: tuple[str, ...] | None) -> Place:
    for i in range(len(listing) if listing.lines[0] else 0):
        try:
            read(listing.labels[i : i + 1], names)
        except ValueError:
            return listing.place(i)
    return Place(listing.sources[0])


def type_name(spec: DatasetSpec) -> str | None:
    """That of the data type that `spec` says."""
    return None if spec.data_type is None else spec.data_type.name


def type_facts(spec: DatasetSpec) -> dict[str, object]:
    """What tells an author's data type from another one of the same name; {} where none is said."""
    if (of := spec.data_type) is None:
        return {}
    return {"data_type": of.name, "source": source_of(_url(of), of.name, DATA_TYPES)}


def _url(of: DataTypeSpec) -> str | None:
    return None if of.url is None else str(of.url)
