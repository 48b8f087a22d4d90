"""Zip files of class folders of pictures: `<class>/.../<image>`, perhaps below a folder train and one test."""

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from ianvs.base.errors import Location, first_line, one_line
from ianvs.base.tool_files import tool_part
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.doors import Door
from ianvs.exam.data.grids import SPLITS, Grid
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
    split = {SPLITS.get(name.parts[around].casefold(), "") for name in names if len(name.parts) > around + 2}
    skipped = around + bool(split and "" not in split)
    pictures = [name for name in names if skipped == around or SPLITS.get(name.parts[around].casefold()) == part]
    if loose := [str(name) for name in pictures if len(name.parts) < skipped + 2]:
        message = f"these images are in no class folder: {one_line(loose, 3)}. Put each into the folder of its class."
        raise SourceError.single(message, Location(path), "invalid-record")
    if not pictures:
        of_part = f" of the {part} part" if names else ""
        message = f"holds no pictures{of_part}; expected <class>/<picture> with {one_line(PICTURE_SUFFIXES)}."
        raise SourceError.single(message, Location(path), "empty-dataset")
    return table_listing(Grid(path, ("image", "label"), partial(_blocks, path, pictures, skipped)), spec, part)


def _blocks(
    path: Path, names: Sequence[PurePosixPath], skipped: int, columns: Sequence[str]
) -> Iterator[Mapping[str, list[Any]]]:
    with zipfile.ZipFile(path) as file:
        for start in range(0, len(names), _BLOCK):
            block = names[start : start + _BLOCK]
            images = [file.read(str(name)) for name in block] if "image" in columns else []
            yield {"image": images, "label": [name.parts[skipped] for name in block]}


FORMS = (Door((".zip",), _read, fields=False),)
