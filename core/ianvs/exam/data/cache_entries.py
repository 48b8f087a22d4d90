"""Lists and removes entries of a cache. All of them can be created again."""

import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ianvs.exam.data.cache import UNFINISHED

_WHAT = {
    "rgb": "decoded images",
    "labels": "decoded masks",
    "encoded": "where images lie that stay encoded",
    "files": "samples of a table, or labels and names of listed files",
    "list": "a list of files",
    "features": "features of images",
    "authored": "what an author's function returned",
}
_RECENT = 3600.0  # seconds in which a process may still be about to open an entry


@dataclass(frozen=True)
class CacheEntry:
    """An entry. size: bytes on disk. used: time of its last use, in seconds since 1970."""

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
        """Return whether it was not used for this many days, and no process can be about to open it."""
        return time.time() - self.used > max(days * 86400, _RECENT)


def cache_entries(cache: Path) -> list[CacheEntry]:
    """Return entries, the largest first, without small files such as digests."""
    entries = []
    for folder in cache.iterdir() if cache.is_dir() else ():
        if folder.is_dir() and "-" in folder.name:
            stats = [path.stat() for path in folder.iterdir() if path.is_file()]
            size = sum(getattr(stat, "st_blocks", stat.st_size / 512) * 512 for stat in stats)
            used = max([folder.stat().st_mtime, *(stat.st_mtime for stat in stats if folder.name.endswith(UNFINISHED))])
            entries.append(CacheEntry(folder, int(size), used))
    return sorted(entries, key=lambda stat: (-stat.size, stat.folder.name))


def remove_entries(entries: Iterable[CacheEntry]) -> list[CacheEntry]:
    """Remove entries and return them. Entries that are being created are kept; mapped files remain usable."""
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
