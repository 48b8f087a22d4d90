"""JSON files with a checksum: a changed file is refused with its name."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ianvs.base.digests import CHANGED_MESSAGE, checksummed_text, has_changed, parse_checksummed, read_bytes
from ianvs.base.errors import DamagedError
from ianvs.base.former_names import names_of_today
from ianvs.store.earlier import parse_earlier
from ianvs.store.files import write_atomic

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def read_checksummed(path: Path | str, name: str) -> dict[str, Any] | None:
    """Read what `write_checksummed` wrote under `name`.

    Returns:
        The content; None if there is no such file.

    Raises:
        DamagedError: The checksum is wrong, or the file was written under another name.
        IanvsError: The file may not be read.
    """
    text = read_bytes(path)
    if text is None:
        return None
    value = parse_checksummed(text, name)
    if value is None:
        value = parse_earlier(text, name)
    if value is None:
        raise DamagedError(Path(path), CHANGED_MESSAGE)
    return value


def write_checksummed(path: Path, name: str, value: Mapping[str, object], *, durable: bool = True) -> None:
    """Write `value` atomically.

    Args:
        path: The file.
        name: What the file is, for example its path in the workspace.
        value: Its content.
        durable: False for what is made again where a power failure has damaged it.
    """
    write_atomic(path, checksummed_text(value, name).encode(), durable=durable)


def checked(path: Path, record: Mapping[str, Any] | None) -> Path:
    """Return `path` if its content is as `record`, which lists the files beside it, has it. Raises DamagedError."""
    if record is None or has_changed(path, record["files"][path.name], thoroughly=True):
        raise DamagedError(path, CHANGED_MESSAGE)
    return path


def as_record(record_type: type[T], stored: Mapping[str, Any], path: Path | str) -> T:
    """Create a dataclass from its stored fields; fields of a later version are ignored. Raises DamagedError."""
    fields, names = record_type.__dataclass_fields__, names_of_today(record_type)
    present = {name if name in fields else names.get(name, ""): value for name, value in stored.items()}
    try:
        return record_type(**{name: value for name, value in present.items() if name in fields})
    except TypeError:
        raise DamagedError(Path(path), "was written by another version of ianvs") from None


def remove(path: Path) -> None:
    """Delete a file, a link or a folder with its content, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
