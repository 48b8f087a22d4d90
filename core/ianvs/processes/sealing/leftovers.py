"""What processes leave behind in memory that outlives them: System V objects, and files in /dev/shm (Linux).

They belong to nobody but a user, so what is removed is only what is known to be of given processes.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

_REMOVE, _LAST_PROCESS = 0, 11  # IPC_RMID, GETPID
_SHARED = Path("/dev/shm")
_TABLES = {"shm": "shmid", "msg": "msqid", "sem": "semid"}


class Leftovers:
    """Made before the processes are."""

    def __init__(self) -> None:
        self._before = {(kind, number) for kind, number, _ in _objects()}
        self._files = set(_names())

    def remove_files(self, living: Collection[int]) -> list[str]:
        """Remove new files that these processes have mapped or opened: what they are called."""
        removed = []
        for name in sorted(_mapped(living) - self._files):
            with suppress(OSError):
                (_SHARED / name).unlink()
                removed.append(f"/dev/shm/{name}")
        return removed

    def remove_objects(self, makers: Collection[int]) -> list[str]:
        """Remove new System V objects of these processes, which may have ended: in words which."""
        removed = []
        for kind, number, known in list(_objects()):
            if (kind, number) not in self._before and not known.isdisjoint(makers):
                arguments = (number, 0, _REMOVE, None) if kind == "sem" else (number, _REMOVE, None)
                if getattr(ctypes.CDLL(None), f"{kind}ctl")(*arguments) == 0:
                    removed.append(f"the System V object {kind} {number}")
        return removed


def _objects() -> Iterator[tuple[str, int, set[int]]]:
    """(kind, its number, processes that have made or used it) of each System V object."""
    for kind, column in _TABLES.items():
        with suppress(OSError):
            head, *lines = Path("/proc/sysvipc", kind).read_text().splitlines()
            columns = head.split()
            for line in lines:
                one = dict(zip(columns, map(int, line.split()), strict=False))
                number = one[column]
                makers = {one[maker] for maker in ("cpid", "lspid") if maker in one}
                if kind == "sem":
                    makers = {ctypes.CDLL(None).semctl(number, 0, _LAST_PROCESS)}
                yield kind, number, makers - {0, -1}


def _names() -> list[str]:
    with suppress(OSError):
        return os.listdir(_SHARED)  # noqa: PTH208
    return []


def _mapped(processes: Collection[int]) -> set[str]:
    """Names of files in /dev/shm that they have mapped, or opened."""
    found = set()
    prefix = f"{_SHARED}/"
    for pid in processes:
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
            found |= {line.partition(prefix)[2] for line in lines if prefix in line}
        with suppress(OSError):
            for file in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    found.add(str(file.readlink()).partition(prefix)[2])
    return {name for name in found if name and not name.endswith(" (deleted)") and "/" not in name}
