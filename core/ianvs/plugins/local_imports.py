"""Finds the files that a plugin imports from its folders, by its import statements; nothing is run.

A module whose name is computed (`importlib.import_module`, `__import__`) is not found.
"""

import ast
import hashlib
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NamedTuple

from ianvs.base.package import PACKAGE, own_name
from ianvs.base.source_files import read_source
from ianvs.plugins.authors_files import is_installed, is_source, kept_files

INIT = "__init__.py"


def imported_by(path: Path) -> tuple[str, ...]:
    """Return dotted names of all imports of a file.

    Args:
        path: The file. One that can't be parsed imports nothing: the loader reports it.

    Returns:
        `a.b` and `a.b.c` for `from a.b import c`. A relative import has its folder before a colon: `/folder:b`.
    """
    return _source(path).imports


def tree_digest(path: Path) -> str:
    """Return the digest of a source file without comments, docstrings and formatting.

    Of its bytes if it can't be parsed.
    """
    return _source(path).tree


def bytes_digest(path: Path) -> str:
    """Return the digest of the text of a source file; line ends don't count."""
    return _source(path).text


def package_of(entry: Path) -> Path | None:
    """Return the topmost folder of the package in which a plugin's relative imports are resolved.

    It is the topmost folder that relative imports of the file, or of files that it imports so, reach, and its parents
    as long as there is an `__init__.py`.

    Args:
        entry: The plugin's file, resolved.

    Returns:
        The folder; None if the file has no relative import.
    """
    folders = {Path(folder) for path in _reached(entry, _relative_files) for folder, _ in _relative_imports(path)}
    around = [folder for folder in folders if entry.is_relative_to(folder)]
    return _top_package(min(around, key=lambda folder: len(folder.parts))) if around else None


def import_folders(entry: Path) -> tuple[Path, ...]:
    """Return the folders that are first on sys.path while a plugin's code runs: that of its file, and its package's
    parent.

    Args:
        entry: The plugin's file, resolved.
    """
    package = package_of(entry)
    if package is None and is_source(entry.parent / INIT):
        around = _top_package(entry.parent)
        if around.name in {module.partition(".")[0] for module in imported_by(entry)}:
            package = around
    return (entry.parent,) if package is None else (entry.parent, package.parent)


def source_files(entry: Path, local_folders: Collection[Path] | None = None) -> set[Path]:
    """Return a file and all local ones that its imports run, transitively: modules, and their parent packages.

    Args:
        entry: The file, resolved.
        local_folders: Folders whose modules are local; None: all except folders of installed packages. Modules of
            ianvs always count.
    """
    folders = import_folders(entry)

    def imported_files(path: Path) -> Iterator[Path]:
        for module in imported_by(path):
            yield from _local_files(module, folders, local_folders)

    return _reached(entry, imported_files)


def origin_of(dotted: str, search: Sequence[str]) -> str | None:
    """Find a module without importing its packages.

    Returns:
        Its file; "" for a package without one; None if it does not exist.
    """
    origin = None
    for part in dotted.split("."):
        spec = PathFinder.find_spec(part, search) if part else None
        if spec is None:
            return None
        origin, search = spec.origin or "", list(spec.submodule_search_locations or [])
    return origin


def find_module(dotted: str, search: Sequence[str]) -> Path | None:
    """Return the resolved Python file of a module; None if it has none."""
    origin = origin_of(dotted, search)
    return Path(origin).resolve() if origin and origin.endswith(".py") else None


def _reached(entry: Path, next_files: Callable[[Path], Iterable[Path]]) -> set[Path]:
    """Return a file, and all files that `next_files` yields for it, transitively."""
    files, waiting = set[Path](), [entry]
    while waiting:
        path = waiting.pop()
        if path not in files:
            files.add(path)
            waiting.extend(next_files(path))
    return files


