"""Imports authors' source files: always compiled anew, and from stored content if there is any.

docs/decisions/002-identity.md has the reasons.
"""

import linecache
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from ianvs.base.package import own_name


@contextmanager
def imports_from(files: Mapping[Path, bytes]) -> Iterator[None]:
    """Context manager: imports of these files run the given content, even if the files have changed.

    Paths are resolved.
    """
    finder = _finder()
    before, texts = finder.contents, {os.fspath(path): content for path, content in files.items()}
    finder.contents = {**before, **texts}
    for path in files:
        finder.add(path.parent)
    try:
        yield
    finally:
        finder.contents = before
        for text in texts:
            linecache.cache.pop(text, None)


def kept_files() -> Mapping[str, bytes]:
    """Return the stored content of files by resolved path."""
    return _finder().contents


def is_source(path: Path) -> bool:
    """Return whether a source file exists, or existed when the job was planned."""
    return os.path.realpath(path) in kept_files() or path.is_file()


def source_spec(name: str, path: Path, inside: list[str] | None = None) -> ModuleSpec | None:
    """Return the spec of a module in the file at `path`; None if there is no readable python file.

    inside: folders of its submodules, if it is a package. Its folder counts as an author's from now on, unless it
    belongs to ianvs.
    """
    finder = _finder()
    content = finder.contents.get(os.path.realpath(path))
    if own_name(path) is not None:
        return spec_from_file_location(name, path, submodule_search_locations=inside)
    if path.suffix != ".py" or (content is None and not path.is_file()):
        return None
    finder.add(path.parent)
    return _spec(name, os.fspath(path), content, inside)


def add_folders(folders: Iterable[Path]) -> None:
    """Find modules in these folders, and below, as authors' files from now on."""
    for folder in folders:
        _finder().add(folder)


def package_spec(name: str, folder: Path) -> ModuleSpec:
    """Return the spec of a package in an author's folder, which may have no `__init__.py`."""
    spec = source_spec(name, folder / "__init__.py", [str(folder)])
    if spec is None:
        _finder().add(folder)
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    return spec


class _Source(SourceFileLoader):
    """A loader. content: of the file; None: it is read."""

    def __init__(self, name: str, path: str, content: bytes | None) -> None:
        super().__init__(name, path)
        self._content = content

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def get_data(self, path: str) -> bytes:
        return self._content if self._content is not None and path == self.path else super().get_data(path)

    def exec_module(self, module: ModuleType) -> None:
        if self._content is not None and (text := self.get_source(module.__name__)) is not None:
            # Without a time, so that changes of the file are not checked.
            linecache.cache[str(self.path)] = (len(text), None, text.splitlines(keepends=True), str(self.path))
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """Finds modules below folders of authors, in the order of sys.path. contents: of files, by resolved path."""

    def __init__(self) -> None:
        self.contents: Mapping[str, bytes] = {}
        self._homes: tuple[str, ...] = ()

    def add(self, home: Path) -> None:
        prefix = os.path.join(os.path.realpath(home), "")  # noqa: PTH118
        if not prefix.startswith(self._homes or ("\0",)):
            self._homes += (prefix,)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        places = list(sys.path if path is None else path)
        for index, place in enumerate(places):
            try:
                folder = str(place) or os.getcwd()  # noqa: PTH109
            except FileNotFoundError:  # the working directory of this process was deleted
                continue
            real = _real(folder)
            if real.startswith(self._homes) and not _is_installed(real):
                spec = self._module_spec(fullname, folder)
                if spec is not None:
                    before = PathFinder.find_spec(fullname, places[:index]) if index else None
                    return spec if before is None or before.origin is None else None
        return None

    def _module_spec(self, fullname: str, folder: str) -> ModuleSpec | None:
        module = os.path.join(folder, fullname.rpartition(".")[2])  # noqa: PTH118
        for file, inside in ((os.path.join(module, "__init__.py"), [module]), (f"{module}.py", None)):  # noqa: PTH118
            content = self.contents.get(os.path.realpath(file))
            if content is not None:
                return _spec(fullname, file, content, inside)
        spec = PathFinder.find_spec(fullname, [folder])
        if spec is None or spec.origin is None:  # nothing, or a folder that may belong to a namespace package
            return None
        if type(spec.loader) is not SourceFileLoader:
            return spec
        return _spec(fullname, spec.origin, None, spec.submodule_search_locations)


def _spec(name: str, path: str, content: bytes | None, inside: list[str] | None) -> ModuleSpec | None:
    return spec_from_file_location(name, path, loader=_Source(name, path, content), submodule_search_locations=inside)


def _finder() -> _Finder:
    """Return the finder of this process, which belongs to the interpreter, like sys.path."""
    for finder in sys.meta_path:
        if isinstance(finder, _Finder):
            return finder
    sys.meta_path.insert(0, _Finder())
    return _finder()


@lru_cache(maxsize=4096)
def _real(folder: str) -> str:
    """Return the real path of a folder with a separator at its end."""
    return os.path.join(os.path.realpath(folder), "")  # noqa: PTH118


@lru_cache(maxsize=4096)
def _is_installed(folder: str) -> bool:
    return is_installed(Path(folder)) or own_name(Path(folder)) is not None


def is_installed(path: Path) -> bool:
    """Return whether `path` is among Python's own modules or installed packages."""
    return any(map(path.is_relative_to, _package_folders())) or (
        not {"site-packages", "dist-packages"}.isdisjoint(path.parts)
    )


@cache
def _package_folders() -> frozenset[Path]:
    """Return the folders of this interpreter's modules and installed packages."""
    paths = sysconfig.get_paths()
    return frozenset(Path(paths[key]).resolve() for key in ("stdlib", "platstdlib", "purelib", "platlib"))
