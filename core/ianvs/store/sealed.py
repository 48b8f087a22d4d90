"""Records that carry their own digest: read as they were written, or refused with the file's name."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ianvs.base.digests import CHANGED, content, differs, parsed, sealed_text
from ianvs.base.errors import DamagedError
from ianvs.store.files import write_atomic

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def read_sealed(path: Path | str, name: str, before: Sequence[int | str] | None = None) -> dict[str, Any] | None:
    """What `write_sealed` wrote under `name`, and its "digest"; None: it is not there.

    before: see ianvs.base.digests.parsed. Raises DamagedError, and IanvsError for a file that may not be read.
    """
    text = content(path)
    if text is None:
        return None
    found = parsed(text, name, before)
    if found is None:
        raise DamagedError(Path(path), CHANGED)
    return found


def checked(path: Path, record: Mapping[str, Any] | None, name: str | None = None) -> Path:
    """`path`, whose content is what `record`, of the folder that it lies in, noted. Raises DamagedError if it is not.

    name: under which it is noted; None: that of the file.
    """
    if record is None or differs(path, record["files"][name or path.name], thoroughly=True):
        raise DamagedError(path, CHANGED)
    return path


def write_sealed(path: Path, name: str, value: Mapping[str, object]) -> None:
    """name: what it is, such as its place in the workspace; under another one it is not believed."""
    write_atomic(path, sealed_text(value, name).encode())


def as_record(kind: type[T], stored: Mapping[str, Any], path: Path | str) -> T:
    """A dataclass from what is stored of it; fields of a later version are left out. Raises DamagedError."""
    known = _names(kind)
    try:
        return kind(**{name: value for name, value in stored.items() if name in known})
    except TypeError:
        raise DamagedError(Path(path), "was written by another version of ianvs") from None


@lru_cache(maxsize=64)
def _names(kind: type[DataclassInstance]) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(kind))


def remove(path: Path) -> None:
    """Whatever is there, if there is something."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
