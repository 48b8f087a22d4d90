"""What processes leave behind: System V objects and files in /dev/shm, which outlive them (Linux), and times of access.

Objects and files belong to nobody but a user, so what is removed is only what is known to be of given processes.
"""

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ianvs.processes.engines.forked import libc

SHARED_MEMORY = Path("/dev/shm")
_REMOVE, _LAST_PROCESS = 0, 11  # IPC_RMID, GETPID
_TABLES = {"shm": "shmid", "msg": "msqid", "sem": "semid"}


class Leftovers:
    """Made before the processes are."""

    def __init__(self) -> None:
        self._before = {(kind, number) for kind, number, _ in _objects()}
        self._files = set(os.listdir(SHARED_MEMORY) if SHARED_MEMORY.is_dir() else ())  # noqa: PTH208

    def remove_files(self, living: Collection[int]) -> list[str]:
        """Remove new files that these processes have mapped or opened: what they are called."""
        removed = []
        for name in sorted(_mapped(living) - self._files):
            with suppress(OSError):
                (SHARED_MEMORY / name).unlink()
                removed.append(f"/dev/shm/{name}")
        return removed

    def remove_objects(self, makers: Collection[int]) -> list[str]:
        """Remove new System V objects of these processes, which may have ended: in words which."""
        removed = []
        for kind, number, known in list(_objects()):
            if (kind, number) not in self._before and not known.isdisjoint(makers):
                arguments = (number, 0, _REMOVE, None) if kind == "sem" else (number, _REMOVE, None)
                if getattr(libc(), f"{kind}ctl")(*arguments) == 0:
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
                    makers = {libc().semctl(number, 0, _LAST_PROCESS)}
                yield kind, number, makers - {0, -1}


def _mapped(processes: Collection[int]) -> set[str]:
    """Names of files in /dev/shm that they have mapped, or opened."""
    found = set()
    prefix = f"{SHARED_MEMORY}/"
    for pid in processes:
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
            found |= {line.partition(prefix)[2] for line in lines if prefix in line}
        with suppress(OSError):
            for file in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    found.add(str(file.readlink()).partition(prefix)[2])
    return {name for name in found if name and not name.endswith(" (deleted)") and "/" not in name}


def level_access_times(folders: Iterable[Path]) -> None:
    """Give these folders and all that is in them one time of access, read or not; what other users have keeps its own.

    Links are not followed. Raises OSError for a folder of this user's that can't be gone through.
    """
    now = time.time_ns()
    for folder in folders:
        with suppress(FileNotFoundError):
            _level(os.fspath(folder), now, folder.stat())


def _level(folder: str, now: int, before: os.stat_result) -> None:
    if closed := not before.st_mode & stat.S_IRUSR:  # a file in it can be opened by its name all the same
        os.chmod(folder, 0o700)  # noqa: PTH101 - for thousands of files, and Path is slow
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                found = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    _level(entry.path, now, found)
                else:
                    os.utime(entry.path, ns=(now, found.st_mtime_ns), follow_symlinks=False)
            except (FileNotFoundError, PermissionError):  # in /dev/shm, where others are at work
                continue
    if closed:
        os.chmod(folder, stat.S_IMODE(before.st_mode))  # noqa: PTH101
    if os.geteuid() in (0, before.st_uid):  # /dev/shm itself is root's
        os.utime(folder, ns=(now, before.st_mtime_ns))
