"""Zip files of class folders of images, perhaps with folders of parts or domains, as folders have them."""

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from ianvs.base.errors import Location, first_line, one_line
from ianvs.base.tool_files import tool_part
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.doors import Door
from ianvs.exam.data.folders import ClassFolders, class_folders
from ianvs.exam.data.grids import Grid
from ianvs.exam.data.index import PICTURE_SUFFIXES
from ianvs.exam.data.listing import Listing, SourceError
from ianvs.exam.data.tables import table_listing

_BLOCK = 256  # images that are in memory at a time


def _read(files: Sequence[Path], path: Path, spec: DatasetSpec, part: str) -> Listing:
    try:
        with zipfile.ZipFile(path) as file:
            names = [PurePosixPath(name) for name in file.namelist() if name.lower().endswith(PICTURE_SUFFIXES)]
    except (OSError, zipfile.BadZipFile) as error:
        message = f"can't be read as a zip file ({first_line(error)}). Pack it again."
        raise SourceError.single(message, Location(path), "unreadable-data") from None
    names = sorted((name for name in names if tool_part(Path(name)) is None), key=lambda name: name.parts)
    around = 0  # folders that all images lie in, as of the folder that was packed
    while names and len({name.parts[: around + 1] for name in names}) == 1 and len(names[0].parts) > around + 2:
        around += 1
    if not names:
        message = f"holds no pictures; expected <class>/<picture> with {one_line(PICTURE_SUFFIXES)}."
        raise SourceError.single(message, Location(path), "empty-dataset")
    images = class_folders([PurePosixPath(*name.parts[around:]) for name in names], path, spec, part)
    prefix = PurePosixPath(*names[0].parts[:around])
    columns = ("image", "label", *(["domain"] if any(images.domains) else []))
    grid = Grid(path, columns, partial(_blocks, path, prefix, images), warnings=images.warnings)
    return table_listing(grid, spec, part).noted(marks=images.marks)


def _blocks(
    path: Path, prefix: PurePosixPath, images: ClassFolders, columns: Sequence[str]
) -> Iterator[Mapping[str, list[Any]]]:
    with zipfile.ZipFile(path) as file:
        for start in range(0, len(images.names), _BLOCK):
            rows = slice(start, start + _BLOCK)
            pixels = [file.read(str(prefix / name)) for name in images.names[rows]] if "image" in columns else []
            yield {"image": pixels, "label": list(images.classes[rows]), "domain": list(images.domains[rows])}


FORMS = (Door((".zip",), _read, fields=False),)