def _relative_imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (folder, dotted name below it) of each relative import of a file."""
    for module in imported_by(path):
        folder, _, dotted = module.rpartition(":")
        if folder:
            yield folder, dotted


def _relative_files(path: Path) -> Iterator[Path]:
    """Yield files that the relative imports of a file may run."""
    for folder, dotted in _relative_imports(path):
        yield from filter(is_source, (Path(folder, *parts) for parts in _candidates(dotted)))


class _Source(NamedTuple):
    """A parsed file. text: digest of its bytes. tree: of its syntax tree. imports: as `imported_by`."""

    text: str
    tree: str
    imports: tuple[str, ...]


def _source(path: Path) -> _Source:
    content = kept_files().get(os.fspath(path))
    if content is not None:
        return _parsed(path, hashlib.sha256(content).hexdigest(), len(content), content)
    stat = path.stat()
    return _parsed(path, str(stat.st_mtime_ns), stat.st_size)


@lru_cache(maxsize=4096)
def _parsed(path: Path, version: str, size: int, content: bytes | None = None) -> _Source:
    """Parse a file. version: identifies this content of the file. content: None: it is read."""
    content = (read_source(path) if content is None else content).replace(b"\r\n", b"\n")
    text = hashlib.sha256(content).hexdigest()
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return _Source(text, text, ())
    imports: list[ast.Import | ast.ImportFrom] = []
    digest = hashlib.sha256(_text(tree, imports).encode()).hexdigest()
    return _Source(
        text, f"tree:{digest}", tuple(dict.fromkeys(name for statement in imports for name in _names(statement, path)))
    )


def _text(node: object, imports: list[ast.Import | ast.ImportFrom]) -> str:
    """Return ast.dump without docstrings, and without empty fields, in which versions of Python differ.

    imports: receives import statements.
    """
    if isinstance(node, ast.Constant):
        return f"{type(node.value).__name__} {node.value!a}"
    if isinstance(node, ast.AST):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
        fields = ((name, getattr(node, name, None)) for name in node._fields if name not in ("ctx", "type_comment"))
        parts = [f"{name}={_text(value, imports)}" for name, value in fields if value not in (None, [])]
        return f"{type(node).__name__}({','.join(parts)})"
    if isinstance(node, list):
        texts = []
        for child in node:
            value = child.value if isinstance(child, ast.Expr) else None
            if not (isinstance(value, ast.Constant) and isinstance(value.value, str)):  # otherwise a docstring
                texts.append(_text(child, imports))
        return f"[{','.join(texts)}]"
    return ascii(node)


def _names(node: ast.Import | ast.ImportFrom, path: Path) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif node.level <= len(path.parents):
        base = f"{path.parents[node.level - 1]}:{node.module or ''}" if node.level else node.module or ""
        yield base
        yield from (f"{base}{'' if base.endswith(':') else '.'}{alias.name}" for alias in node.names)


def _local_files(module: str, folders: Sequence[Path], local_folders: Collection[Path] | None) -> Iterator[Path]:
    """Yield files that an import of `module` runs. folders: those first on sys.path."""
    folder, _, dotted = module.rpartition(":")
    top, parts = dotted.partition(".")[0], dotted.split(".")
    if not folder and top == PACKAGE.name:
        path = _find_own(dotted)
        if path is not None:
            yield path
        return
    if not folder and top in sys.stdlib_module_names:
        return
    search = [folder] if folder else [*map(str, folders), *sys.path]
    if not folder and _is_installed(top, tuple(search), tuple(root.stat().st_mtime_ns for root in folders)):
        return
    # An import of a.b.c runs a/__init__.py and a/b/__init__.py as well.
    modules = [find_module(".".join(parts[:count]), search) for count in range(1, len(parts) + 1)]
    for path in (*modules, *(_packages_around(Path(folder)) if folder else ())):
        if path is not None:
            near = bool(folder) or local_folders is None or any(path.is_relative_to(local) for local in local_folders)
            if own_name(path) is not None or (near and not is_installed(path)):
                yield path


@lru_cache(maxsize=4096)
def _find_own(dotted: str) -> Path | None:
    """Return the file of a module of ianvs, which do not change while it runs."""
    path = find_module(dotted, [str(PACKAGE.parent)])
    return None if path is None or own_name(path) is None else path


@lru_cache(maxsize=4096)
def _is_installed(top: str, search: tuple[str, ...], mtimes_ns: tuple[int, ...]) -> bool:
    """Return whether `top` is an installed package without local modules.

    mtimes_ns: of a plugin's folders, so that new modules there are noticed.
    """
    spec = PathFinder.find_spec(top, search)
    places = [] if spec is None else [*(spec.submodule_search_locations or []), *([spec.origin] if spec.origin else [])]
    return bool(places) and all(
        is_installed(Path(place).resolve()) and own_name(Path(place)) is None for place in places
    )


def _packages_around(folder: Path) -> Iterator[Path]:
    """Yield the `__init__.py` of a folder and of its parents, as far as they are packages."""
    for parent in (folder, *folder.parents):
        if not is_source(parent / INIT):
            return
        yield parent / INIT


def _top_package(folder: Path) -> Path:
    """Return the topmost package that holds a folder; the folder itself if it is in none."""
    return [folder, *(init.parent for init in _packages_around(folder.parent))][-1]  # from the nearest to the topmost


def _candidates(dotted: str) -> Iterator[tuple[str, ...]]:
    """Yield possible files of a module in a folder, with those of its parent packages."""
    parts = tuple(filter(None, dotted.split(".")))
    for count in range(len(parts) + 1):
        yield (*parts[:count], INIT)
    if parts:
        yield (*parts[:-1], f"{parts[-1]}.py")
