"""Imports from folders that may be entered and not listed, as folders are that lead to a closed one.

Python lists a folder to find a module in it. Where that is forbidden, the names that a module can have are tried.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

__all__ = ["find_unlisted"]


def find_unlisted() -> None:
    """Find modules in folders of sys.path that can't be listed, in the order of sys.path."""
    if not any(isinstance(finder, _Unlisted) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Unlisted())


class _Unlisted(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Of folders that lead the path; those behind one that can be listed are not asked."""
        for entry in sys.path if path is None else path:
            folder = Path(entry or ".")
            if not folder.is_dir():
                continue
            if _listable(folder):
                return None
            for file in _candidates(folder / fullname.rpartition(".")[2]):
                if file.is_file():
                    inside = [str(file.parent)] if file.stem == "__init__" else None
                    return spec_from_file_location(fullname, file, submodule_search_locations=inside)
        return None


def _listable(folder: Path) -> bool:
    try:
        os.scandir(folder).close()
    except OSError:
        return False
    return True


def _candidates(module: Path) -> Iterator[Path]:
    """In Python's order: a package, an extension, a file."""
    suffixes = (*EXTENSION_SUFFIXES, *SOURCE_SUFFIXES)
    yield from (module / f"__init__{suffix}" for suffix in suffixes)
    yield from (module.with_name(module.name + suffix) for suffix in suffixes)
