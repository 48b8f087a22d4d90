"""What lies in a cache: for people who want to know, and to make room. Everything in it can be made again."""

import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ianvs.exam.data.cache import UNFINISHED

_WHAT = {
    "rgb": "decoded pictures",
    "labels": "decoded masks",
    "encoded": "where pictures lie that stay encoded",
    "files": "samples of a table, or labels and names of listed files",
    "list": "a list of files",
    "features": "features of pictures",
    "authored": "what an author's function returned",
}
_RECENT = 3600.0  # seconds in which a process may still be about to open what it has found


@dataclass(frozen=True)
class CacheEntry:
    """size: bytes on the disk. used: when it was used last, in seconds since 1970."""

    folder: Path
    size: int
    used: float

    @property
    def description(self) -> str:
        kind = _WHAT.get(self.folder.name.partition("-")[0], "samples")
        return f"unfinished: {kind}" if self.unfinished else kind

    @property
    def unfinished(self) -> bool:
        return self.folder.name.endswith(UNFINISHED)

    def unused_for(self, days: float) -> bool:
        """Whether nobody has used it for so long, and nobody can be about to."""
        return time.time() - self.used > max(days * 86400, _RECENT)


def cache_entries(cache: Path) -> list[CacheEntry]:
    """The largest first. Small notes, such as digests of files, are left out."""
    entries = []
    for folder in cache.iterdir() if cache.is_dir() else ():
        if folder.is_dir() and "-" in folder.name:
            stats = [path.stat() for path in folder.iterdir() if path.is_file()]
            size = sum(getattr(stat, "st_blocks", stat.st_size / 512) * 512 for stat in stats)
            used = max([folder.stat().st_mtime, *(stat.st_mtime for stat in stats if folder.name.endswith(UNFINISHED))])
            entries.append(CacheEntry(folder, int(size), used))
    return sorted(entries, key=lambda stat: (-stat.size, stat.folder.name))


def remove_entries(entries: Iterable[CacheEntry]) -> list[CacheEntry]:
    """Those that were removed: who has mapped their files keeps them. What is being made meanwhile stays."""
    from filelock import FileLock, Timeout

    removed = []
    for entry in entries:
        lock = entry.folder.with_name(f"{entry.folder.name.removesuffix(UNFINISHED)}.lock")
        try:
            with FileLock(lock, timeout=0):
                shutil.rmtree(entry.folder)
        except (Timeout, OSError):
            continue
        lock.unlink(missing_ok=True)
        removed.append(entry)
    return removed
