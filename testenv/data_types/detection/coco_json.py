"""Reader of COCO's json: images, annotations and categories (cocodataset.org/#format-data).

Entries are decoded one by one and only their numbers are kept, so polygons of masks take no memory, and an error can
give the position of its entry.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Location, one_line, shown_path
from ianvs.exam.data.listing import SourceError
from ianvs.testenv.data_types.detection.box_files import BoxFiles, class_names, text_of, written_size

_SECTIONS = ("images", "annotations", "categories")
_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\n\r]*")


def read_coco(annotations: Path, pictures: Path) -> BoxFiles:
    """Read a json file of annotations. pictures: the folder to which its `file_name` entries are relative.

    Classes are in the order of their ids. Labels have iscrowd, and `area` from the file: COCO's are areas of masks.
    Images without annotations are kept. Raises DataError.
    """
    return _Reader(annotations).read(pictures)


class _Reader:
    def __init__(self, file: Path) -> None:
        self.file, self.text = file, text_of(file)

    def refuse(self, position: int, message: str) -> NoReturn:
        raise SourceError.single(message, Location.in_text(self.file, self.text, position), "invalid-record")

    def read(self, pictures: Path) -> BoxFiles:
        ids: dict[str, dict[int, int]] = {section: {} for section in _SECTIONS}  # and the number of earlier ones
        paths, sizes, image_starts, names, crowds = [], [], array("q"), [], []
        starts, image_ids, category_ids, boxes, areas = array("q"), array("q"), array("q"), array("d"), array("d")
        for section, start, entry in self.entries():
            try:
                if not isinstance(entry["id"], int) or entry["id"] in ids[section]:
                    self.refuse(start, f"the id {entry['id']} is no whole number, or comes twice among {section}.")
                ids[section][entry["id"]] = len(ids[section])
                if section == "images":
                    paths.append(pictures / entry["file_name"])
                    sizes.append(written_size(entry.get("width"), entry.get("height")))
                    image_starts.append(start)
                    if not paths[-1].is_file():
                        self.refuse(start, f"the image {entry['file_name']} is not in {shown_path(pictures)}.")
                elif section == "categories":
                    names.append(entry["name"])
                else:
                    x, y, width, height = entry["bbox"]
                    area, crowd = entry.get("area", width * height), entry.get("iscrowd", 0)
                    boxes.extend((x, y, x + width, y + height))
                    starts.append(start)
                    image_ids.append(entry["image_id"])
                    category_ids.append(entry["category_id"])
                    areas.append(area)
                    crowds.append(crowd)
                    if not (width >= 0 and height >= 0 and area >= 0 and math.isfinite(sum(boxes[-4:]) + area)):
                        self.refuse(start, "width, height and area of an annotation are finite and not below 0.")
                    if crowd not in (0, 1):
                        self.refuse(start, f"iscrowd is {crowd}; expected 0 or 1.")
            except KeyError as error:
                self.refuse(start, f"the entry of {section} has no {error}, only {one_line(list(entry))}.")
            except (TypeError, ValueError, OverflowError, AttributeError):
                expected = "ids whole numbers, file_name a text, bbox four numbers x y width height, area a number"
                self.refuse(start, f"the entry of {section} can't be read; expected {expected}.")
        if not starts:
            self.refuse(0, "there are no annotations. Is it the file of a test part, whose truths are not public?")
        rows = self.rows_of("image_id", image_ids, ids["images"], starts)
        order = np.argsort(list(ids["categories"]))
        labels = np.argsort(order)[self.rows_of("category_id", category_ids, ids["categories"], starts)]
        by_picture = np.argsort(rows, kind="stable")
        begins = np.cumsum([0, *np.bincount(rows, minlength=len(paths))])
        cuts = begins[1:-1]
        columns = {"boxes": np.asarray(boxes).reshape(-1, 4), "labels": labels, "area": np.asarray(areas)}
        columns["iscrowd"] = np.array(crowds, dtype=np.uint8)
        parts = (np.split(values[by_picture], cuts) for values in columns.values())
        targets = [dict(zip(columns, values, strict=True)) for values in zip(*parts, strict=True)]

        def place(picture: int, box: int | None) -> Location:
            start = image_starts[picture] if box is None else starts[by_picture[begins[picture] + box]]
            return Location.in_text(self.file, self.text, start)

        return BoxFiles(paths, [*targets], class_names([names[i] for i in order], self.file, 0), sizes, place)

    def rows_of(self, key: str, ids: array[int], rows: dict[int, int], starts: array[int]) -> NDArray[np.int64]:
        """Return for each annotation the position of its image or category."""
        at = np.array([rows.get(each, -1) for each in ids], dtype=np.int64)
        if (lost := at < 0).any():
            row = int(np.argmax(lost))
            self.refuse(starts[row], f"no entry has the {key} {ids[row]} of this annotation. Mend or remove it.")
        return at

    def entries(self) -> Iterator[tuple[str, int, Any]]:
        """Yield (section, beginning, entry) of the three lists, whatever other keys there are."""
        at = self.skip(self.expect(self.skip(0), "{", "an object with images, annotations and categories"))
        while True:
            key, at = self.decoded(at)
            at = self.skip(self.expect(self.skip(at), ":", "':' after a key"))
            if key in _SECTIONS:
                at = self.skip(self.expect(at, "[", f"a list of {key}"))
                while self.text[at : at + 1] != "]":
                    entry, end = self.decoded(at)
                    yield key, at, entry
                    at = self.skip(end)
                    if self.text[at : at + 1] != "]":
                        at = self.skip(self.expect(at, ",", "',' or ']'"))
                at += 1
            else:
                _, at = self.decoded(at)
            at = self.skip(at)
            if self.text[at : at + 1] == "}":
                return
            at = self.skip(self.expect(at, ",", "',' or '}'"))

    def decoded(self, at: int) -> tuple[Any, int]:
        try:
            return _DECODER.raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            self.refuse(error.pos, f"not json: {error.msg}. Is the file cut off?")

    def expect(self, at: int, token: str, expected: str) -> int:
        if self.text[at : at + 1] != token:
            self.refuse(at, f"expected {expected}, found '{self.text[at : at + 10]}'.")
        return at + 1

    def skip(self, at: int) -> int:
        blanks = _BLANKS.match(self.text, at)
        return blanks.end() if blanks else at
