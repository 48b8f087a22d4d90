"""Fingerprints of an author's source: the plugin's file and, transitively, the local modules that it imports.

Nothing is imported to find out: the import statements are read from the syntax trees. "Local" is what is neither the
standard library nor an installed package, plus our own package, on which built-in methods stand.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.metadata import entry_points
from pathlib import Path

from ianvs.package import PACKAGE, own_name
from ianvs.plugins.loader import ENTRY_POINTS

__all__ = ["imported_names", "source_files", "source_of"]


def source_of(url: str | None, name: str, group: str = ENTRY_POINTS) -> dict[str, str]:
    """{short file name: sha256 of its text} of the plugin `name` at `url` and its local imports; line ends don't count.

    Names are relative to the plugin's folder (or to our package), so that a moved folder keeps its fingerprint.
    """
    entry = _entry_file(url, name, group)
    if entry is None:
        return {}
    found = source_files(entry)
    return {_short(path, entry.parent): _digest(path) for path in sorted(found)}


def imported_names(url: str | None, name: str, group: str = ENTRY_POINTS) -> set[str]:
    """Top-level names of all packages that the plugin or its local modules import, "torch" for instance."""
    entry = _entry_file(url, name, group)
    if entry is None:
        return set()
    return {module.split(".")[0] for path in source_files(entry) for module in _imports(path, _digest(path))}


def source_files(entry: Path) -> set[Path]:
    """`entry` and every local file that is reached from it by import statements."""
    found: set[Path] = set()
    waiting = [entry]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for module in _imports(path, _digest(path)):
            waiting.extend(_local_files(module, entry.parent))
    return found


def _entry_file(url: str | None, name: str, group: str) -> Path | None:
    if url is not None and url.endswith(".py"):
        return Path(url).resolve()
    if url is None:
        points = entry_points(group=group, name=name)
        if not points:
            return None
        url = next(iter(points)).value
    return _find(url.partition(":")[0], [*sys.path])


def _digest(path: Path) -> str:
    stat = path.stat()
    return _digest_at(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4096)
def _digest_at(path: Path, mtime_ns: int, size: int) -> str:
    return hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()


@lru_cache(maxsize=4096)
def _imports(path: Path, digest: str) -> tuple[str, ...]:
    """Dotted names that the file imports anywhere, lazily too; relative ones resolved to absolute paths' names."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return ()  # the loader reports it in full
    return tuple(dict.fromkeys(_names(tree, path)))


def _names(tree: ast.AST, path: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                folder = path.parents[node.level - 1]
                base = f"{folder}:{base}"  # a relative import: looked up from that folder
            yield base
            joint = "" if base.endswith(":") else "."
            yield from (f"{base}{joint}{alias.name}" for alias in node.names)


def _local_files(module: str, plugin_folder: Path) -> Iterator[Path]:
    folder, _, dotted = module.rpartition(":")
    top = dotted.split(".")[0]
    if folder:
        search = [folder]
    elif top == PACKAGE.name:
        search = [str(PACKAGE.parent)]
    elif top in sys.stdlib_module_names:
        return
    else:
        search = [str(plugin_folder), *sys.path]
    path = _find(dotted, search)
    if path is not None and (own_name(path) is not None or not _installed(path)):
        yield path


def _find(dotted: str, search: list[str]) -> Path | None:
    """File of the module `dotted`, looked up without importing its packages."""
    spec = None
    for part in dotted.split("."):
        if not part:
            return None
        spec = PathFinder.find_spec(part, search)
        if spec is None:
            return None
        search = list(spec.submodule_search_locations or [])
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin).resolve()


def _installed(path: Path) -> bool:
    places = {sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(path.is_relative_to(Path(place).resolve()) for place in places) or "site-packages" in path.parts


def _short(path: Path, folder: Path) -> str:
    own = path.relative_to(folder) if path.is_relative_to(folder) else own_name(path)
    return path.name if own is None else own.as_posix()
