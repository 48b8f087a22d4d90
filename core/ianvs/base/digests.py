"""Checksums of stored files. They detect damage and careless edits, not somebody who recomputes them."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from ianvs.base.errors import DamagedError, IanvsError, shown_path

CHANGED_MESSAGE = "is missing, or was changed after it was stored"
_CHECKSUM = '{"checksum": "'
_BLOCK = 1 << 18  # bytes read at a time


def file_state(path: Path) -> list[int | str]:
    """Return [size, modification time in ns, digest] of a file, for `has_changed`. json can represent it."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, _file_digest(path, stat.st_size)]


def has_changed(path: Path | str, before: Sequence[int | str], *, thoroughly: bool = False) -> bool:
    """Return whether a file is missing, or its content differs from its `file_state` before.

    Its content is read only if the modification time changed, or if `thoroughly`; another size suffices. Raises
    IanvsError if the file may not be read.
    """
    size, modified, digest = before
    try:
        stat = os.stat(path)  # noqa: PTH116 - faster than Path for thousands of names
        if stat.st_size != size:
            return True
        return (thoroughly or stat.st_mtime_ns != modified) and _file_digest(Path(path), stat.st_size) != digest
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return True
    except OSError as error:
        raise unreadable_error(Path(path), error) from error


def force_reread(path: Path) -> bool:
    """Make `has_changed` read a file, by changing its modification time. Returns whether that succeeded."""
    try:
        os.utime(path)
    except OSError:
        return False
    return True


def read_bytes(path: Path | str) -> bytes | None:
    """Return a file's content, None if it is missing. Raises DamagedError for a folder, IanvsError if unreadable."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - as in `has_changed`
            return file.readall()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError:
        raise DamagedError(Path(path), "is a folder") from None
    except OSError as error:
        raise unreadable_error(Path(path), error) from error


def checksummed_text(value: Mapping[str, object], name: str) -> str:
    """Serialise `value` as JSON whose first line is the checksum of the rest.

    Args:
        value: The mapping; each key becomes a line.
        name: The name of the file, for example "<case>/result.json". It is part of the content, so that a file that was
            copied over another one is detected.
    """
    entries = {"file": name, **value}
    lines = ",\n".join(
        f"{json.dumps(key)}: {json.dumps(entry, separators=(',', ':'))}" for key, entry in entries.items()
    )
    rest = f"{lines}\n}}\n"
    return f'{_CHECKSUM}{hashlib.blake2b(rest.encode(), digest_size=20).hexdigest()}",\n{rest}'


def parse_checksummed(text: bytes, name: str) -> dict[str, Any] | None:
    """Return the value given to `checksummed_text`; None if the text is damaged, or is that of another file."""
    head, _, rest = text.partition(b"\n")
    if head != f'{_CHECKSUM}{hashlib.blake2b(rest, digest_size=20).hexdigest()}",'.encode():
        return None
    try:
        value: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        return None
    del value["checksum"]
    return value if value.pop("file", None) == name else None


def checksum(file: IO[bytes]) -> list[int | str]:
    """Return [size, digest] of an open file. Its position is the beginning afterwards."""
    digest, size = hashlib.blake2b(digest_size=20), 0
    file.seek(0)
    while block := file.read(_BLOCK):
        digest.update(block)
        size += len(block)
    file.seek(0)
    return [size, digest.hexdigest()]


def _file_digest(path: Path, size: int) -> str:
    """Digest the first `size` bytes: a file that grows meanwhile is not read without end."""
    hasher = hashlib.blake2b(digest_size=20)
    with path.open("rb", buffering=0) as file:
        while size > 0 and (block := file.read(min(size, _BLOCK))):
            hasher.update(block)
            size -= len(block)
    return hasher.hexdigest()


def unreadable_error(path: Path, error: OSError) -> IanvsError:
    return IanvsError(
        f"{shown_path(path)} can't be read: {error.strerror}. Nothing was written. "
        "Make it readable, or remove it: the next run writes it again.",
        code="unreadable-file",
    )
