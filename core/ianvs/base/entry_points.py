"""Entry points of installed packages; nothing is imported."""

import os
import sys
import warnings
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from ianvs.base.package import PACKAGE

_FORMER_GROUPS = {"ianvs.evaluation_tasks": "ianvs.questions"}


def entries(group: str) -> tuple[EntryPoint, ...]:
    """Return all entry points of `group`: those of ianvs first, then those of other packages."""
    former = _FORMER_GROUPS.get(group)
    points = _all_entries(tuple(filter(_has_packages, sys.path)))
    listed = tuple(point for point in points if point.group in (group, former))
    for point in listed:
        if point.group == former and not is_ours(point):
            message = f"The entry points {former} ({point.name}) are now called {group}"
            warnings.warn(f"{message}; the former name will be removed in the next release.", DeprecationWarning, 2)
    return listed


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


@lru_cache(maxsize=64)
def _all_entries(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Read the entry points of the packages on `path`, the part of sys.path that has packages; those of ianvs first.

    Equal entry points count once: ianvs may also be installed under the name of an earlier version.
    """
    read = entry_points()
    groups = [group for group in read.groups if group.startswith("ianvs.")]
    points = [point for group in groups for point in read.select(group=group)]
    ours = [point for point in points if point.value.startswith(f"{PACKAGE.name}.")]
    return tuple(dict.fromkeys([*ours, *points]))


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
