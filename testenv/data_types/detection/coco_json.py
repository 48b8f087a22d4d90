"""Reader of COCO's json: images, annotations and categories (cocodataset.org/#format-data).

Entries are decoded one by one and only their numbers are kept, so that polygons of masks take no memory, and an error
can tell where its entry begins.
"""

from __future__ import annotations

import json
import os
import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError, Place, one_line, shown_path
from ianvs.testenv.data_types.detection.box_files import BoxFiles, class_names, text_of

__all__ = ["read_coco"]

_KEYS = {
    "images": ("id", "file_name"),
    "annotations": ("id", "image_id", "category_id", "bbox"),
    "categories": ("id", "name"),
}
_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\n\r]*")


def read_coco(annotations: Path, pictures: Path) -> BoxFiles:
    """annotations: the json file. pictures: the folder from which its `file_name` count.

    Classes are in the order of their ids. Labels have iscrowd, and `area` of the file: COCO's are areas of masks.
    Pictures without annotations stay. Raises DataError.
    """
    return _Reader(annotations).read(pictures)


class _Reader:
    def __init__(self, file: Path) -> None:
        self.file, self.text = file, text_of(file)

    def refuse(self, position: int, message: str) -> NoReturn:
        raise DataError(f"{Place.in_text(self.file, self.text, position)}: {message}")

    def read(self, pictures: Path) -> BoxFiles:
        ids = {section: array("q") for section in _KEYS}
        starts = {section: array("q") for section in _KEYS}
        names: dict[str, list[Any]] = {"images": [], "categories": []}
        image_ids, category_ids, boxes, areas, crowds = array("q"), array("q"), array("d"), array("d"), array("b")
        for section, start, entry in self.entries():
            try:
                ids[section].append(entry["id"])
                if section == "annotations":
                    image_ids.append(entry["image_id"])
                    category_ids.append(entry["category_id"])
                    x, y, width, height = entry["bbox"]
                    boxes.extend((x, y, x + width, y + height))
                    areas.append(entry.get("area", width * height))
                    crowds.append(entry.get("iscrowd", 0))
                else:
                    names[section].append(entry[_KEYS[section][1]])
            except KeyError as error:
                self.refuse(start, f"the entry of {section} has no {error}, only {one_line(list(entry))}.")
            except (TypeError, ValueError, OverflowError, AttributeError):
                expected = "ids whole numbers, bbox four numbers x y width height, area a number, iscrowd 0 or 1"
                self.refuse(start, f"the entry of {section} can't be read; expected {expected}.")
            starts[section].append(start)
        if not ids["annotations"]:
            self.refuse(0, "there are no annotations. Is it the file of a test part, whose truths are not public?")
        for section in _KEYS:
            if (row := _repeated(np.asarray(ids[section]))) is not None:
                self.refuse(starts[section][row], f"the id {ids[section][row]} comes twice among {section}.")
        rows = self.found("images", ids["images"], image_ids, starts)
        order = np.argsort(np.asarray(ids["categories"]))
        labels = np.argsort(order)[self.found("categories", ids["categories"], category_ids, starts)]
        corners = np.asarray(boxes).reshape(-1, 4)
        flags, area = np.asarray(crowds).astype(np.uint8), np.asarray(areas)
        self.check(corners, area, flags, starts["annotations"])
        paths = self.paths(pictures, names["images"], starts["images"])
        by_picture = np.argsort(rows, kind="stable")
        cuts = np.cumsum(np.bincount(rows, minlength=len(paths)))[:-1]
        columns = {"boxes": corners, "labels": labels, "iscrowd": flags, "area": area}
        parts = (np.split(values[by_picture], cuts) for values in columns.values())
        targets = [dict(zip(columns, values, strict=True)) for values in zip(*parts, strict=True)]
        return BoxFiles(paths, [*targets], class_names([names["categories"][i] for i in order], self.file, 0))

    def found(self, section: str, ids: array[int], asked: array[int], starts: dict[str, array[int]]) -> NDArray[Any]:
        """Of each annotation the position of its picture or category."""
        known, wanted = np.asarray(ids), np.asarray(asked)
        order = np.argsort(known)
        at = order[np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)] if len(known) else 0 * wanted - 1
        if (lost := (at < 0) | (known[at] != wanted if len(known) else True)).any():
            row = int(np.argmax(lost))
            key = "image_id" if section == "images" else "category_id"
            message = f"{key} {wanted[row]} is no id of {section}. Mend or remove the entry."
            self.refuse(starts["annotations"][row], message)
        return at

    def check(self, corners: NDArray[np.float64], area: NDArray[Any], flags: NDArray[Any], starts: array[int]) -> None:
        slips = {
            "bbox is not finite": ~np.isfinite(corners).all(axis=1),
            "bbox has a width or height below 0; it is x y width height": (corners[:, 2:] < corners[:, :2]).any(axis=1),
            "area is not a number from 0 on": ~(np.isfinite(area) & (area >= 0)),
            "iscrowd is not 0 or 1": flags > 1,
        }
        for what, wrong in slips.items():
            if wrong.any():
                self.refuse(starts[int(np.argmax(wrong))], f"of the annotation, {what}. Mend or leave out the entry.")

    def paths(self, pictures: Path, names: list[Any], starts: array[int]) -> list[Path]:
        folder = os.fspath(pictures)
        for name, start in zip(names, starts, strict=True):
            if not isinstance(name, str) or not os.path.isfile(f"{folder}/{name}"):  # noqa: PTH113 - of 100 000 files
                self.refuse(start, f"the picture {name} is not in {shown_path(pictures)}. Name the folder that has it.")
        return [pictures / name for name in names]

    def entries(self) -> Iterator[tuple[str, int, Any]]:
        """(section, where it begins, entry) of the three lists, whatever stands beside them."""
        at = self.skip(self.expect(self.skip(0), "{", "an object with images, annotations and categories"))
        while True:
            key, at = self.decoded(at)
            at = self.skip(self.expect(self.skip(at), ":", "':' after a key"))
            if key in _KEYS:
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

    def expect(self, at: int, what: str, said: str) -> int:
        if self.text[at : at + 1] != what:
            self.refuse(at, f"expected {said}, found '{self.text[at : at + 10]}'.")
        return at + 1

    def skip(self, at: int) -> int:
        found = _BLANKS.match(self.text, at)
        return found.end() if found else at


def _repeated(ids: NDArray[np.int64]) -> int | None:
    """Position of one that occurred before."""
    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    return int(order[again + 1].min()) if len(again) else None
