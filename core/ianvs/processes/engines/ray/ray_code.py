"""The code that travels to workers which do not see it: ianvs itself, plugins, metrics, initial models, manifests.

Nothing in here needs Ray: the engine hands the folder that is gathered here to Ray as the `working_dir` of a
`runtime_env`, and Ray puts it at the head of sys.path on every node.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ianvs.base.errors import IanvsError
from ianvs.base.package import own_files, own_name
from ianvs.plugins.source import source_files

__all__ = ["CODE_LIMIT", "gather_code"]

CODE_LIMIT = 400 << 20  # bytes of code and initial models; Ray takes no more than 512 MiB
_BESIDE_LIMIT = 10 << 20  # bytes; what is larger beside a plugin is data, not part of it


def gather_code(files: Iterable[Path], target: Path) -> dict[Path, str]:
    """Copy ianvs itself and `files` to the empty folder `target`, which is to lead sys.path where it arrives.

    A python file takes along the local modules that it imports, and what small files lie beside it and them. Returns
    {path here: name below `target`} for relocate (ray_files.py). Raises IanvsError above CODE_LIMIT.
    """
    copies: dict[Path, Path] = dict(own_files())
    places: dict[Path, Path] = {}  # of authors' folders
    moved: dict[Path, str] = {}
    for file in files:
        entry = file.resolve()  # the loader resolves links too: a plugin's modules lie beside the real file
        own = own_name(entry)
        if own is not None:
            moved[file] = own.as_posix()
        elif (entry / "__init__.py").is_file():  # a package, found by its name
            copies |= {path: entry.name / path.relative_to(entry) for path in _code_in(entry, "**/*")}
        elif entry.exists():
            folder = places.setdefault(entry.parent, Path("authors", str(len(places))))
            moved[file] = (folder / entry.name).as_posix()
            if entry.suffix == ".py":
                copies |= dict(_with_imports(entry, folder))
            else:
                inside = [path for path in (entry, *entry.rglob("*")) if path.is_file()]
                copies |= {path: folder / path.relative_to(entry.parent) for path in inside}
    _check_size(copies)
    for path, place in copies.items():
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target / place)
    return moved


def _code_in(folder: Path, pattern: str) -> Iterator[Path]:
    """The files of `folder`, without what is hidden, compiled, or too large to be code."""
    for path in folder.glob(pattern):
        hidden = any(part.startswith((".", "__pycache__")) for part in path.relative_to(folder).parts)
        if not hidden and path.is_file() and path.stat().st_size <= _BESIDE_LIMIT:
            yield path


def _with_imports(entry: Path, place: Path) -> Iterator[tuple[Path, Path]]:
    """(file, where it goes) of a plugin: below `place`, or where an import through sys.path finds it."""
    for folder in {path.parent for path in source_files(entry)}:
        if own_name(folder) is not None:
            continue
        if folder.is_relative_to(entry.parent):
            yield from ((path, place / path.relative_to(entry.parent)) for path in _code_in(folder, "*"))
        else:
            roots = [Path(root).resolve() for root in sys.path if folder.is_relative_to(Path(root).resolve())]
            root = max(roots, key=lambda found: len(found.parts), default=folder)
            yield from ((path, path.relative_to(root)) for path in _code_in(folder, "*.py"))


def _check_size(files: Iterable[Path]) -> None:
    sizes = {path: path.stat().st_size for path in files}
    total = sum(sizes.values())
    if total > CODE_LIMIT:
        largest = max(sizes, key=lambda path: sizes[path])
        raise IanvsError(
            f"code and initial models of {total >> 20} MB are too much to send to the nodes (at most "
            f"{CODE_LIMIT >> 20} MB); the largest file is {largest}. Put the job on storage that all nodes share."
        )
