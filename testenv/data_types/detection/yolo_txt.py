"""Reader of YOLO's layout: data.yaml, and for images/NAME.jpg the boxes labels/NAME.txt (docs.ultralytics.com)."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ianvs.base.error_codes import ErrorCode
from ianvs.base.errors import ConfigError, DataError, Location, closest, one_line, shown_path
from ianvs.config.strict_yaml import Document, parse
from ianvs.exam.data.listing import SourceError
from ianvs.testenv.data_types.detection.box_files import (
    BoxFiles,
    class_names,
    picture_head,
    pictures_in,
    refusal,
    text_of,
)

_EMPTY_PATH_VALUES = ("", "None", "null", "~")  # values of `path` that mean no path
_FIELDS_PER_LINE = 5  # class cx cy w h; all but the first are relative to the image


def read_yolo(file: Path, part: str) -> BoxFiles:
    """Read a part of a dataset in YOLO's layout. A missing or empty txt means that an image has no boxes.

    Args:
        file: data.yaml.
        part: Its key `train`, `val` or `test`: a folder of images, a txt file that lists images, or a list of these.

    Raises:
        DataError: A file is missing or can't be read.
    """
    document = _document(file)
    data: dict[str, Any] = document.data  # type: ignore[assignment]  # _document has looked
    classes = _classes(document, data)
    pictures = list(_pictures(document, data, part))
    if not pictures:
        raise _error_at(document, part, f"'{part}' has no images.", "empty-dataset")
    label_files = [_boxes_file(picture) for picture in pictures]
    if not any(label_file.parent.is_dir() for label_file in label_files):
        raise DataError(
            f"{shown_path(label_files[0].parent)} is not a folder; expected one with a txt for each image.",
            code="missing-file",
        )
    labels = [_label(*pair, classes) for pair in zip(pictures, label_files, strict=True)]
    return BoxFiles(pictures, labels, classes, place=lambda picture, box: _place(label_files[picture], box))


def _place(file: Path, box: int | None) -> Location:
    """Return the location of a box, counted over non-blank lines; None: of the file."""
    if box is None or not file.is_file():
        return Location(file)
    lines = [number for number, line in enumerate(text_of(file).splitlines(), 1) if line.strip()]
    return Location(file, lines[box], 1)


def _document(file: Path) -> Document:
    """Read data.yaml with every scalar as a string. Raises DataError with all of its errors."""
    try:
        document = parse(text_of(file), file, as_written=True)
    except ConfigError as error:
        raise SourceError(error.problems) from None
    if document.problems:
        raise SourceError(document.problems)
    if not isinstance(document.data, dict):
        raise refusal(file, 0, "expected keys with values, such as names and train.")
    return document


def _error_at(document: Document, key: str, message: str, code: ErrorCode = "invalid-value") -> SourceError:
    return SourceError.single(message, document.key_place((key,)), code)


def _classes(document: Document, data: dict[str, Any]) -> tuple[str, ...]:
    """Return the class names in `names`, a list or a mapping from 0 to n - 1. Raises DataError if `nc` differs."""
    names = _required(document, data, "names")
    if isinstance(names, dict):
        numbers = {str(number) for number in range(len(names))}
        if missing_keys := sorted(numbers - names.keys(), key=int):
            message = f"the keys of names are not 0 to {len(names) - 1}: there is no {missing_keys[0]}."
            raise _error_at(document, "names", f"{message} A number of a txt is the position of its class.")
        names = [names[str(number)] for number in range(len(names))]
    if not isinstance(names, list):
        raise _error_at(document, "names", "names is neither a list nor a mapping from numbers to names.")
    for number, name in enumerate(names):
        if not isinstance(name, str) or not name.strip():
            raise _error_at(
                document, "names", f"class {number} has no name, or one that is not a string. Write a string."
            )
    if (count := data.get("nc", str(len(names)))) != str(len(names)):
        message = f"nc is {count}, and names has {len(names)} names. Correct nc or names."
        raise _error_at(document, "nc", message)
    return class_names(names, document.file, document.key_place(("names",)).line)


def _required(document: Document, data: dict[str, Any], key: str) -> Any:
    if key not in data:
        raise refusal(document.file, 0, f"there is no '{key}', only {one_line(list(data))}.{closest(key, data)}")
    return data[key]


def _pictures(document: Document, data: dict[str, Any], part: str) -> Iterator[Path]:
    """Yield images in the given order; those of a folder are sorted by name."""
    base, entries = (
        document.file.parent / (root if (root := str(data.get("path"))) not in _EMPTY_PATH_VALUES else "."),
        _required(document, data, part),
    )
    for entry in entries if isinstance(entries, list) else [entries]:
        path = base / str(entry)
        if not path.exists() and str(entry).startswith("../"):  # Roboflow writes ../ from a folder that does not exist
            path = base / str(entry)[3:]
        if path.is_dir():
            yield from pictures_in(path).values()
        elif path.suffix == ".txt" and path.is_file():
            for row, line in enumerate(text_of(path).splitlines(), 1):
                if line.strip():
                    picture = path.parent / line.strip()
                    if not picture.is_file():
                        raise refusal(
                            path, row, f"image {shown_path(picture)} does not exist. Correct the line.", "missing-file"
                        )
                    yield picture
        else:
            raise _error_at(
                document, part, f"{part}: {shown_path(path)} is neither a folder nor a .txt file.", "missing-file"
            )


def _boxes_file(picture: Path) -> Path:
    head, separator, tail = os.fspath(picture).rpartition(f"{os.sep}images{os.sep}")
    return Path(f"{head}{os.sep}labels{os.sep}{tail}" if separator else picture).with_suffix(".txt")


def _label(picture: Path, file: Path, classes: tuple[str, ...]) -> dict[str, Any]:
    rows = []
    for number, line in enumerate(text_of(file).splitlines() if file.is_file() else (), 1):
        fields = line.split()
        try:
            row = [float(field) for field in fields]
        except ValueError:
            raise refusal(file, number, f"'{line}' is not numbers; expected class cx cy w h.") from None
        if not row:
            continue
        if len(row) != _FIELDS_PER_LINE:
            content = {6: "six numbers; the sixth looks like a confidence"}.get(len(row), f"{len(row)} numbers")
            hint = (
                "Polygons can't be read: turn each into its box." if len(row) > _FIELDS_PER_LINE + 1 else "Write five."
            )
            raise refusal(file, number, f"the line has {content}; expected class cx cy w h. {hint}")
        if row[0] not in range(len(classes)):
            raise refusal(file, number, f"class {fields[0]} is none of 0 to {len(classes) - 1}, which data.yaml names.")
        if not all(0 <= value <= 1 for value in row[1:]):
            raise refusal(file, number, f"'{line}' is not within 0 and 1; divide pixels by the image's size.")
        rows.append(row)
    table = np.array(rows, dtype=np.float64).reshape(-1, _FIELDS_PER_LINE)
    size = np.array(picture_head(picture).size)
    low, high = ((table[:, 1:3] + sign * table[:, 3:] / 2) * size for sign in (-1, 1))
    return {"boxes": np.hstack([low, high]), "labels": table[:, 0].astype(np.int64)}
