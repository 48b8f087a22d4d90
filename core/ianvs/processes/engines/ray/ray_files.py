"""Files that travel between a workspace and a node that does not see it, and paths in what is sent there.

Nothing in here needs Ray. See ianvs.processes.engines.ray.ray_code for authors' files.
"""

from __future__ import annotations

import dataclasses
import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

from ianvs.base.errors import Place
from ianvs.config.spec import AlgorithmSpec, ScenarioSpec

__all__ = ["pack", "relocate", "unpack"]

_PIECE = 8 << 20  # bytes
_T = TypeVar("_T")


def pack(root: Path, paths: Iterable[Path]) -> Iterator[bytes]:
    """The files and folders `paths` below `root` as a tar, in pieces; no piece if none of them is there."""
    there = [path for path in paths if path.exists()]
    if not there:
        return
    with tempfile.TemporaryFile() as stream:
        with tarfile.open(fileobj=stream, mode="w") as tar:
            for path in there:
                tar.add(path, path.relative_to(root))
        stream.seek(0)
        yield from iter(lambda: stream.read(_PIECE), b"")


def unpack(source: IO[bytes], root: Path) -> None:
    """Put what was packed below `root`. Each file or folder appears as a whole, and takes the place of what is there.

    Links that lead out of `root` and special files are left out. What can't be read changes nothing: tarfile.TarError.
    """
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".arriving.", dir=root) as folder:
        with tarfile.open(fileobj=source, mode="r") as tar:
            names = set(tar.getnames())
            tar.extractall(Path(folder, "new"), filter=_harmless)
        for number, name in enumerate(name for name in names if os.path.dirname(name) not in names):  # noqa: PTH120
            new, old = Path(folder, "new", name), root / name
            if not new.exists():
                continue
            old.parent.mkdir(parents=True, exist_ok=True)
            if old.is_dir():
                old.rename(Path(folder, f"old-{number}"))
            new.rename(old)


def _harmless(member: tarfile.TarInfo, target: str) -> tarfile.TarInfo | None:
    try:
        return tarfile.data_filter(member, target)
    except tarfile.FilterError:
        return None


def relocate(value: _T, mapping: Mapping[Path, Path]) -> _T:
    """`value` with every path below a key of `mapping` moved; in dataclasses, tuples, lists and mappings too.

    Text is left alone, except for a `url` that is a python file and a scenario's `file`; so are places in yaml files,
    which are for the user's eyes.
    """
    moved: Any = value
    if isinstance(value, Place):
        return value
    if isinstance(value, Path):
        moved = _moved(value, mapping)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if isinstance(url := fields.get("url"), str) and url.endswith(".py"):
            fields["url"] = str(_moved(Path(url), mapping))
        if isinstance(value, ScenarioSpec) and isinstance(file := value.options.get("file"), str):
            fields["options"] = {**value.options, "file": str(_moved(Path(file), mapping))}
        if isinstance(value, AlgorithmSpec):
            fields.pop("file")  # named in messages only
        moved = dataclasses.replace(value, **{name: relocate(part, mapping) for name, part in fields.items()})
    elif isinstance(value, tuple | list):
        moved = type(value)(relocate(part, mapping) for part in value)
    elif isinstance(value, Mapping):
        moved = {key: relocate(part, mapping) for key, part in value.items()}
    found: _T = moved
    return found


def _moved(path: Path, mapping: Mapping[Path, Path]) -> Path:
    for old in sorted(mapping, key=lambda path: -len(path.parts)):
        if path.is_relative_to(old):
            return mapping[old] / path.relative_to(old)
    return path
