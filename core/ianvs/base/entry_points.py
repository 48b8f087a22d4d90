"""Entry points of installed packages; nothing is imported."""

import os
import sys
import warnings
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import cast

from ianvs.base.package import PACKAGE

_FORMER_GROUPS = {"ianvs.evaluation_tasks": "ianvs.questions"}


def entries(group: str) -> tuple[EntryPoint, ...]:
    """Return all entry points of `group`: those of ianvs first, then those of other packages."""
    path = tuple(filter(_has_packages, sys.path))
    points = _of_group(path, group)
    if group not in _FORMER_GROUPS:
        return points
    former = _of_group(path, _FORMER_GROUPS[group])
    for point in former:
        if not is_ours(point):
            message = f"The entry points {point.group} ({point.name}) are now called {group}"
            warnings.warn(f"{message}; the former name will be removed in the next release.", DeprecationWarning, 2)
    return tuple(sorted((*points, *former), key=is_ours, reverse=True))


@lru_cache(maxsize=512)
def _has_packages(folder: str) -> bool:
    """Return whether a folder of sys.path has installed packages. Folders of plugins, which differ from case to case,
    do not.

    Entry points are cached by the folders with packages, because reading all of them takes 20 ms.
    """
    try:
        return any(name.endswith((".dist-info", ".egg-info")) for name in os.listdir(folder or "."))  # noqa: PTH208
    except NotADirectoryError:
        return True
    except OSError:
        return False


@lru_cache(maxsize=512)
def _of_group(path: tuple[str, ...], group: str) -> tuple[EntryPoint, ...]:
    """Select and cache a group, which takes two milliseconds; a case needs a dozen groups.

    Equal entry points count once: ianvs may also be installed under the name of an earlier version.
    """
    return tuple(sorted(dict.fromkeys(_entries(path).select(group=group)), key=is_ours, reverse=True))


@lru_cache(maxsize=64)
def _entries(path: tuple[str, ...]) -> EntryPoints:
    """Read the entry points of the packages on `path`, the part of sys.path that has packages."""
    return cast("EntryPoints", entry_points())


def is_ours(point: EntryPoint) -> bool:
    """Return whether an entry point is one of ianvs itself."""
    return point.module.partition(".")[0] == PACKAGE.name


def installed(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of `group` by name. If several have one name, ianvs's own wins, else the first."""
    points: dict[str, EntryPoint] = {}
    for point in entries(group):
        points.setdefault(point.name, point)
    return points


def origin_text(point: EntryPoint) -> str:
    """Describe an entry point: its target and its package."""
    package = "" if point.dist is None else f" of the package {point.dist.name}"
    return f"{point.value}{package}"
