"""Atomic files: a reader sees the old content or the new, never a mixture, also after a power failure.

Content is written to disk before it gets its name. Names need no sync: the journal of a file system preserves their
order.
"""

import contextlib
import errno
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

# The user's umask, read before any plugin runs, so that a plugin that changes it does not affect our files.
_UMASK = os.umask(0o077)
os.umask(_UMASK)
_NOTE = 1024  # bytes of a note that is overwritten in place: less than a page, which is read atomically


def write_note(path: Path, facts: Mapping[str, object]) -> None:
    """Publish facts to other processes that poll `path`, as JSON that may end with blanks. Raises OSError.

    There is one writer, and the note need not survive a power failure. A short one is overwritten in place, since
    replacing a file makes the file system allocate and write it at once, several times a round.
    """
    content = json.dumps(dict(facts)).encode().ljust(_NOTE)
    with contextlib.suppress(FileNotFoundError), path.open("r+b", buffering=0) as file:
        if len(content) == _NOTE == os.fstat(file.fileno()).st_size:
            file.write(content)
            return
    temporary = path.with_name(f".{path.name}")
    temporary.write_bytes(content)
    temporary.replace(path)


def link_or_copy(source: Path | str, target: Path | str) -> None:
    """Create a file with constant content at another path, as a hard link if possible, else as a copy."""
    try:
        os.link(source, target)
    except OSError:  # another disk, a disk without links, or another user's file
        shutil.copy2(source, target)


def write_atomic(path: Path, content: bytes, *, durable: bool = True) -> bool:
    """Write `content` to `path` through a temporary file beside it.

    Returns False, without writing, if it has this content.

    durable: see `replace_file`.
    """
    with contextlib.suppress(OSError):
        if path.stat().st_size == len(content) and path.read_bytes() == content:
            return False
    with replace_file(path, durable=durable) as stream:
        stream.write(content)
    return True


@contextlib.contextmanager
def replace_file(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Context manager: a temporary file that replaces `path` at the end; deleted after an error.

    durable: False for files that can be created again after a power failure.
    """
    if path.is_dir():
        path.rmdir()  # a foreign folder; a non-empty one is an error
    os.umask(_UMASK)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        # mkstemp creates private files; results should have the permissions of the user's umask.
        Path(temporary).chmod(0o666 & ~_UMASK)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: object) -> bool:
    """Write `value` as readable json. nan is not json: write None for undefined values."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    return write_atomic(path, (text + "\n").encode())


@contextlib.contextmanager
def replace_folder(path: Path) -> Iterator[Path]:
    """Context manager: a new folder that replaces `path` at the end as a whole; deleted after an error.

    If several replace one `path`, the last one stays.
    """
    os.umask(_UMASK)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Hidden, with the permissions of the user's umask: those of mkdtemp are private.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    temporary.mkdir()
    try:
        yield temporary
        for folder, _, names in os.walk(temporary, topdown=False):
            for name in names:
                if (file := Path(folder, name)).is_file() and not file.is_symlink():
                    with file.open("rb") as stream:
                        os.fsync(stream.fileno())
        while True:
            try:
                temporary.rename(path)
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            # A folder can replace only an empty one, so the present one is moved away first.
            old = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
            with contextlib.suppress(FileNotFoundError):  # another process has moved it
                path.rename(old)
                shutil.rmtree(old)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
