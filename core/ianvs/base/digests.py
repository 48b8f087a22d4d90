"""Checksums of stored files. They detect damage and careless edits, not somebody who recomputes them."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from ianvs.base.errors import DamagedError, IanvsError, shown_path

CHANGED = "is gone, or was changed after it was stored"
_CHECKSUM = '{"checksum": "'
_BLOCK = 1 << 18  # bytes that are read at a time


def noted(path: Path) -> list[int | str]:
    """[size, modification time in ns, digest] of a file, for `differs`; ready for json."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, _file_digest(path, stat.st_size)]


def differs(path: Path | str, before: Sequence[int | str], *, thoroughly: bool = False) -> bool:
    """Whether a file is gone, or has another content than when it was `noted`.

    It is read only if its size or modification time is another one, or `thoroughly`. Raises IanvsError where it may not
    be looked at.
    """
    size, modified, digest = before
    try:
        stat = os.stat(path)  # noqa: PTH116 - for thousands of names, of which hardly any has to become a Path
        if stat.st_size != size:
            return True
        return (thoroughly or stat.st_mtime_ns != modified) and _file_digest(Path(path), stat.st_size) != digest
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return True
    except OSError as error:
        raise unreadable(Path(path), error) from error


def doubt(path: Path) -> bool:
    """Have `differs` read a file although its size and time are those that were noted; whether that could be done."""
    try:
        os.utime(path)
    except OSError:
        return False
    return True


def content(path: Path | str) -> bytes | None:
    """Content of a file; None: it is not there. Raises DamagedError for a folder, IanvsError for what can't be read."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - as in `differs`
            return file.readall()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError:
        raise DamagedError(Path(path), "is a folder") from None
    except OSError as error:
        raise unreadable(Path(path), error) from error


def checksummed_text(value: Mapping[str, object], name: str) -> str:
    """Serialise `value` as JSON that begins with the checksum of all that follows the first line.

    Args:
        value: What to serialise; each of its keys becomes a line.
        name: What the file is, for example "<case>/result.json". It is part of the content: a file that was copied to
            the place of another one is not taken for it.
    """
    entries = {"file": name, **value}
    lines = ",\n".join(
        f"{json.dumps(key)}: {json.dumps(entry, separators=(',', ':'))}" for key, entry in entries.items()
    )
    rest = f"{lines}\n}}\n"
    return f'{_CHECKSUM}{_digest_of(rest.encode())}",\n{rest}'


def parse_checksummed(text: bytes, name: str) -> dict[str, Any] | None:
    """What `checksummed_text` was given; None if the text was damaged, or is of another name."""
    head, _, rest = text.partition(b"\n")
    if head != f'{_CHECKSUM}{_digest_of(rest)}",'.encode():
        return None
    try:
        value: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        return None
    del value["checksum"]
    return value if value.pop("file", None) == name else None


def checksum(file: IO[bytes]) -> list[int | str]:
    """[size, digest] of an open file, which is read from the beginning and left there."""
    digest, size = hashlib.blake2b(digest_size=20), 0
    file.seek(0)
    while block := file.read(_BLOCK):
        digest.update(block)
        size += len(block)
    file.seek(0)
    return [size, digest.hexdigest()]


def _digest_of(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=20).hexdigest()


def _file_digest(path: Path, size: int) -> str:
    """Of the first `size` bytes: a file that grows meanwhile is not read without end."""
    hasher = hashlib.blake2b(digest_size=20)
    with path.open("rb", buffering=0) as file:
        while size > 0 and (block := file.read(min(size, _BLOCK))):
            hasher.update(block)
            size -= len(block)
    return hasher.hexdigest()


def unreadable(path: Path, error: OSError) -> IanvsError:
    return IanvsError(
        f"{shown_path(path)} can't be read: {error.strerror}. Nothing was written. "
        "Make it readable, or remove it if it is yours: the next run makes it again.",
        code="unreadable-file",
    )
