"""Reader of PASCAL VOC's xml: below one root, or named by an index with lines "picture xml", as KubeEdge's pcb-aoi."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from ianvs.base.error_codes import ErrorCode
from ianvs.base.errors import Location, closest, one_line
from ianvs.testenv.data_types.detection.box_files import (
    BoxFiles,
    Size,
    class_names,
    pictures_in,
    refusal,
    text_of,
    written_size,
)

_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_OBJECT = ("annotation", "object")  # objects may have parts, with their own names and boxes
_SIZE = ("annotation", "size")
_Object = tuple[int, dict[str, str]]  # line of its beginning, its content


def read_voc(root: Path, split: str, classes: Sequence[str] | None = None) -> BoxFiles:
    """Read Annotations/NAME.xml and JPEGImages/NAME.* for each name in ImageSets/Main/<split>.txt.

    classes: names in the order of their indices; None: those that occur, sorted. For the test part, pass the classes of
    the training part. Coordinates in the files are of pixels inside the box, from 1; boxes here go from xmin - 1, ymin
    - 1 to xmax, ymax. Raises DataError.
    """
    listed = root / "ImageSets" / "Main" / f"{split}.txt"
    pictures, files = pictures_in(root / "JPEGImages"), []
    for number, words in _rows(listed):
        if len(words) != 1 or words[0] not in pictures:
            hint = " Lists with 1 and -1 are of one class; use that of all." if len(words) > 1 else " Add it."
            raise refusal(listed, number, f"'{' '.join(words)}' is no name of an image in JPEGImages.{hint}")
        files.append((pictures[words[0]], root / "Annotations" / f"{words[0]}.xml"))
    return _read(listed, files, classes)


def read_voc_index(index: Path, classes: Sequence[str] | None = None) -> BoxFiles:
    """Read an index with lines "picture xml", relative to the folder of the index; otherwise as `read_voc`."""
    files = []
    for number, words in _rows(index):
        paths = [index.parent / word for word in words]
        if len(paths) != 2 or paths[1].suffix.lower() != ".xml" or not paths[0].is_file():
            raise refusal(index, number, f"'{' '.join(words)}' is not 'image xml' with an image that is there.")
        files.append((paths[0], paths[1]))
    return _read(index, files, classes)


def _rows(file: Path) -> Iterator[tuple[int, list[str]]]:
    lines = enumerate(text_of(file).splitlines(), 1)
    return ((number, line.split()) for number, line in lines if line.strip())


def _read(listed: Path, files: Sequence[tuple[Path, Path]], classes: Sequence[str] | None) -> BoxFiles:
    if not files:
        raise refusal(listed, 0, "the list is empty; expected at least one image.", "empty-dataset")
    annotations = [_annotation(file) for _, file in files]
    objects = [items for items, _ in annotations]
    if classes is None:
        classes = sorted({fields["name"] for items in objects for _, fields in items})
    names = class_names(classes, listed, 0)
    indices = {name: index for index, name in enumerate(names)}
    labels = [_label(file, items, indices) for (_, file), items in zip(files, objects, strict=True)]

    def place(picture: int, box: int | None) -> Location:
        line = 0 if box is None else objects[picture][box][0]
        return Location.of_line(files[picture][1], line)

    return BoxFiles([picture for picture, _ in files], [*labels], names, [size for _, size in annotations], place)


def _label(file: Path, objects: Sequence[_Object], indices: dict[str, int]) -> dict[str, Any]:
    boxes = []
    for line, fields in objects:
        try:
            box = [float(fields[key]) for key in _CORNERS]
        except (KeyError, ValueError):
            raise refusal(file, line, f"the object has no bndbox with numbers {', '.join(_CORNERS)}.") from None
        if not (np.isfinite(box).all() and box[0] <= box[2] and box[1] <= box[3]):
            raise refusal(file, line, f"the box {box} ends before it begins, or is not finite. Mend or remove it.")
        if fields["name"] not in indices:
            message = f"'{fields['name']}' is none of the classes {one_line(list(indices))}."
            raise refusal(file, line, f"{message}{closest(fields['name'], indices)}")
        if fields.get("difficult", "0") not in ("0", "1"):
            raise refusal(file, line, f"difficult is '{fields['difficult']}'; expected 0 or 1.")
        boxes.append(box)
    return {
        "boxes": np.array(boxes).reshape(-1, 4) - (1, 1, 0, 0),
        "labels": np.array([indices[fields["name"]] for _, fields in objects], dtype=np.int64),
        "difficult": np.array([fields.get("difficult", "0") for _, fields in objects], dtype=np.uint8),
    }


def _annotation(file: Path) -> tuple[list[_Object], Size | None]:
    """Return (each object by the names of its elements, with bndbox split up; the size of the image)."""
    objects: list[_Object] = []
    size: dict[str, str] = {}
    path: list[str] = []

    def begin(name: str, _: dict[str, str]) -> None:
        path.append(name)
        if tuple(path) == _OBJECT:
            objects.append((parser.CurrentLineNumber, {}))

    def text(data: str) -> None:
        if len(path) == 3 and tuple(path[:2]) == _SIZE:
            size[path[-1]] = size.get(path[-1], "") + data
        inside = len(path) == 3 or (len(path) == 4 and path[2] == "bndbox")
        if inside and tuple(path[:2]) == _OBJECT:
            fields = objects[-1][1]
            fields[path[-1]] = (fields.get(path[-1], "") + data).strip()

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.CharacterDataHandler = begin, text
    parser.EndElementHandler = lambda _: path.pop()
    parser.buffer_text = True
    try:
        parser.Parse(file.read_bytes(), True)
    except OSError as error:
        code: ErrorCode = "missing-file" if isinstance(error, FileNotFoundError) else "unreadable-file"
        raise refusal(file, 0, f"the file can't be read: {error.strerror}.", code) from None
    except expat.ExpatError as error:
        raise refusal(file, error.lineno, f"not xml: {expat.ErrorString(error.code)}.") from None
    for line, fields in objects:
        if not fields.get("name"):
            raise refusal(file, line, "the object has no name. Add one, or remove the object.")
    return objects, written_size(size.get("width"), size.get("height"))
