"""A view of the machine for a process alone, where the kernel gives one to an ordinary user: a further wall.

In it files can be read and nothing written but where it is told so, not even by the kernel, which would note when a
file was read; and /dev/shm, queues, System V memory and the network are its own.
"""

import ctypes
import os
import platform
import struct
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from ianvs.processes.engines.forked import libc

_USER, _MOUNTS, _IPC, _NETWORK = 0x10000000, 0x00020000, 0x08000000, 0x40000000  # CLONE_NEW...
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18  # MS_...
_MOUNT_SETATTR = 442  # the same on all machines
_READ_ONLY, _ALL_BELOW, _HERE = 1, 0x8000, -100  # MOUNT_ATTR_RDONLY, AT_RECURSIVE, AT_FDCWD
_SHARED_MEMORY = Path("/dev/shm")


@lru_cache
def has_own_views() -> bool:
    """Whether `own_view` works here: tried in a fork, since who fails half-way can't go back."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        return False
    with tempfile.TemporaryDirectory() as folder:
        pid = os.fork()
        if pid == 0:
            try:
                os._exit(0 if own_view([Path(folder)]) else 1)
            finally:
                os._exit(1)
        return os.waitpid(pid, 0)[1] == 0


def own_view(writable: Sequence[Path]) -> bool:
    """Enter one in which only `writable`, folders, can be written. Returns whether that is so; call it with one thread.

    Ids stay what they are; whoever was root is it for what lies within alone.
    """
    mapper = _Mapper()
    if not mapper.done(libc().unshare(_USER | _MOUNTS | _IPC | _NETWORK) == 0):
        return False
    done = [libc().mount(None, b"/", None, _RECURSIVE | _PRIVATE, None)]
    folders = [os.fsencode(path) for path in writable]
    done += [libc().mount(folder, folder, None, _BIND | _RECURSIVE, None) for folder in folders]
    done.append(_attributes(b"/", _READ_ONLY, 0))
    done += [_attributes(folder, 0, _READ_ONLY) for folder in folders]
    if _SHARED_MEMORY.is_dir():
        done.append(libc().mount(b"none", os.fsencode(_SHARED_MEMORY), b"tmpfs", 0, None))
    return not any(done)


class _Mapper:
    """A process that stays outside, from where ids are mapped: root's all to themselves, another's its own."""

    def __init__(self) -> None:
        self._asked, ask = os.pipe()
        parent, self._ask = os.getpid(), ask
        maps = {kind: self._same(kind) for kind in ("uid", "gid")}
        self._pid = os.fork()
        if self._pid == 0:
            os.close(ask)
            code = 1
            with suppress(OSError):
                if os.read(self._asked, 1):
                    if os.geteuid() != 0:
                        Path(f"/proc/{parent}/setgroups").write_text("deny")
                    for kind, text in maps.items():
                        Path(f"/proc/{parent}/{kind}_map").write_text(text)
                    code = 0
            os._exit(code)

    def done(self, entered: bool) -> bool:
        """Whether all ids of the caller, which has `entered` a namespace, are what they were."""
        if entered:
            os.write(self._ask, b"m")
        os.close(self._ask)
        os.close(self._asked)
        return os.waitpid(self._pid, 0)[1] == 0

    @staticmethod
    def _same(kind: str) -> str:
        if os.geteuid() != 0:
            own = os.geteuid() if kind == "uid" else os.getegid()
            return f"{own} {own} 1"
        lines = Path(f"/proc/self/{kind}_map").read_text().splitlines()
        return "\n".join(f"{first} {first} {count}" for first, _, count in map(str.split, lines))


def _attributes(path: bytes, added: int, taken: int) -> int:
    """Change them for the mount at `path` and all below it; 0 if that was done."""
    told = struct.pack("4Q", added, taken, 0, 0)  # struct mount_attr
    number, here, below = map(ctypes.c_long, (_MOUNT_SETATTR, _HERE, _ALL_BELOW))
    return int(libc().syscall(number, here, path, below, told, ctypes.c_size_t(len(told))))
