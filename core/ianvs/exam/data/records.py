"""The records of a .json (a list) or .jsonl (one per line) file, and the place of each of them and of their parts.

A task of Natural Instructions (Mishra et al. 2022, Wang et al. 2022), an object with "Definition" and "Instances", is
read as the list of its instances, each with the definition.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ianvs.base.error_codes import ErrorCode
from ianvs.base.errors import Location, ValidationError, closest, one_line
from ianvs.config.strict_yaml import Step
from ianvs.exam.data.index import PICTURE_SUFFIXES, read_text, suffix_of
from ianvs.exam.data.listing import SourceError

DEFINITION, INSTANCES = "Definition", "Instances"  # keys of a task of Natural Instructions
_DECODER = json.JSONDecoder()
_COLUMNS = {"image", "images", "img", "path", "paths", "file", "files", "filename", "x", "mask", "masks", "label", "y"}
_BLANKS = " \t\n\r"
_KINDS = {dict: "an object", list: "an array", str: "a text", bool: "true or false", type(None): "null"}


class RecordError(Exception):
    """An error of a record: the message, the path to the value within the record, and the error code."""

    def __init__(self, message: str, *steps: Step, code: ErrorCode = "invalid-record") -> None:
        super().__init__(message)
        self.message, self.steps = message, steps
        self.code: ErrorCode = code


@dataclass(frozen=True)
class Records:
    """The records of a file.

    Attributes:
        values: The records.
        starts: Where each begins in the file's text; () for rows of a table, whose cells have no place of their own.
        lines: The line of each record.
        called: What precedes a message on a record: a format of its `index` from 0, or its `number` from 1.
    """

    path: Path
    values: tuple[Any, ...]
    starts: tuple[int, ...]
    lines: tuple[int, ...]
    called: str = ""

    @cached_property
    def text(self) -> str:
        """The file's text, read again when an error needs it: keeping it would double the memory of a large file."""
        return read_text(self.path)

    def place(self, index: int, *steps: Step) -> Location:
        """Return where record `index` begins, or the value at the path `steps` in it, as far as that exists."""
        if not self.starts:
            return Location.of_line(self.path, self.lines[index])
        position = self.starts[index]
        for step in steps:
            child = next((at for name, at in _json_children(self.text, position) if name == step), None)
            if child is None:
                break
            position = child
        return Location.in_text(self.path, self.text, position)

    def error(self, index: int, error: RecordError) -> ValidationError:
        """Return an error of record `index` with its place."""
        called = self.called.format(index=index, number=index + 1)
        return ValidationError(f"{called}{error.message}", self.place(index, *error.steps), code=error.code)


def read_records(path: Path) -> Records:
    """Return all records, at least one. Raises SourceError with line and column if the file is no json list of
    records.
    """
    text = read_text(path)
    by_line = suffix_of(path) == ".jsonl" and (text[_skip(text, 0)] != "[" or _first_line_is_whole(text))
    pairs = list(_lines(path, text) if by_line else _array(path, text))
    if not pairs:
        raise SourceError.single("has no samples.", Location(path), "empty-dataset")
    lines, line, before = [], 1, 0
    for _, start in pairs:
        line, before = line + text.count("\n", before, start), start
        lines.append(line)
    values, starts = zip(*pairs, strict=True)
    return Records(path, values, starts, tuple(lines))


def _first_line_is_whole(text: str) -> bool:
    """Return whether the first line is json and others follow it."""
    first, _, rest = text.lstrip().partition("\n")
    if not rest.strip():
        return False
    try:
        json.loads(first)
    except json.JSONDecodeError:
        return False
    return True


def json_kind(value: object) -> str:
    """Return the type of a value, for messages."""
    return _KINDS.get(type(value), "a number")


def _lines(path: Path, text: str) -> Iterator[tuple[Any, int]]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        line = text[start : end if end >= 0 else None]
        if line.strip():
            try:
                yield json.loads(line), start + len(line) - len(line.lstrip())
            except json.JSONDecodeError as error:
                raise SourceError([_syntax_error(path, text, start + error.pos, error.msg)]) from None
        start += len(line) + 1


def _array(path: Path, text: str) -> Iterator[tuple[Any, int]]:
    """Yield the entries of a list, or the instances of a task. Raises SourceError for anything else."""
    position = _skip(text, 0)
    value, end = _decoded(path, text, position)
    after = _skip(text, end)
    if after < len(text):
        hint = " A file with one record on each line is called .jsonl." if text[after] == "{" else ""
        raise SourceError([_syntax_error(path, text, after, "Extra data", hint)])
    if isinstance(value, list):
        yield from zip(value, (start for _, start in _json_children(text, position)), strict=True)
        return
    places, location = dict(_json_children(text, position)), Location.in_text(path, text, position)
    if not isinstance(value, dict) or not {DEFINITION, INSTANCES} & value.keys():
        yield from _records_in_object(value, text, position, location)
        return
    for name in (DEFINITION, INSTANCES):
        if name not in value:
            message = f"is a task of Natural Instructions without '{name}'.{closest(name, value)}"
            raise SourceError.single(f"{message} It has: {one_line(list(value))}.", location, "invalid-record")
        if not isinstance(value[name], list) and not (name == DEFINITION and isinstance(value[name], str)):
            message = f"'{name}' is {json_kind(value[name])}; expected an array."
            raise SourceError.single(message, Location.in_text(path, text, places[name]), "invalid-record")
    if not value[INSTANCES]:
        message = f"'{INSTANCES}' is empty; expected the samples of the task."
        raise SourceError.single(message, Location.in_text(path, text, places[INSTANCES]), "empty-dataset")
    starts = [start for _, start in _json_children(text, places[INSTANCES])]
    for instance, start in zip(value[INSTANCES], starts, strict=True):
        yield ({DEFINITION: value[DEFINITION], **instance} if isinstance(instance, dict) else instance), start


