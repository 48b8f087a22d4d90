"""Files of data as plugins see them: parsed into paths and words by the parser that their name asks for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ianvs.base.errors import DataError, shown_path
from ianvs.kubeedge.provided.datasources import (
    BaseDataSource,
    CSVDataParse,
    JSONDataParse,
    JsonlDataParse,
    JSONMetaDataParse,
    TxtDataParse,
)
from ianvs.store.files import write_atomic

_PARSERS: dict[str, type[BaseDataSource]] = {
    ".txt": TxtDataParse,
    ".csv": CSVDataParse,
    ".json": JSONDataParse,
    ".jsonl": JsonlDataParse,
}


def paths_and_label(line: str) -> tuple[list[str], str]:
    """How lifelong learning reads a line: all words but the last, and the last."""
    *paths, label = line.split()
    return paths, label


def read(
    file: str, data_type: str, label: str | None = None, func: Callable[[str], object] | None = None
) -> BaseDataSource:
    """The parsed source. label: the column of a csv file. func: for each line of a txt file.

    Raises DataError for a file that is not there or has another suffix.
    """
    path = Path(file)
    parser = JSONMetaDataParse if path.name == "metadata.json" else _PARSERS.get(path.suffix)
    if parser is None:
        raise DataError(f"{shown_path(path)} can't be read: its name has to end in {', '.join(_PARSERS)}.")
    if not path.is_file():
        raise DataError(f"{shown_path(path)} is not there.")
    source = parser(data_type, func)
    source.parse(str(path), **({"label": label} if parser is CSVDataParse else {}))
    return source


def absolute_index(file: str, target: Path) -> str:
    """The file itself, or for a txt index with relative paths one at `target` where they are absolute.

    Relative means: to the folder of the index. A word that is no file there, such as a label, stays as it is; empty
    lines stay too.
    """
    path = Path(file)
    if path.suffix != ".txt" or not path.is_file():
        return file
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    if all(row and os.path.isabs(row[0]) for row in rows):  # noqa: PTH117 - words, not paths yet
        return file
    lines = [" ".join(_absolute(word, path.parent, i == 0) for i, word in enumerate(row)) for row in rows]
    write_atomic(target, "".join(f"{line}\n" for line in lines).encode())
    return str(target)


def _absolute(word: str, folder: Path, first: bool) -> str:
    place = Path(os.path.abspath(folder / word))  # noqa: PTH100 - links are not followed
    return str(place) if place.is_file() or (first and place.is_dir()) else word


def true_labels(file: str, label: str | None) -> object:
    """What a metric gets as `y`: the labels as words, a column, answers or responses.

    Of lines with three words or more it is the last one: `picture depth label`.
    """
    wide = Path(file).suffix == ".txt" and any(
        len(line.split()) > 2 for line in Path(file).read_text(encoding="utf-8").splitlines()
    )
    return read(file, "eval overall", label, paths_and_label if wide else None).y
