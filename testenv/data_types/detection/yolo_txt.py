"""Reader of YOLO's layout: data.yaml, and for images/NAME.jpg the boxes labels/NAME.txt (docs.ultralytics.com)."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image, UnidentifiedImageError

from ianvs.base.errors import DataError, closest, one_line, shown_path
from ianvs.testenv.data_types.detection.box_files import BoxFiles, class_names, pictures_in, refusal, text_of

_WORDS = 5  # class cx cy w h, all but the first relative to the picture


def read_yolo(file: Path, part: str) -> BoxFiles:
    """file: data.yaml. part: its key `train`, `val` or `test`: a folder of pictures, a txt file that lists some, or a
    list of these. A missing or empty txt means that the picture has no boxes. Raises DataError.
    """
    text = text_of(file)
    try:
        data, node = yaml.safe_load(text), yaml.compose(text)
    except yaml.YAMLError as error:
        line = error.problem_mark.line + 1 if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark else 0
        raise refusal(file, line, f"not yaml: {getattr(error, 'problem', error)}.") from None
    if not isinstance(data, dict) or not isinstance(node, yaml.MappingNode):
        raise refusal(file, 0, "expected keys with values, such as names and train.")
    for key in ("names", part):
        if key not in data:
            raise refusal(file, 0, f"there is no '{key}', only {one_line(list(data))}.{closest(key, map(str, data))}")
    lines = {key.value: key.start_mark.line + 1 for key, _ in node.value}
    names, line = data["names"], lines["names"]
    if isinstance(names, dict):
        if sorted(map(str, names)) != sorted(map(str, range(len(names)))):
            raise refusal(file, line, f"the keys of names are not 0 to {len(names) - 1}.")
        names = [name for _, name in sorted(names.items(), key=lambda item: int(item[0]))]
    if not isinstance(names, list):
        raise refusal(file, line, "names is neither a list nor a mapping from numbers to names.")
    classes = class_names(names, file, line)
    pictures = list(_pictures(file, data, part, lines[part]))
    if not pictures:
        raise refusal(file, lines[part], f"'{part}' has no pictures.")
    texts = [_boxes_file(picture) for picture in pictures]
    if not any(text.parent.is_dir() for text in texts):
        raise DataError(f"{shown_path(texts[0].parent)} is no folder; expected one with a txt for each picture.")
    return BoxFiles(pictures, [_label(*pair, classes) for pair in zip(pictures, texts, strict=True)], classes)


def _pictures(file: Path, data: dict[Any, Any], part: str, number: int) -> Iterator[Path]:
    """In the order in which they are given, of a folder sorted."""
    base = file.parent / str(data.get("path") or ".")
    for entry in data[part] if isinstance(data[part], list) else [data[part]]:
        place = base / str(entry)
        if not place.exists() and str(entry).startswith("../"):  # as Roboflow writes it, from a folder that isn't there
            place = base / str(entry)[3:]
        if place.is_dir():
            yield from pictures_in(place).values()
        elif place.suffix == ".txt" and place.is_file():
            for row, line in enumerate(text_of(place).splitlines(), 1):
                if line.strip():
                    picture = place.parent / line.strip()
                    if not picture.is_file():
                        raise refusal(place, row, f"there is no picture {shown_path(picture)}. Mend the line.")
                    yield picture
        else:
            raise refusal(file, number, f"{part}: {shown_path(place)} is no folder and no txt. Mend it.")


def _boxes_file(picture: Path) -> Path:
    head, found, tail = os.fspath(picture).rpartition(f"{os.sep}images{os.sep}")
    return Path(f"{head}{os.sep}labels{os.sep}{tail}" if found else picture).with_suffix(".txt")


def _label(picture: Path, file: Path, classes: tuple[str, ...]) -> dict[str, Any]:
    rows = []
    for number, line in enumerate(text_of(file).splitlines() if file.is_file() else (), 1):
        words = line.split()
        try:
            row = [float(word) for word in words]
        except ValueError:
            raise refusal(file, number, f"'{line}' is not numbers; expected class cx cy w h.") from None
        if not row:
            continue
        if len(row) != _WORDS:
            what = {6: "a sixth number, as answers have it (confidence)"}.get(len(row), f"{len(row)} numbers")
            hint = "Polygons can't be read: turn each into its box." if len(row) > _WORDS + 1 else "Write five."
            raise refusal(file, number, f"the line has {what}; expected class cx cy w h. {hint}")
        if row[0] not in range(len(classes)):
            raise refusal(file, number, f"class {words[0]} is none of 0 to {len(classes) - 1}, which data.yaml names.")
        if not all(0 <= value <= 1 for value in row[1:]):
            raise refusal(file, number, f"'{line}' is not within 0 and 1; divide pixels by the picture's size.")
        rows.append(row)
    table = np.array(rows, dtype=np.float64).reshape(-1, _WORDS)
    try:
        with Image.open(picture) as image:  # reads the head of the file alone
            size = np.array(image.size)
    except (OSError, UnidentifiedImageError):
        raise DataError(f"{shown_path(picture)} can't be read as a picture. Replace or remove it.") from None
    low, high = ((table[:, 1:3] + sign * table[:, 3:] / 2) * size for sign in (-1, 1))
    return {"boxes": np.hstack([low, high]), "labels": table[:, 0].astype(np.int64)}
