"""replies.csv, or replies.csv.gz where it is large: written as a stream, and anew only of cases that have changed."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from ianvs.base.digests import differs, noted
from ianvs.store.files import write_json

LARGEST = 100_000_000
"""Bytes of replies.csv; more are written as replies.csv.gz."""

_INDEX = ".replies.json"
_NEW = ".replies.new"

Piece = tuple[str, Iterable[str]]
"""What a part of the file is made from, such as digests, and its texts; they are read only if that has changed."""


def write_reply_file(folder: Path, pieces: Sequence[Piece]) -> Path | None:
    """Write `pieces` one after the other, but for those that are there; the file's path, None where there are none.

    They are compressed one by one while they are made, which gzip allows, until it is known how much they are.
    """
    before, new, small, large = _before(folder), folder / _NEW, folder / "replies.csv", folder / "replies.csv.gz"
    if before is not None and [key for key, _, _ in before.pieces] == [key for key, _ in pieces]:
        return before.path
    if not pieces:
        for path in (small, large, folder / _INDEX):
            path.unlink(missing_ok=True)
        return None
    folder.mkdir(parents=True, exist_ok=True)
    told: list[tuple[str, int, int]] = []
    with new.open("wb") as file:
        for key, texts in pieces:
            start = file.tell()
            size = before.copy(key, file) if before is not None else None
            told.append((key, _compressed(texts, file) if size is None else size, file.tell() - start))
    path, other = (small, large) if sum(size for _, size, _ in told) <= LARGEST else (large, small)
    if path is small:
        with gzip.open(new) as packed, (plain := folder / f"{_NEW}.csv").open("wb") as file:
            shutil.copyfileobj(packed, file)
        plain.replace(new)
    new.replace(path)
    other.unlink(missing_ok=True)
    write_json(folder / _INDEX, {"file": path.name, "noted": noted(path), "pieces": told})
    return path


class _Before:
    """The file that is there. pieces: of what, bytes of text, and of them compressed."""

    def __init__(self, path: Path, pieces: Sequence[tuple[str, int, int]]) -> None:
        self.path, self.pieces = path, pieces
        self._large = path.suffix == ".gz"
        self._places: dict[str, tuple[int, int, int]] = {}
        start = 0
        for key, size, packed in pieces:
            length = packed if self._large else size
            self._places[key] = start, length, size
            start += length

    def copy(self, key: str, to: IO[bytes]) -> int | None:
        """Copy a piece, compressed; the bytes of its text, None where it is not there."""
        if key not in self._places:
            return None
        start, length, size = self._places[key]
        with self.path.open("rb") as file:
            file.seek(start)
            blocks = iter(lambda: file.read(min(1 << 20, length - (file.tell() - start))), b"")
            if self._large:
                to.writelines(blocks)
            else:
                with _packing(to) as packed:
                    packed.writelines(blocks)
        return size


def _before(folder: Path) -> _Before | None:
    """None: there is none, or it is not as it was written."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        index = json.loads((folder / _INDEX).read_bytes())
        path = folder / index["file"]
        if not differs(path, index["noted"]):
            return _Before(path, [(key, size, packed) for key, size, packed in index["pieces"]])
    return None


def _compressed(texts: Iterable[str], to: IO[bytes]) -> int:
    """Bytes before they were compressed."""
    size = 0
    with _packing(to) as packed:
        for text in texts:
            size += packed.write(text.encode())
    return size


def _packing(to: IO[bytes]) -> IO[bytes]:
    return cast("IO[bytes]", gzip.GzipFile(filename="", mode="wb", fileobj=to, mtime=0))
