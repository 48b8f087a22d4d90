"""Atomic files: a reader sees the old content or the new, never half of it, also after a power failure.

Content is on the disk before it gets its name. Names need no sync of their own: a file system's journal has them in the
order in which they were given.
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

# The user's, read before any plugin has run: one that changes it makes none of our files unreadable.
_UMASK = os.umask(0o077)
os.umask(_UMASK)
_NOTE = 1024  # bytes of a note that is overwritten in place: part of a page, which is read whole


def write_note(path: Path, facts: Mapping[str, object]) -> None:
    """Publish facts to other processes that poll `path`, as JSON that may end with blanks. Raises OSError.

    There is one writer, and the note need not survive a power failure. A short one is overwritten in place: to rename a
    file over another makes the file system allocate and write it at once, several times a round.
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
    """Make a file of which nobody changes the content appear at another path; without a copy where the disk can."""
    try:
        os.link(source, target)
    except OSError:  # another disk, one without links, or somebody else's file
        shutil.copy2(source, target)


def write_atomic(path: Path, content: bytes, *, durable: bool = True) -> bool:
    """Put `content` at `path`, through a temporary file beside it. False, and no write, if it is there already.

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
    """A temporary file to write, which takes the place of `path` at the end; dropped if an error comes first.

    durable: False for what is made again where a power failure has damaged it.
    """
    if path.is_dir():
        path.rmdir()  # none of ours; one that is not empty is an error
    os.umask(_UMASK)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        # mkstemp makes files private; results are meant to be shared as far as the user's umask allows.
        Path(temporary).chmod(0o666 & ~_UMASK)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: object) -> bool:
    """`value` as readable json. nan is not json: write None for what can't be computed."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    return write_atomic(path, (text + "\n").encode())


@contextlib.contextmanager
def replace_folder(path: Path) -> Iterator[Path]:
    """A new folder to fill, which takes the place of `path` at the end as a whole; dropped if an error comes first.

    Of several at once for one `path` the last to end stays.
    """
    os.umask(_UMASK)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Hidden, and open to whom the user's umask lets read: mkdtemp's are closed to all others.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    temporary.mkdir()
    try:
        yield temporary
        for folder, _, names in os.walk(temporary, topdown=False):
            for name in names:
                if (file := Path(folder, name)).is_file() and not file.is_symlink():
                    with file.open("rb") as stream:
                        os.fsync(stream.fileno())
        _put(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _put(new: Path, path: Path) -> None:
    """Rename the folder `new` to `path`. What is there is moved away first: a folder can replace only an empty one."""
    while True:
        try:
            new.rename(path)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        old = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        with contextlib.suppress(FileNotFoundError):  # another process has just moved it
            path.rename(old)
            shutil.rmtree(old)
