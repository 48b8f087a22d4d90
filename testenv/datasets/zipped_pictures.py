"""Zip files of class folders of images, optionally with folders of parts or domains, as in plain folders."""

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from ianvs.base.errors import Location, first_line, one_line
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.file_formats import FileFormat
from ianvs.exam.data.folders import ClassFolders, class_folders, packed_images
from ianvs.exam.data.grids import Grid
from ianvs.exam.data.index import PICTURE_SUFFIXES
from ianvs.exam.data.listing import Listing, SourceError
from ianvs.exam.data.tables import table_listing

_BLOCK = 256  # images that are in memory at a time


def _read(files: Sequence[Path], path: Path, spec: DatasetSpec, part: str) -> Listing:
    try:
        with zipfile.ZipFile(path) as file:
            prefix, names = packed_images(file)
            every = file.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        message = f"can't be read as a zip file ({first_line(error)}). Pack it again."
        raise SourceError.single(message, Location(path), "unreadable-data") from None
    if not names:
        message = f"holds no images; expected <class>/<image> with {one_line(PICTURE_SUFFIXES)}."
        if others := [name for name in every if not name.endswith("/")]:
            message += f" It has: {one_line(others, 3)}. Unpack it, and name such a file in the dataset."
        raise SourceError.single(message, Location(path), "empty-dataset")
    images = class_folders(names, path, spec, part)
    columns = ("image", "label", *(["domain"] if any(images.domains) else []))
    grid = Grid(path, columns, partial(_blocks, path, prefix, images), warnings=images.warnings)
    listing = table_listing(grid, spec, part).noted(marks=images.marks)
    return replace(listing, ids=np.array([name.as_posix() for name in images.names], dtype=str))


def _blocks(
    path: Path, prefix: PurePosixPath, images: ClassFolders, columns: Sequence[str]
) -> Iterator[Mapping[str, list[Any]]]:
    with zipfile.ZipFile(path) as file:
        for start in range(0, len(images.names), _BLOCK):
            rows = slice(start, start + _BLOCK)
            pixels = [file.read(str(prefix / name)) for name in images.names[rows]] if "image" in columns else []
            yield {"image": pixels, "label": list(images.classes[rows]), "domain": list(images.domains[rows])}


FORMS = (FileFormat((".zip",), _read, fields=False),)
