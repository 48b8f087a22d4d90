"""Finds and opens the images of conversations."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ianvs.base.errors import DataError
from ianvs.base.lazy_images import MARK, Picture
from ianvs.config.strict_yaml import Steps
from ianvs.exam.data.content_digests import Say, read_contents
from ianvs.exam.data.records import RecordError

MARKS = re.compile(rf"{MARK}\n?")
PARTS = ("image", "image_url")  # types of a message's parts, of Hugging Face and OpenAI
IGNORE = "ignore"
_FIELDS = ("image", "images")  # of a record beside its text
_DATA_URL = re.compile(r"data:[\w/+.-]*(;[^,]*)?;base64,")


def names_in(record: Mapping[str, Any]) -> list[tuple[str, Steps]]:
    """Return (image as written, path in the record): those of fields, then those of message parts.

    Parts without a name take the names of the fields. Raises RecordError.
    """
    field = next((name for name in _FIELDS if record.get(name)), "")
    given = record.get(field) or []
    listed = isinstance(given, list)
    sources: list[tuple[object, Steps]] = [
        (source_name, (field, i) if listed else (field,)) for i, source_name in enumerate(given if listed else [given])
    ]
    sources += [(source, steps) for source, steps in _parts(record) if source is not None]
    for source_name, steps in sources:
        if not isinstance(source_name, str) or not source_name:
            raise RecordError("an image is given by the name of its file, or a data: URL.", *steps)
    return [(str(source_name), steps) for source_name, steps in sources]


def has_parts(record: Mapping[str, Any]) -> bool:
    """Return whether a part of a message is an image."""
    return any(True for _ in _parts(record))


def _parts(record: Mapping[str, Any]) -> Iterator[tuple[object, Steps]]:
    """Yield (image of a part, or None; path in the record) of all messages in order."""
    for field_name, value in record.items():
        for number, message in enumerate(value if isinstance(value, list) else ()):
            key = "value" if isinstance(message, dict) and "value" in message else "content"
            content = message.get(key) if isinstance(message, dict) else None
            for position, part in enumerate(content if isinstance(content, list) else ()):
                kind = part.get("type") if isinstance(part, dict) else None
                if kind in PARTS:
                    source = next((part[key] for key in (kind, "url", "path", "image") if key in part), None)
                    source = source.get("url") if isinstance(source, dict) else source
                    yield source, (field_name, number, key, position)


@dataclass(frozen=True)
class PictureFiles:
    """The images of a file of conversations. opened: opened images by name."""

    folder: Path
    opened: dict[str, Picture] = field(default_factory=dict)

    def pictures(self, user: Sequence[str], names: Sequence[tuple[str, Steps]]) -> tuple[Picture, ...]:
        """Return an image for each mark in the user's turns. Raises RecordError."""
        marks = sum(turn.count(MARK) for turn in user)
        if marks != len(names):
            counts = f"has {len(names)} image{'s' * (len(names) != 1)} and {marks} mark{'s' * (marks != 1)} {MARK}"
            remedy = f"Each image has a mark of its own in what the user says; `pictures: {IGNORE}` in the dataset"
            raise RecordError(
                f"{counts} for them. {remedy} leaves all out.",
                *(names[0][1][:1] if names else ()),
                code="mismatched-data",
            )
        for name, steps in names:
            if name not in self.opened:
                self.opened[name] = self._opened(name, steps)
        return tuple(self.opened[name] for name, _ in names)

    def _opened(self, name: str, steps: Steps) -> Picture:
        if name.startswith("data:"):
            begin = _DATA_URL.match(name)
            try:
                picture = Picture(base64.b64decode(name[begin.end() if begin else 0 :], validate=True))
            except (binascii.Error, ValueError) as error:
                raise RecordError(f"the image is a data: URL that can't be decoded ({error}).", *steps) from None
        elif "://" in name:
            where = "on the network, from where nothing is read. Fetch it, and name the file."
            raise RecordError(f"the image '{name[:80]}' is {where}", *steps, code="invalid-path")
        else:
            picture = Picture(None, self.folder / name)
        if picture.file is not None and not picture.file.is_file():
            remedy = f"Images are looked for in {self.folder}; `pictures: DIR` in the dataset says where they are"
            raise RecordError(
                f"there is no image '{name}'. {remedy}, `pictures: {IGNORE}` leaves them out.",
                *steps,
                code="missing-file",
            )
        try:
            picture.size  # noqa: B018 - it reads the head of the image
        except DataError as error:
            raise RecordError(f"{error} Replace it, or take it out.", *steps, code="unreadable-data") from None
        return picture


def picture_digests(conversations: Sequence[Any], cache_dir: Path, say: Say = None) -> list[list[str]]:
    """Return [i] SHA-256 of each image of conversation i, and store them in the images; [] if there are none."""
    pictures = {id(picture): picture for conversation in conversations for picture in conversation.pictures}
    files = [picture for picture in pictures.values() if picture.file is not None]
    digests = read_contents([str(picture.file) for picture in files], cache_dir, say)[1] if files else ()
    for picture, digest in zip(files, digests, strict=True):
        picture.sha256 = digest.tobytes().hex()
    return [[picture.sha256 for picture in conversation.pictures] for conversation in conversations] if pictures else []
