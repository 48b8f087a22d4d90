"""Long lists of files: whether all of them are as they were, without reading the list again.

Only the files themselves are looked at, each by its size and time of modification.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.data.cache import entry, forget, is_whole
from ianvs.exam.data.fingerprint import SETTLED_NS
from ianvs.exam.data.listing import Listing

__all__ = ["Seen", "keep_seen", "kept_seen", "look_at"]

_BLOCK = 4096  # files that are looked at together: their names take memory


@dataclass(frozen=True)
class Seen:
    """names: of files, as the system has them. facts: (N, 2) size in bytes and modification time in ns of each."""

    names: Sequence[bytes]
    facts: NDArray[np.int64]


def look_at(listings: Sequence[Listing], root: Path | None) -> Seen | None:
    """The files that the listings name. To be called before what is in them is read: a later change then shows.

    None where it can't be told later whether something has changed: a file was written just now, or lies elsewhere than
    where it is looked for first.
    """
    columns = [one.x for one in listings if one.form == "files"]
    columns += [one.labels for one in listings if one.label_form == "files"]
    paths = [path for column in columns for path in column.tolist()]
    if root is not None and not all(Path(path).is_relative_to(root) for path in paths):
        return None
    names = [os.fsencode(path) for path in paths]
    try:
        facts = np.array(_facts(names), dtype=np.int64).reshape(-1, 2)
    except OSError:
        return None
    settled = not len(facts) or time.time_ns() - int(facts[:, 1].max()) > SETTLED_NS
    return Seen(names, facts) if settled else None


def keep_seen(seen: Seen, fingerprint: str, key: str, cache_dir: Path) -> None:
    """Keep the fingerprint of samples that stand in the files `seen`, instead of what was kept before they changed."""

    def fill(folder: Path) -> None:
        (folder / "names").write_bytes(b"\0".join(seen.names))
        ends = np.cumsum([len(name) + 1 for name in seen.names], dtype=np.int64)
        np.save(folder / "ends.npy", ends)
        np.save(folder / "facts.npy", seen.facts)
        (folder / "fingerprint").write_text(fingerprint)

    forget(cache_dir / key)
    entry(cache_dir, key, fill)


def kept_seen(key: str, cache_dir: Path) -> str | None:
    """What `keep_seen` kept, if every file is as it was; else None."""
    folder = cache_dir / key
    if not is_whole(folder):
        return None
    try:
        facts = np.load(folder / "facts.npy", mmap_mode="r", allow_pickle=False)
        for start, names in _blocks(folder):
            if not np.array_equal(_facts(names), facts[start : start + len(names)]):
                return None
        return (folder / "fingerprint").read_text()
    except OSError:  # one is gone, or another process keeps them anew
        return None


def _blocks(folder: Path) -> Iterator[tuple[int, list[bytes]]]:
    """(number of the first, names), some at a time."""
    ends = np.load(folder / "ends.npy", allow_pickle=False)
    with (folder / "names").open("rb") as file:
        for start in range(0, len(ends), _BLOCK):
            before = int(ends[start - 1]) if start else 0
            length = int(ends[min(start + _BLOCK, len(ends)) - 1]) - before
            yield start, file.read(length).removesuffix(b"\0").split(b"\0")


def _facts(names: Sequence[bytes]) -> list[tuple[int, int]]:
    return [(found.st_size, found.st_mtime_ns) for found in map(os.stat, names)]
