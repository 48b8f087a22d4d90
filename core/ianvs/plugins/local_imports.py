"""Finds the files that a plugin imports from its folders, by its import statements; nothing is run.

A module whose name is computed (`importlib.import_module`, `__import__`) is not found.
"""

import ast
import hashlib
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NamedTuple

from ianvs.base.package import PACKAGE, own_name
from ianvs.base.source_files import read_source
from ianvs.plugins.authors_files import STORED, is_installed, is_source

INIT = "__init__.py"


class SourceFile(NamedTuple):
    """A parsed source file.

    Attributes:
        text: Digest of its bytes; line ends don't count.
        tree: Digest without comments, docstrings and formatting; of its bytes if it can't be parsed.
        imports: Dotted names of all its imports: `a.b` and `a.b.c` for `from a.b import c`. A relative import has its
            folder before a colon: `/folder:b`. A file that can't be parsed imports nothing: the loader reports it.
    """

    text: str
    tree: str
    imports: tuple[str, ...]


_PARSED: dict[Path, tuple[object, SourceFile]] = {}  # with what identifies the content


def parsed(path: Path) -> SourceFile:
    """Parse a source file, or its stored content."""
    stored = STORED.get(os.fspath(path))
    version: object = stored if stored is not None else ((stat := path.stat()).st_mtime_ns, stat.st_size)
    if path in _PARSED and _PARSED[path][0] == version:
        return _PARSED[path][1]
    content = (read_source(path) if stored is None else stored).replace(b"\r\n", b"\n")
    text = hashlib.sha256(content).hexdigest()
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        file = SourceFile(text, text, ())
    else:
        imports: list[ast.Import | ast.ImportFrom] = []
        digest = hashlib.sha256(_text(tree, imports).encode()).hexdigest()
        names = dict.fromkeys(name for statement in imports for name in _names(statement, path))
        file = SourceFile(text, f"tree:{digest}", tuple(names))
    _PARSED[path] = version, file
    return file


def package_and_folders(entry: Path) -> tuple[Path | None, tuple[Path, ...]]:
    """Return what a plugin's imports need.

    Args:
        entry: The plugin's file, resolved.

    Returns:
        The package in which its relative imports are resolved, None if it has none, and the folders that are first on
        sys.path while its code runs: that of its file, and the parent of its package. The package is the topmost folder
        that relative imports of the file, or of files that it imports so, reach, and its parents as long as there is an
        `__init__.py`.
    """
    reached, files, waiting = set[Path](), {entry}, [entry]
    while waiting:
        for folder, _, dotted in (module.rpartition(":") for module in parsed(waiting.pop()).imports):
            if folder:
                reached.add(Path(folder))
                new = {Path(folder, *parts) for parts in _candidates(dotted)} - files
                waiting += filter(is_source, new)
                files |= new
    around = [folder for folder in reached if entry.is_relative_to(folder)]
    if around:
        package = _top_package(min(around, key=lambda folder: len(folder.parts)))
        return package, (entry.parent, package.parent)
    if is_source(entry.parent / INIT):
        package = _top_package(entry.parent)
        if package.name in {module.partition(".")[0] for module in parsed(entry).imports}:
            return None, (entry.parent, package.parent)
    return None, (entry.parent,)


def source_files(entry: Path, local_folders: Collection[Path] | None = None) -> set[Path]:
    """Return a file and all local ones that its imports run, transitively: modules, and their parent packages.

    Args:
        entry: The file, resolved.
        local_folders: Folders whose modules are local; None: all except folders of installed packages. Modules of
            ianvs always count.
    """
    _, folders = package_and_folders(entry)
    files, waiting = {entry}, [entry]
    while waiting:
        for module in parsed(waiting.pop()).imports:
            new = {*_local_files(module, folders, local_folders)} - files
            files |= new
            waiting += new
    return files


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
