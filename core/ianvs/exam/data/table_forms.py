"""What a form of tables is: files, folders and objects that hold samples in rows under named columns.

Forms are found by entry points; csv, json and arrays are read without one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.arrays import array_files
from ianvs.exam.data.listing import Listing
from ianvs.plugins.loader import brought

GROUP = "ianvs.table_forms"
"""The group of entry points by which packages bring forms, ianvs its own; each names a tuple of `TableForm`."""

Returned = tuple[object, tuple[str, ...] | None]
"""A part as docs/add_a_dataset.md says that functions return it, and the names of its classes where these are told."""


@dataclass(frozen=True)
class TableForm:
    """suffixes: of its files. files: those of a folder in their order, () where it holds something else.

    read: such files, which lie at a path. given: an object that an author's function returned, and what messages call
    it; None of another form. Both heed what the dataset says of columns and sizes. splits: train and perhaps test of a
    mapping of its own kind, None of others. All raise DataError.
    """

    suffixes: tuple[str, ...]
    files: Callable[[Path], tuple[Path, ...]]
    read: Callable[[Sequence[Path], Path, DatasetSpec], Listing]
    given: Callable[[object, str, DatasetSpec], Returned | None]
    splits: Callable[[Mapping[str, object]], dict[str, object] | None]


def table_forms() -> list[TableForm]:
    """All that are installed."""
    return [form for form, _ in brought(GROUP, TableForm)[0]]


def table_form(path: Path) -> tuple[TableForm, tuple[Path, ...]] | None:
    """What reads the table at `path`, a file or a folder, and its files; None where no form knows it."""
    for form in table_forms():
        known = path.suffix.lower() in form.suffixes and path.is_file()
        if files := (path,) if known else form.files(path) if path.is_dir() else ():
            return form, files
    return None


def source_files(path: Path) -> tuple[Path, ...]:
    """The files that hold the samples of the source at `path`, or it itself."""
    found = table_form(path)
    return tuple(array_files(path).values()) if found is None else found[1]
