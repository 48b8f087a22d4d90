"""Imports authors' source files: always compiled anew, and from stored content if there is any.

docs/decisions/002-identity.md has the reasons.
"""

import linecache
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import decode_source, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from ianvs.base.package import own_name

STORED: dict[str, bytes] = {}
"""Content of files by resolved path, which is run instead of what they contain now."""
MODULES = "modules"
"""The temporary folder from which spawned processes import what `place_for_others` has put there."""
_STANDARD_LIBRARY = Path(os.__file__).resolve().parent


@contextmanager
def imports_from(files: Mapping[Path, bytes]) -> Iterator[None]:
    """Context manager: imports of these files run the given content, even if the files have changed.

    So do those of spawned processes, such as those of `torch.multiprocessing.spawn` (`place_for_others`). Paths are
    resolved.
    """
    before, contents = STORED.copy(), {os.fspath(path): content for path, content in files.items()}
    STORED.update(contents)
    add_folders(*(path.parent for path in files))
    for_others = os.path.join(tempfile.gettempdir(), MODULES)  # noqa: PTH118
    sys.path.append(for_others)
    try:
        yield
    finally:
        with suppress(ValueError):
            sys.path.remove(for_others)
        STORED.clear()
        STORED.update(before)
        for path in contents:
            linecache.cache.pop(path, None)


def is_source(path: Path) -> bool:
    """Return whether a source file exists, or existed when the job was planned."""
    return os.path.realpath(path) in STORED or path.is_file()


def source_spec(name: str, path: Path, inside: list[str] | None = None) -> ModuleSpec | None:
    """Return the spec of a module in the file at `path`; None if there is no readable python file.

    inside: folders of its submodules, if it is a package. Its folder counts as an author's from now on, unless it
    belongs to ianvs.
    """
    if own_name(path) is not None:
        return spec_from_file_location(name, path, submodule_search_locations=inside)
    if path.suffix != ".py" or not is_source(path):
        return None
    add_folders(path.parent)
    loader = _Loader(name, os.fspath(path))
    return spec_from_file_location(name, path, loader=loader, submodule_search_locations=inside)


def add_folders(*folders: Path) -> None:
    """Find modules in these folders, and below, as authors' files from now on."""
    for folder in folders:
        prefix = os.path.join(os.path.realpath(folder), "")  # noqa: PTH118
        if not prefix.startswith(_FINDER.homes):
            _FINDER.homes += (prefix,)
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def package_spec(name: str, folder: Path) -> ModuleSpec:
    """Return the spec of a package in an author's folder, which may have no `__init__.py`."""
    spec = source_spec(name, folder / "__init__.py", [str(folder)])
    if spec is None:
        add_folders(folder)
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    return spec


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """Compile the stored content, or that of the file; byte code is neither read nor written."""
        stored = STORED.get(os.path.realpath(self.path))
        if stored is None:
            return self.source_to_code(self.get_data(self.path), self.path)
        code = self.source_to_code(stored, self.path)
        text = decode_source(stored)
        # Without a time, so that changes of the file are not checked.
        linecache.cache[self.path] = (len(text), None, text.splitlines(keepends=True), self.path)
        return code


class _Finder(MetaPathFinder):
    """Finds modules below `homes`, the folders of authors, in the order of sys.path."""

    homes: tuple[str, ...] = ()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        places = list(sys.path if path is None else path)
        for index, place in enumerate(places):
            try:
                folder = str(place) or os.getcwd()  # noqa: PTH109
            except FileNotFoundError:  # the working directory of this process was deleted
                continue
            if not _authors_folder(folder).startswith(self.homes):
                continue
            module = os.path.join(folder, fullname.rpartition(".")[2])  # noqa: PTH118
            if os.path.realpath(init := os.path.join(module, "__init__.py")) in STORED:  # noqa: PTH118
                spec = spec_from_file_location(fullname, init, submodule_search_locations=[module])
            elif os.path.realpath(f"{module}.py") in STORED:
                spec = spec_from_file_location(fullname, f"{module}.py")
            else:
                spec = PathFinder.find_spec(fullname, [folder])
            if spec is None or spec.origin is None:  # nothing, or a folder that may belong to a namespace package
                continue
            if type(spec.loader) is SourceFileLoader:
                spec.loader = _Loader(fullname, spec.origin)
            before = PathFinder.find_spec(fullname, places[:index]) if index else None
            return spec if before is None or before.origin is None else None
        return None


_FINDER = _Finder()


@lru_cache(maxsize=4096)
def _authors_folder(folder: str) -> str:
    """Return the real path of a folder with a separator at its end; "" if it is Python's, a package's or ianvs's."""
    real = os.path.join(os.path.realpath(folder), "")  # noqa: PTH118
    return "" if is_installed(Path(real)) or own_name(Path(real)) is not None else real


def is_installed(path: Path) -> bool:
    """Return whether `path` is among Python's own modules or installed packages."""
    return path.is_relative_to(_STANDARD_LIBRARY) or not {"site-packages", "dist-packages"}.isdisjoint(path.parts)
