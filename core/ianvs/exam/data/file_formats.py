"""File formats: how files, folders or objects of one format become a listing of samples.

Packages add formats by entry points. What a label, an empty cell or an image is, is decided in `tables`, `arrays` and
`index`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from ianvs.exam.data.listing import A_FUNCTION_READS, Listing, SourceError
from ianvs.exam.data.records import read_records
from ianvs.exam.data.tables import table_listing
from ianvs.plugins.loader import load_entry_points

GROUP = "ianvs.table_forms"
"""The group of entry points by which packages add formats; each names a tuple of `FileFormat`."""

_ARCHIVES = {".tar", ".tgz", ".tbz", ".tbz2", ".txz", ".7z", ".rar"}

Returned = tuple[object, tuple[str, ...] | None]
"""A part as functions return it (docs/extending.md), and the names of its classes, if they are known."""


@dataclass(frozen=True)
class FileFormat:
    """How one format of data is read.

    Attributes:
        suffixes: Suffixes of its files, in lower case.
        read: (files, path, dataset, part) -> the listing of the files at `path`. Raises DataError.
        files: path -> the files that hold the samples of a file or folder; () if it has another format. None: its
            samples are in one file, never in a folder.
        given: (object, its name in messages, dataset) -> the part in an object that a function returned; None if the
            object has another format.
        splits: mapping -> its parts "train" and perhaps "test"; None if the mapping has another format.
        fields: Whether its samples have named fields, which `domain` may name.
        large: Whether a small file may hold many samples, so that a separate process reads it, once.
    """

    suffixes: tuple[str, ...]
    read: Callable[[Sequence[Path], Path, DatasetSpec, str], Listing]
    files: Callable[[Path], tuple[Path, ...]] | None = None
    given: Callable[[object, str, DatasetSpec], Returned | None] | None = None
    splits: Callable[[Mapping[str, object]], dict[str, object] | None] | None = None
    fields: bool = True
    large: bool = True


def read_json(files: Sequence[Path], path: Path, spec: DatasetSpec, part: str) -> Listing:
    """Read a table or conversations from a json or jsonl file. Raises SourceError."""
    records = read_records(path)
    if holds_conversations(records, spec):
        return read_conversations(records, spec)
    return table_listing(records_grid(records), spec, part)


def _with_labels(path: Path) -> tuple[Path, ...]:
    return tuple(array_files(path).values()) if path.is_file() else ()


ARRAYS = FileFormat(PACKED, read_arrays, _with_labels, fields=False, large=False)
OWN = (
    FileFormat(LISTS, read_lines, fields=False, large=False),
    FileFormat((".csv", ".tsv"), read_csv, large=False),
    FileFormat((".json", ".jsonl"), read_json, large=False),
    ARRAYS,
)
FOLDERS = FileFormat((), read_folder, holds_pictures, fields=False, large=False)


def all_formats() -> Iterator[FileFormat]:
    """Yield all formats; those of packages are imported when it comes to them.

    Folders of images come last, because any folder may be one.
    """
    yield from OWN
    yield from (file_format for file_format, _ in load_entry_points(GROUP, FileFormat)[0])
    yield FOLDERS


def find_format(path: Path) -> tuple[FileFormat, tuple[Path, ...]] | None:
    """Return the format of the file or folder at `path` and the files that hold its samples; None if it is unknown."""
    folder, alone = path.is_dir(), (path,) if path.is_file() else ()
    suffixes = {path.suffix.lower()}
    if suffixes.intersection(COMPRESSED):
        suffixes.add(suffix_of(path))
    for file_format in all_formats():
        if folder or suffixes.intersection(file_format.suffixes):
            files = alone if file_format.files is None else file_format.files(path)
            if files:
                return file_format, files
    return None


def read_source(source: SourceSpec, spec: DatasetSpec, part: str) -> Listing:
    """Read the listing of a file or folder. Raises SourceError."""
    path = source.path
    if not path.exists():
        raise SourceError.single(f"there is no file or folder '{path}'.", source.place, "missing-file")
    match = find_format(path)
    if match is None:
        if {suffix.lower() for suffix in path.suffixes[-2:]} & _ARCHIVES:
            message = (
                f"{path.name} is an archive that is not read. Unpack it, and give the folder; a .zip is read as it is."
            )
            raise SourceError.single(message, source.place or Location(path), "wrong-path-type")
        suffixes = one_line([end for file_format in all_formats() for end in file_format.suffixes if end], 30)
        message = (
            f"don't know how to read '{path.suffix.lower()}'; expected {suffixes} (text also in "
            f"{' or '.join(COMPRESSED)}), or a folder. {A_FUNCTION_READS}"
        )
        raise SourceError.single(message, source.place or Location(path), "wrong-path-type")
    return match[0].read(match[1], path, spec, part)
