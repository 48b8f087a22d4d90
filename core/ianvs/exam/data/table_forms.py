"""What a form of tables is: files, folders and objects that hold samples in rows under named columns.

Forms are found by entry points; csv, json and arrays are read without one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ianvs.base.errors import DataError, Place, Problem
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam.data.arrays import array_files, arrays_listing
from ianvs.exam.data.conversations import conversations_listing
from ianvs.exam.data.index import files_listing
from ianvs.exam.data.listing import Listing, SourceError, column
from ianvs.exam.data.tables import Table, table_listing
from ianvs.plugins.loader import brought

GROUP = "ianvs.table_forms"
"""The group of entry points by which packages bring forms, ianvs its own; each names a tuple of `TableForm`."""


@dataclass(frozen=True)
class Held:
    """The samples of a table. x: an array, texts, paths as written, or records of conversations, which need no y."""

    form: Literal["arrays", "text", "paths", "conversations"]
    x: Any
    y: list[str]
    domains: list[str]  # "" where none is written
    classes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class TableForm:
    """suffixes: of its files. files: those of a folder in their order, () where it holds something else.

    read: such files. given: an object that an author's function returned, None where it is of another form. Both are
    told by which path messages call the table, and how the dataset names its columns. splits: train and perhaps test
    of a mapping of its own kind, None for others. All raise DataError.
    """

    suffixes: tuple[str, ...]
    files: Callable[[Path], tuple[Path, ...]]
    read: Callable[[Sequence[Path], Path, DatasetSpec], Held]
    given: Callable[[object, Path, DatasetSpec], Held | None]
    splits: Callable[[Mapping[str, object]], dict[str, object] | None]


def table_forms() -> list[TableForm]:
    """All that are installed."""
    return [form for form, _ in brought(GROUP, TableForm)[0]]


def table_files(path: Path) -> tuple[Path, ...]:
    """The files of the table at `path`, a file or a folder; () where no form knows it."""
    if not path.is_dir():
        return (path,) if any(path.suffix.lower() in form.suffixes for form in table_forms()) else ()
    return next((found for form in table_forms() if (found := form.files(path))), ())


def source_files(path: Path) -> tuple[Path, ...]:
    """The files that hold the samples of the source at `path`, or it itself."""
    return table_files(path) or tuple(array_files(path).values())


def read_form(source: SourceSpec, spec: DatasetSpec, files: Sequence[Path]) -> Listing:
    """The samples in the files of one table. Raises SourceError."""
    path = source.path
    try:
        form = next(form for form in table_forms() if files[0].suffix.lower() in form.suffixes)
        held = form.read(files, path, spec)
    except SourceError:
        raise
    except DataError as error:
        raise SourceError([Problem(str(error), Place(path))]) from None
    none = np.zeros(len(held.x), np.int64)
    if held.form == "conversations":
        return conversations_listing(
            held.x, path.stem, path, none.tolist(),
            lambda i, slip: Problem(f"row {i + 1}: {slip.message}", Place(path)), spec.domain,
        )  # fmt: skip
    if held.form == "paths":
        return files_listing(path, spec, held.x, held.y, none, held.domains)
    if held.form == "text":
        return table_listing(Table(path, (), (), none), "text", column(held.x), "text", column(held.y), held.domains)
    arrays = {"x": held.x, "y": np.array(held.y)} | ({"domain": np.array(held.domains)} if any(held.domains) else {})
    return arrays_listing(
        arrays, path.stem, Place(path), dict.fromkeys(arrays, path.name), held.classes, spec.layout, None
    )