def _records_in_object(value: Any, text: str, position: int, location: Location) -> Iterator[tuple[Any, int]]:
    """Yield the records of a json object: one of lists, of records by ids, or with a list inside.

    Raises SourceError for anything else.
    """
    described = f"{json_kind(value)}"
    if isinstance(value, dict) and value:
        places = dict(_json_children(text, position))
        lists = [name for name, inner in value.items() if isinstance(inner, list)]
        inside = [name for name in lists if value[name] and all(isinstance(record, dict) for record in value[name])]
        # Turns of a conversation are no records.
        inside = [name for name in inside if not {"role", "from", "human"} & value[name][0].keys()]
        if len(inside) == 1 and len(lists) == 1:
            starts = (start for _, start in _json_children(text, places[inside[0]]))
            yield from zip(value[inside[0]], starts, strict=True)
            return
        if (images := _image_rows(value)) is not None:
            yield from ((image, places[name]) for name, image in images)
            return
        if (frame := _data_frame(value)) is not None:
            yield from ((row, position) for row in frame)
            return
        if all(isinstance(inner, dict) for inner in value.values()):
            yield from (({"id": name, **inner}, places[name]) for name, inner in value.items())
            return
        if len(lists) == len(value) and not inside and any(value.values()):
            counts = {name: len(value[name]) for name in lists}
            if len({*counts.values()}) == 1:
                rows = zip(*value.values(), strict=True)
                yield from ((dict(zip(value, row, strict=True)), position) for row in rows)
                return
            described = (
                f"an object of lists of several lengths ({one_line([f'{name}: {n}' for name, n in counts.items()])})"
            )
        elif len(inside) > 1:
            described = f"an object with several lists of records, {one_line(inside)}: give each a file of its own"
        else:
            described = f"an object with {one_line([repr(name) for name in value])}"
    message = (
        f"expected records, `[{{...}}, {{...}}]`, or one on each line of a .jsonl, found {described}. Read are also an "
        "object of lists, one for each column; of records by their ids; with one list of records in it; of lists of "
        "images by class; and of classes by image."
    )
    raise SourceError.single(message, location, "invalid-record")


def _image_rows(value: dict[str, Any]) -> list[tuple[str, dict[str, Any]]] | None:
    """Return (key, record) for each image of an object with lists of images by class, or classes by image.

    None for any other object, such as one with the columns image and mask.
    """
    if all(isinstance(label, str | int) and _is_image(name) for name, label in value.items()):
        return [(name, {"image": name, "label": label}) for name, label in value.items()]
    if any(name.casefold() in _COLUMNS for name in value):
        return None
    if all(isinstance(images, list) and all(map(_is_image, images)) for images in value.values()):
        return [(name, {"image": image, "label": name}) for name, images in value.items() for image in images] or None
    return None


def _is_image(written: object) -> bool:
    return isinstance(written, str) and written.lower().endswith(PICTURE_SUFFIXES)


def _data_frame(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of a data frame as pandas writes it, an object of columns by row number; None for others."""
    first = next(iter(value.values()))
    if not isinstance(first, dict) or not first or not all(row.isdecimal() for row in first):
        return None
    if not all(isinstance(column, dict) and column.keys() == first.keys() for column in value.values()):
        return None
    return [{name: column[row] for name, column in value.items()} for row in first]


def _decoded(path: Path, text: str, position: int) -> tuple[Any, int]:
    """Return (the value that begins at `position`, the position after it)."""
    try:
        return _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        raise SourceError([_syntax_error(path, text, error.pos, error.msg)]) from None


def _json_children(text: str, position: int) -> Iterator[tuple[Step, int]]:
    """Yield (key or index, where its value begins) of the well-formed object or array at `position`; nothing for
    others.
    """
    opening = text[position]
    if opening not in "{[":
        return
    position, count = _skip(text, position + 1), 0
    while text[position] not in "}]":
        name: Step = count
        if opening == "{":
            name, end = _DECODER.raw_decode(text, position)
            position = _skip(text, _skip(text, end) + 1)  # skips the colon
        yield name, position
        _, end = _DECODER.raw_decode(text, position)
        position, count = _skip(text, end), count + 1
        if text[position] == ",":
            position = _skip(text, position + 1)


def _skip(text: str, position: int) -> int:
    """Return the first position from `position` on without a blank."""
    while position < len(text) and text[position] in _BLANKS:
        position += 1
    return position


def _syntax_error(path: Path, text: str, position: int, reason: str, hint: str = "") -> ValidationError:
    return ValidationError(
        f"is not json: {reason}.{hint}", Location.in_text(path, text, position), code="unreadable-data"
    )
