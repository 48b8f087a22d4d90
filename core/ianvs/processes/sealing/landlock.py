"""Closes folders to this process and to all that it starts, by Landlock (Linux 5.13 and later), without privileges.

What is closed can't be opened any more by whatever way; what was open stays open. A process may close more, never less.

Folders that lead to a closed one may be entered and not listed, and Python lists a folder to find a module in it: the
names that a module can have are tried there.
"""

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ModuleSpec, PathFinder
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from ianvs.processes.engines.forked import NO_NEW_PRIVS, libc, prctl

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls; the same numbers on all machines
_PATH_BENEATH, _VERSION = 1, 1
_EXECUTE, _WRITE, _READ, _READ_DIR, _TRUNCATE, _IOCTL = 1, 2, 4, 8, 1 << 14, 1 << 15
_READING = _EXECUTE | _READ | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many rights a version knows, from the lowest bit on."""
_SCOPES = 1 | 2  # abstract sockets and signals of processes outside
_SUFFIXES = (*EXTENSION_SUFFIXES, *SOURCE_SUFFIXES)  # of modules
TRUNCATION_SINCE, SIGNALS_SINCE = 3, 6  # versions from which on these are kept apart
_RULESET, _BENEATH = struct.Struct("QQQ"), struct.Struct("=Qi")  # rights to files, ports, scopes; rights, a descriptor


def landlock_version() -> int:
    """Of the running kernel; 0 where there is none, or where it is switched off."""
    return max(0, _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION)))


def confine(closed: Collection[Path] = (), opened: Iterable[Path] = (), writable: Iterable[Path] | None = None) -> bool:
    """From now on, open nothing below `closed` but what lies below `opened`, and write only below `writable`.

    writable: None for all that can be opened. Signals reach only processes below this one. Folders that lead to a
    closed one can't be listed; modules in them are found all the same. Returns whether the kernel does it; where it
    does not, nothing has changed.
    """
    version = landlock_version()
    if not version:
        return False
    rights = (1 << _RIGHTS[min(version, max(_RIGHTS))]) - 1
    handled = rights if closed else rights & ~_READING
    scoped = version >= SIGNALS_SINCE
    rules = _RULESET.pack(handled, 0, _SCOPES if scoped else 0)
    ruleset = _call(_CREATE, rules, ctypes.c_size_t(len(rules) if scoped else 8), 0)
    if ruleset < 0:
        return False
    try:
        if closed:
            for path in (*_beside(closed), *map(os.fspath, opened)):
                _allow(ruleset, path, handled if writable is None else handled & _READING)
        for path in map(os.fspath, writable or ()):
            _allow(ruleset, path, handled)
        done = prctl(NO_NEW_PRIVS, 1) and _call(_RESTRICT, ruleset, ctypes.c_uint32(0)) == 0
    finally:
        os.close(ruleset)
    if done and closed:
        find_unlisted()
    return done


def _beside(closed: Collection[Path]) -> Iterator[str]:
    """The largest files and folders that hold nothing of `closed`. Links lead to what has a place of its own.

    Texts, since there may be thousands, and Path is slow.
    """
    found = {path.resolve() for path in closed}
    outermost = {path for path in found if not found.intersection(path.parents)}
    on_the_way = {parent for path in outermost for parent in path.parents}
    left_out = set(map(os.fspath, outermost | on_the_way))
    for folder in on_the_way:
        found_here: list[os.DirEntry[str]] = []
        with suppress(OSError), os.scandir(folder) as entries:
            found_here += entries  # before any of them is opened: others are at work in such folders as /tmp
        yield from (one.path for one in found_here if one.path not in left_out and not one.is_symlink())


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # nothing is there that could be opened
    try:
        allowed = rights if stat.S_ISDIR(os.fstat(handle).st_mode) else rights & _OF_FILES
        _call(_ADD, ruleset, ctypes.c_int(_PATH_BENEATH), _BENEATH.pack(allowed, handle), ctypes.c_uint32(0))
    finally:
        os.close(handle)


def _call(number: int, *arguments: object) -> int:
    if sys.platform != "linux":  # elsewhere the number means something else
        return -1
    try:
        return int(libc().syscall(ctypes.c_long(number), *arguments))
    except (OSError, AttributeError):  # no Linux
        return -1


def find_unlisted() -> None:
    """Find modules in folders of sys.path that can't be listed, in the order of sys.path."""
    if not any(isinstance(finder, _Unlisted) for finder in sys.meta_path):
        # Python's own finder comes next; those before it know better where their modules lie.
        sys.meta_path.insert(sys.meta_path.index(PathFinder), _Unlisted())


class _Unlisted(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Of folders that lead the path; those behind one that can be listed are not asked."""
        for entry in sys.path if path is None else path:
            folder = Path(entry or ".")
            if not folder.is_dir():
                continue
            with suppress(OSError):
                os.scandir(folder).close()
                return None
            module = folder / fullname.rpartition(".")[2]
            # In Python's order: a package, an extension, a file.
            packages = [module / f"__init__{suffix}" for suffix in _SUFFIXES]
            for file in (*packages, *(module.with_name(module.name + suffix) for suffix in _SUFFIXES)):
                if file.is_file():
                    inside = [str(module)] if file in packages else None
                    return spec_from_file_location(fullname, file, submodule_search_locations=inside)
        return None
