"""File formats: how files, folders or objects of one format become a listing of samples.

Packages add formats by entry points. What a label, an empty cell or an image is, is decided in `tables`, `arrays` and
`index`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ianvs.base.errors import Location, one_line
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam.data.arrays import PACKED, array_files, read_arrays
from ianvs.exam.data.conversations import holds_conversations, read_conversations
from ianvs.exam.data.csv_files import read_csv
from ianvs.exam.data.folders import holds_pictures, read_folder
from ianvs.exam.data.grids import records_grid
from ianvs.exam.data.index import COMPRESSED, LISTS, read_lines, suffix_of
from ianvs.exam.data.listing import Listing, SourceError
from ianvs.exam.data.records import read_records
from ianvs.exam.data.tables import table_listing
from ianvs.plugins.loader import brought

GROUP = "ianvs.table_forms"
"""The group of entry points by which packages add formats; each names a tuple of `FileFormat`."""

Returned = tuple[object, tuple[str, ...] | None]
"""A part as docs/extending.md says that functions return it, and the names of its classes where these are told."""


def _path_only(path: Path) -> tuple[Path, ...]:
    return (path,) if path.is_file() else ()


@dataclass(frozen=True)
class FileFormat:
    """How one format of data is read.

    Attributes:
        suffixes: Ends of its files' names, in small letters.
        read: (files, path, dataset, part) -> what they list; they lie at the path. Raises DataError.
        files: Those that hold the samples of such a file, or of any folder; () where it is none of this form.
        given: (object, what messages call it, dataset) -> a part that a function returned; None of another form.
        splits: Train and perhaps test of a mapping of its own kind; None of others.
        fields: Whether its samples have named fields, which `domain` may name.
        large: Whether it may hold much more than its size tells, so that it is read by a process of its own, once.
    """

    suffixes: tuple[str, ...]
    read: Callable[[Sequence[Path], Path, DatasetSpec, str], Listing]
    files: Callable[[Path], tuple[Path, ...]] = _path_only
    given: Callable[[object, str, DatasetSpec], Returned | None] | None = None
    splits: Callable[[Mapping[str, object]], dict[str, object] | None] | None = None
    fields: bool = True
    large: bool = True


Door = FileFormat
"""The former name, which packages may import."""


def read_json(files: Sequence[Path], path: Path, spec: DatasetSpec, part: str) -> Listing:
    """What a table, or conversations, in a json or jsonl list. Raises SourceError."""
    records = read_records(path)
    if holds_conversations(records, spec):
        return read_conversations(records, spec)
    return table_listing(records_grid(records), spec, part)


def _with_labels(path: Path) -> tuple[Path, ...]:
    return tuple(array_files(path).values()) if path.is_file() else ()


OWN = (
    FileFormat(LISTS, read_lines, fields=False, large=False),
    FileFormat((".csv", ".tsv"), read_csv, large=False),
    FileFormat((".json", ".jsonl"), read_json, large=False),
    FileFormat(PACKED, read_arrays, _with_labels, fields=False, large=False),
)
FOLDERS = FileFormat((), read_folder, holds_pictures, fields=False, large=False)


def doors() -> list[FileFormat]:
    """All that are installed; folders of images are what no other knows."""
    return [*OWN, *(door for door, _ in brought(GROUP, FileFormat)[0]), FOLDERS]


def door_of(path: Path) -> tuple[FileFormat, tuple[Path, ...]] | None:
    """What reads the file or folder at `path`, and the files that hold its samples; None where no door knows it."""
    folder = path.is_dir()
    for door in doors():
        fits = folder or suffix_of(path) in door.suffixes or path.suffix.lower() in door.suffixes
        if fits and (files := door.files(path)):
            return door, files
    return None


def source_files(path: Path) -> tuple[Path, ...]:
    """The files that hold the samples of the source at `path`, or it itself."""
    door = door_of(path)
    return (path,) if door is None else door[1]


def read_source(source: SourceSpec, spec: DatasetSpec, part: str) -> Listing:
    """What a file or a folder lists. Raises SourceError."""
    path = source.path
    if not path.exists():
        raise SourceError.single(f"there is no file or folder '{path}'.", source.place, "missing-file")
    match = door_of(path)
    if match is None:
        suffixes = one_line([end for door in doors() for end in door.suffixes if end], 30)
        message = (
            f"don't know how to read '{path.suffix.lower()}'; expected {suffixes} (text also in "
            f"{' or '.join(COMPRESSED)}), or a folder. Anything else is read by a function of ten lines that returns "
            "the samples: `name: FUNCTION` and `url: ./mine.py` in the dataset (docs/extending.md#a-dataset)."
        )
        raise SourceError.single(message, source.place or Location(path), "wrong-path-type")
    return match[0].read(match[1], path, spec, part)
