"""Atomic files: a reader sees the old content or the new, never half of it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["read_json", "replace_folder", "write_atomic", "write_json"]


def write_atomic(path: Path, content: bytes) -> bool:
    """Put `content` at `path`, through a temporary file beside it. False, and no write, if it is there already."""
    with contextlib.suppress(OSError):
        if path.stat().st_size == len(content) and path.read_bytes() == content:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp makes files private; results are meant to be shared as far as the user's umask allows.
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return True


def write_json(path: Path, value: object) -> bool:
    """`value` as readable json. nan is not json: write None for what can't be computed."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    return write_atomic(path, (text + "\n").encode())


def read_json(path: Path) -> Any:
    """Content of a json file, or None where there is no complete one (missing, cut off, not json)."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


@contextlib.contextmanager
def replace_folder(path: Path) -> Iterator[Path]:
    """A new folder to fill, which takes the place of `path` at the end as a whole; dropped if an error comes first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield temporary
        if path.exists():
            shutil.rmtree(path)
        temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
