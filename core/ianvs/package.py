"""Where ianvs's own files lie: the package, and the folders that it carries, which are links in a checkout."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

__all__ = ["CONFIGS", "PACKAGE", "own_files", "own_name"]

PACKAGE = Path(__file__).resolve().parent
CONFIGS = (PACKAGE / "configs").resolve()
_CARRIED = ("testalgorithms", "testenv", "configs")


@lru_cache(maxsize=1)
def _homes() -> tuple[tuple[Path, Path], ...]:
    """(real folder, its name as a wheel installs it), the inner ones first."""
    carried = [((PACKAGE / name).resolve(), Path(PACKAGE.name, name)) for name in _CARRIED]
    return (*carried, (PACKAGE, Path(PACKAGE.name)))


def own_name(path: Path) -> Path | None:
    """`path` (resolved) as "ianvs/...", the same in a checkout and in a wheel; None for a file that is not ours."""
    for home, name in _homes():
        if path.is_relative_to(home):
            return name / path.relative_to(home)
    return None


def own_files() -> Iterator[tuple[Path, Path]]:
    """(file, its own_name) of all that ianvs is made of, without what is hidden or compiled.

    What is known of the installed package belongs to it: its entry points say which algorithms and datasets there are.
    """
    with suppress(PackageNotFoundError):
        for file in distribution(PACKAGE.name).files or ():
            if file.parent.suffix == ".dist-info" and file.name in ("METADATA", "entry_points.txt"):
                yield Path(str(file.locate())), Path(file)
    for folder, inner, names in os.walk(PACKAGE, followlinks=True):
        inner[:] = sorted(name for name in inner if not name.startswith((".", "__pycache__")))
        for name in sorted(names):
            if not name.startswith("."):
                path = Path(folder, name)
                yield path, Path(PACKAGE.name) / path.relative_to(PACKAGE)
