"""Fingerprints of an author's source: the plugin's file and, transitively, the local modules that it imports.

"Local" is what lies below the plugin's folder or the job's, and our own package, on which built-in methods stand.
"""

import ast
import hashlib
import sys
from collections.abc import Collection, Iterator, Sequence
from functools import cache, lru_cache
from importlib.machinery import PathFinder
from pathlib import Path

from ianvs.base.entry_points import installed
from ianvs.base.package import PACKAGE, own_name
from ianvs.base.source_files import read_source
from ianvs.plugins.authors_files import is_installed
from ianvs.plugins.loader import ENTRY_POINTS
from ianvs.plugins.reached import modules_of, reached


def source_of(url: str | None, name: str, group: str = ENTRY_POINTS, job: Path | None = None) -> dict[str, str]:
    """{short file name: digest} of what the plugin `name` at `url` can reach, in its file and in local ones.

    Of authors' files comments, docstrings and what surely takes no part don't count (ianvs.plugins.reached). Names are
    relative to the plugin's folder (or to our package), so that a moved folder keeps its fingerprint. job: the folder
    of the job, whose modules are local as well.
    """
    entry, homes, attribute = _entry_and_homes(url, name, group, job)
    if entry is None:
        return {}
    folder = entry.parent

    @cache
    def local(dotted: str) -> tuple[Path, ...]:
        return tuple(_local_files(dotted, folder, homes))

    return {_short(path, folder): told for path, told in sorted(reached(entry, attribute, local, _digest).items())}


def file_digests(url: str | None, name: str, job: Path | None = None) -> dict[str, str]:
    """{short file name: sha256 of its text} of the plugin and of local files that it imports; line ends don't count."""
    entry, found = _files(url, name, ENTRY_POINTS, job)
    return {_short(path, entry.parent): _digest(path) for path in sorted(found)}


def local_files(url: str | None, name: str, job: Path | None = None) -> set[Path]:
    """The file of the plugin and the local ones that it reaches; none where it is not known. See `source_of`."""
    return _files(url, name, ENTRY_POINTS, job)[1]


def authors_sources(url: str | None, name: str, job: Path | None = None, group: str = ENTRY_POINTS) -> list[Path]:
    """Those of `local_files` that neither we nor an installed package have brought, the plugin's own first."""
    entry, found = _files(url, name, group, job)
    theirs = (path for path in found if own_name(path) is None and not is_installed(path))
    return sorted(theirs, key=lambda path: (path != entry, path))


def imported_by(path: Path) -> tuple[str, ...]:
    """Dotted names of all that the file imports, anywhere in it."""
    return _imports(path, _digest(path))


def _files(url: str | None, name: str, group: str, job: Path | None) -> tuple[Path, set[Path]]:
    """(the plugin's file, this one and those that it reaches); none where it is not known."""
    entry, homes, _ = _entry_and_homes(url, name, group, job)
    return (Path(), set()) if entry is None else (entry, source_files(entry, homes))


def _entry_and_homes(
    url: str | None, name: str, group: str, job: Path | None
) -> tuple[Path | None, tuple[Path, ...], str]:
    """(the plugin's file, folders whose modules are local, what the plugin is called in it).

    Local are modules in the plugin's folder, which of a module on sys.path is that of its package, and in the job's.
    """
    module = attribute = ""
    entry: Path | None = None
    if url is not None and url.endswith(".py"):
        entry = Path(url).resolve()
    elif url is not None and Path(url).is_absolute():  # the folder of a package
        file = Path(url).resolve() / "__init__.py"
        entry = file if file.is_file() else None
    elif url is not None or name in installed(group):
        module, _, attribute = (url or installed(group)[name].value).partition(":")
        entry = _find(module, [*sys.path])
    if entry is None:
        return None, (), name
    own = entry.parent
    if module:
        below = module.count(".") - (entry.name != "__init__.py")
        own = entry if below < 0 else entry.parents[below]
    return entry, (own,) if job is None else (own, job.resolve()), attribute or name


def source_files(entry: Path, homes: Collection[Path] | None = None) -> set[Path]:
    """`entry` and every file that is reached from it by import statements: within `homes`, or ours, or relative to it.

    homes: None: wherever it lies, if it is not in the folders where packages are installed.
    """
    found: set[Path] = set()
    waiting = [entry]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for module in imported_by(path):
            waiting.extend(_local_files(module, entry.parent, homes))
    return found


def _digest(path: Path) -> str:
    stat = path.stat()
    return _digest_at(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4096)
def _digest_at(path: Path, mtime_ns: int, size: int) -> str:
    return hashlib.sha256(read_source(path).replace(b"\r\n", b"\n")).hexdigest()


@lru_cache(maxsize=4096)
def _imports(path: Path, digest: str) -> tuple[str, ...]:
    """Dotted names that the file imports anywhere, lazily too; relative ones resolved to absolute paths' names."""
    try:
        tree = ast.parse(read_source(path))
    except (SyntaxError, ValueError):
        return ()  # the loader reports it in full
    return tuple(dict.fromkeys(name for node in ast.walk(tree) for name in modules_of(node, path)))


def _local_files(module: str, plugin_folder: Path, homes: Collection[Path] | None) -> Iterator[Path]:
    folder, _, dotted = module.rpartition(":")
    top = dotted.split(".")[0]
    if folder:
        search = [folder]
    elif top == PACKAGE.name:
        path = _find_own(dotted)
        if path is not None:
            yield path
        return
    elif top in sys.stdlib_module_names:
        return
    else:
        search = [str(plugin_folder), *sys.path]
        if _is_installed(top, plugin_folder, plugin_folder.stat().st_mtime_ns, tuple(sys.path)):
            return
    path = _find(dotted, search)
    if path is None:
        return
    near = bool(folder) or homes is None or any(path.is_relative_to(home) for home in homes)
    if own_name(path) is not None or (near and not is_installed(path)):
        yield path


@lru_cache(maxsize=4096)
def _find_own(dotted: str) -> Path | None:
    """File of a module of ours, which no one adds while we run."""
    path = _find(dotted, [str(PACKAGE.parent)])
    return None if path is None or own_name(path) is None else path


@lru_cache(maxsize=4096)
def _is_installed(top: str, plugin_folder: Path, mtime_ns: int, places: tuple[str, ...]) -> bool:
    """Whether `top` is an installed package, none of whose modules is local. mtime_ns: of the folder, that a module
    which is put there later is seen."""
    spec = PathFinder.find_spec(top, [str(plugin_folder), *places])
    found = [] if spec is None else [*(spec.submodule_search_locations or []), *([spec.origin] if spec.origin else [])]
    return bool(found) and all(is_installed(Path(place).resolve()) and own_name(Path(place)) is None for place in found)


def origin_of(dotted: str, search: Sequence[str]) -> str | None:
    """Where the module `dotted` lies, looked up without importing its packages.

    "" for a package without a file; None if it is nowhere.
    """
    origin = None
    for part in dotted.split("."):
        spec = PathFinder.find_spec(part, search) if part else None
        if spec is None:
            return None
        origin, search = spec.origin or "", list(spec.submodule_search_locations or [])
    return origin


def _find(dotted: str, search: Sequence[str]) -> Path | None:
    origin = origin_of(dotted, search)
    return Path(origin).resolve() if origin and origin.endswith(".py") else None


def _short(path: Path, folder: Path) -> str:
    own = path.relative_to(folder) if path.is_relative_to(folder) else own_name(path)
    return path.name if own is None else own.as_posix()
