"""Closes folders to this process and to all that it starts, by Landlock (Linux 5.13 and later), without privileges.

What is closed can't be opened any more by whatever way; what was open stays open. A process may close more, never less.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from ianvs.processes.sealing.unlisted import find_unlisted

__all__ = ["confine", "landlock_version"]

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls; the same numbers on all machines
_PATH_BENEATH, _VERSION = 1, 1
_NO_NEW_PRIVS = 38
_EXECUTE, _WRITE, _READ, _READ_DIR, _TRUNCATE, _IOCTL = 1, 2, 4, 8, 1 << 14, 1 << 15
_READING = _EXECUTE | _READ | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many rights a version knows, from the lowest bit on."""
_SCOPES = 1 | 2  # abstract sockets and signals of processes outside; from version 6 on


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


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
    rules = _Ruleset(handled, 0, _SCOPES if version >= 6 else 0)
    ruleset = _call(_CREATE, ctypes.byref(rules), ctypes.c_size_t(ctypes.sizeof(rules) if version >= 6 else 8), 0)
    if ruleset < 0:
        return False
    try:
        if closed:
            for path in (*_beside(_real(closed)), *opened):
                _allow(ruleset, path, handled if writable is None else handled & _READING)
        for path in writable or ():
            _allow(ruleset, path, handled)
        done = _libc().prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and _call(_RESTRICT, ruleset, ctypes.c_uint32(0)) == 0
    finally:
        os.close(ruleset)
    if done and closed:
        find_unlisted()
    return done


def _beside(closed: Collection[Path]) -> Iterator[Path]:
    """The largest files and folders that hold nothing of `closed`. Links lead to what has a place of its own."""
    on_the_way = {parent for path in closed for parent in path.parents}
    for folder in on_the_way:
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            path = Path(entry.path)
            if path not in closed and path not in on_the_way and not entry.is_symlink():
                yield path


def _real(paths: Iterable[Path]) -> set[Path]:
    """Without those that lie below others."""
    found = {path.resolve() for path in paths}
    return {path for path in found if not found.intersection(path.parents)}


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # nothing is there that could be opened
    try:
        allowed = rights if path.is_dir() else rights & _OF_FILES
        _call(_ADD, ruleset, ctypes.c_int(_PATH_BENEATH), ctypes.byref(_Beneath(allowed, handle)), ctypes.c_uint32(0))
    finally:
        os.close(handle)


def _call(number: int, *arguments: object) -> int:
    if sys.platform != "linux":  # elsewhere the number means something else
        return -1
    try:
        return int(_libc().syscall(ctypes.c_long(number), *arguments))
    except (OSError, AttributeError):  # no Linux
        return -1


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    """One for all calls: each makes classes of its own, and there are hundreds of calls."""
    return ctypes.CDLL(None, use_errno=True)
