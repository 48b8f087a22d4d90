"""Transfers files between a workspace and a node that does not see it, and adapts paths in messages.

docs/clusters.md#ray says what is transferred, code too. Nothing in here needs Ray.
"""

import dataclasses
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

from ianvs.base.errors import IanvsError, Location
from ianvs.base.package import own_files, own_name
from ianvs.config.spec import AlgorithmSpec, ScenarioSpec
from ianvs.plugins.local_imports import package_and_folders, source_files

CODE_LIMIT = 400 << 20  # bytes of code and initial models; Ray takes no more than 512 MiB
_BESIDE_LIMIT = 10 << 20  # bytes; larger files beside a plugin are considered data
_PIECE = 8 << 20  # bytes
_T = TypeVar("_T")


def pack(root: Path, paths: Iterable[Path]) -> Iterator[bytes]:
    """Yield the files and folders `paths` below `root` as pieces of a tar; nothing if none exists."""
    present = [path for path in paths if path.exists()]
    if not present:
        return
    with tempfile.TemporaryFile() as stream:
        with tarfile.open(fileobj=stream, mode="w") as tar:
            for path in present:
                tar.add(path, path.relative_to(root))
        stream.seek(0)
        yield from iter(lambda: stream.read(_PIECE), b"")


def unpack(source: IO[bytes], root: Path) -> None:
    """Unpack below `root`. Each file or folder is replaced atomically.

    Links that lead out of `root` and special files are left out. What can't be read changes nothing: tarfile.TarError.
    """
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".arriving.", dir=root) as folder:
        with tarfile.open(fileobj=source, mode="r") as tar:
            names = set(tar.getnames())
            tar.extractall(Path(folder, "new"), filter=_safe_member)
        for number, name in enumerate(name for name in names if os.path.dirname(name) not in names):  # noqa: PTH120
            new, old = Path(folder, "new", name), root / name
            if not new.exists():
                continue
            old.parent.mkdir(parents=True, exist_ok=True)
            if old.is_dir():
                old.rename(Path(folder, f"old-{number}"))
            new.rename(old)


def _safe_member(member: tarfile.TarInfo, target: str) -> tarfile.TarInfo | None:
    try:
        return tarfile.data_filter(member, target)
    except tarfile.FilterError:
        return None


def relocate(value: _T, mapping: Mapping[Path, Path]) -> _T:
    """Return `value` with every path below a key of `mapping` moved, also within dataclasses, tuples, lists and
    mappings.

    Strings are unchanged, except for a `url` that is a python file and a scenario's `file`; so are places in yaml
    files, which are for messages.
    """
    moved: Any = value
    if isinstance(value, Location):
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
    relocated: _T = moved
    return relocated


def _moved(path: Path, mapping: Mapping[Path, Path]) -> Path:
    for old in sorted(mapping, key=lambda path: -len(path.parts)):
        if path.is_relative_to(old):
            return mapping[old] / path.relative_to(old)
    return path


def gather_code(files: Iterable[Path], target: Path) -> dict[Path, str]:
    """Copy ianvs itself and `files` to the empty folder `target`, which will be first on sys.path at its destination.

    A python file includes its local imports, and small files beside them. Returns {path here: name below `target`} for
    `relocate`. Raises IanvsError above CODE_LIMIT.
    """
    copies: dict[Path, Path] = dict(own_files())
    places: dict[Path, Path] = {}  # modules in authors' folders
    moved: dict[Path, str] = {}
    for file in files:
        entry = file.resolve()  # the loader resolves links, too: a plugin's modules are beside the real file
        packaged_name = own_name(entry)
        if packaged_name is not None:
            moved[file] = packaged_name.as_posix()
        elif (entry / "__init__.py").is_file():  # a package, found by its name
            copies |= {path: entry.name / path.relative_to(entry) for path in _code_in(entry, "**/*")}
        elif entry.exists():
            home = package_and_folders(entry)[1][-1] if entry.suffix == ".py" else entry.parent  # contains its package
            folder = places.setdefault(home, Path("authors", str(len(places))))
            moved[file] = (folder / entry.relative_to(home)).as_posix()
            if entry.suffix == ".py":
                copies |= dict(_with_imports(entry, home, folder))
            else:
                inside = [path for path in (entry, *entry.rglob("*")) if path.is_file()]
                copies |= {path: folder / path.relative_to(entry.parent) for path in inside}
    _check_size(copies)
    for path, place in copies.items():
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target / place)
    return moved


def _code_in(folder: Path, pattern: str) -> Iterator[Path]:
    """Yield the files of `folder`, without what is hidden, compiled, or too large to be code."""
    for path in folder.glob(pattern):
        hidden = any(part.startswith((".", "__pycache__")) for part in path.relative_to(folder).parts)
        if not hidden and path.is_file() and path.stat().st_size <= _BESIDE_LIMIT:
            yield path


def _with_imports(entry: Path, home: Path, place: Path) -> Iterator[tuple[Path, Path]]:
    """Yield (file, where it goes) of a plugin: below `place` if it is below `home`, or where an import finds it."""
    for folder in {path.parent for path in source_files(entry)}:
        if own_name(folder) is not None:
            continue
        if folder.is_relative_to(home):
            yield from ((path, place / path.relative_to(home)) for path in _code_in(folder, "*"))
        else:
            roots = [Path(root).resolve() for root in sys.path if folder.is_relative_to(Path(root).resolve())]
            root = max(roots, key=lambda folder_above: len(folder_above.parts), default=folder)
            yield from ((path, path.relative_to(root)) for path in _code_in(folder, "*.py"))


def _check_size(files: Iterable[Path]) -> None:
    sizes = {path: path.stat().st_size for path in files}
    total = sum(sizes.values())
    if total > CODE_LIMIT:
        largest = max(sizes, key=lambda path: sizes[path])
        raise IanvsError(
            f"code and initial models of {total >> 20} MB are too much to send to the nodes (at most "
            f"{CODE_LIMIT >> 20} MB); the largest file is {largest}. Put the job on storage that all nodes share.",
            code="invalid-engine",
        )
