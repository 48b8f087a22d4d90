"""Digests beside what is stored: what was damaged or changed by hand since is found, and not believed.

They guard against accidents and careless hands. Who changes a file and all its digests is not found out.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ianvs.base.errors import DamagedError, IanvsError, shown_path

CHANGED = "is gone, or was changed after it was stored"
_SEAL = "digest"  # the last key of a sealed file
_OF_BYTES = b'{"seal": "'  # how one begins whose digest is that of its text from the second line on
_BLOCK = 1 << 18  # bytes that are read at a time
_READABLE = 1 << 18  # characters of a text with a line for each number, which takes ten times as long to write


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
        raise _unreadable(Path(path), error) from error


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
        raise _unreadable(Path(path), error) from error


def sealed_text(value: Mapping[str, object], name: str) -> str:
    """`value` with its digest. name: what it is, such as its place: under another one the digest does not hold."""
    text = json.dumps(value, separators=(",", ":"))
    digest = _digest_of(f"{name}\n{text}".encode())
    if len(text) < _READABLE or not value:
        return json.dumps({**value, _SEAL: digest}, indent=1) + "\n"
    return f'{text[:-1]},"{_SEAL}":"{digest}"}}\n'  # to write it once more would take half of the time


def sealed_bytes(value: Mapping[str, object], name: str) -> bytes:
    """As `sealed_text`, for what is large and is read often: to look at this seal takes a tenth of the time."""
    rest = json.dumps(value, separators=(",", ":")).encode()[1:] + b"\n"
    return _OF_BYTES + _digest_of(f"{name}\n".encode() + rest).encode() + b'",\n' + rest


def holds(content: bytes, before: Sequence[int | str]) -> bool:
    """Whether this is the content of a file when it was `noted`."""
    return _digest_of(content) == before[2]


def parsed(text: bytes, name: str, before: Sequence[int | str] | None = None) -> dict[str, object] | None:
    """What `sealed_text` or `sealed_bytes` was given, with the digest; None: it is damaged, changed, or something else.

    before: of the file when it was believed and `noted`. Nobody has to look at the seal of the same bytes again, which
    takes most of the time where there are thousands of files.
    """
    try:
        if before is not None and _digest_of(text) == before[2]:
            whole: dict[str, object] = json.loads(text)
            return whole
        if text.startswith(_OF_BYTES):
            head, _, rest = text.partition(b"\n")
            seal = _digest_of(f"{name}\n".encode() + rest).encode()
            return dict(json.loads(text)) if head == _OF_BYTES + seal + b'",' else None
        value = json.loads(text)
        if not isinstance(value, dict):
            return None
        digest = value.pop(_SEAL, None)
        return {**value, _SEAL: digest} if digest == _seal(value, name) else None
    except (ValueError, RecursionError):
        return None


def _seal(value: Mapping[str, object], name: str) -> str:
    text = json.dumps(value, separators=(",", ":"))
    return _digest_of(f"{name}\n{text}".encode())


def _digest_of(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=20).hexdigest()


def _file_digest(path: Path, size: int) -> str:
    """Of the first `size` bytes: a file that grows meanwhile is not read without end."""
    found = hashlib.blake2b(digest_size=20)
    with path.open("rb", buffering=0) as file:
        while size > 0 and (block := file.read(min(size, _BLOCK))):
            found.update(block)
            size -= len(block)
    return found.hexdigest()


def _unreadable(path: Path, error: OSError) -> IanvsError:
    return IanvsError(
        f"{shown_path(path)} can't be read: {error.strerror}. Nothing was written. "
        "Make it readable, or remove it if it is yours: the next run makes it again.",
        code="unreadable-file",
    )
