"""What installed packages bring, by the entry points that they declare; nothing is imported."""

import os
import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import cast

from ianvs.base.package import PACKAGE


def entries(group: str) -> tuple[EntryPoint, ...]:
    """All entry points of `group`: ianvs's own, then what is installed beside it."""
    return _of_group(tuple(filter(_has_packages, sys.path)), group)


@lru_cache(maxsize=512)
def _has_packages(folder: str) -> bool:
    """Whether packages are installed there: the folders of plugins, which come and go, have none.

    With the same packages, the entry points are the same: to look at all of them takes a case 20 milliseconds.
    """
    try:
        return any(name.endswith((".dist-info", ".egg-info")) for name in os.listdir(folder or "."))  # noqa: PTH208
    except NotADirectoryError:
        return True
    except OSError:
        return False


@lru_cache(maxsize=512)
def _of_group(path: tuple[str, ...], group: str) -> tuple[EntryPoint, ...]:
    """To select them takes two milliseconds, and a case asks for a dozen groups.

    Equal ones count once: ours may be installed under the name of an earlier version, too.
    """
    return tuple(sorted(dict.fromkeys(_entries(path).select(group=group)), key=is_ours, reverse=True))


@lru_cache(maxsize=64)
def _entries(path: tuple[str, ...]) -> EntryPoints:
    """Of the packages on `path`, the part of sys.path that has any."""
    return cast("EntryPoints", entry_points())


def is_ours(point: EntryPoint) -> bool:
    """Whether it names something of ianvs itself."""
    return point.module.partition(".")[0] == PACKAGE.name


def installed(group: str) -> dict[str, EntryPoint]:
    """The entry points of `group` by name; of several with one name ianvs's own, else the first."""
    points: dict[str, EntryPoint] = {}
    for point in entries(group):
        points.setdefault(point.name, point)
    return points


def origin_text(point: EntryPoint) -> str:
    """What an entry point names, and the package that it is of."""
    package = "" if point.dist is None else f" of the package {point.dist.name}"
    return f"{point.value}{package}"
