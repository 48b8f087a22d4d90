"""Digests of files. A file is read once, as long as its size and modification time stay the same."""

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.data.throughput import REPORT_SECONDS, progress_text

SETTLED_NS = 2_000_000_000  # a more recent file may change without a new modification time
_BLOCK = 1 << 20  # bytes read at a time
_DIGEST = 32

Contents = tuple[NDArray[np.int64], NDArray[np.uint8]]
"""((N, 2) size in bytes and modification time in ns, (N, 32) SHA-256) of files, taken at the same time."""


Say = Callable[[str], object] | None
"""Called every few seconds with a text on the progress of reading files."""


def read_contents(paths: Sequence[str], cache_dir: Path, say: Say = None) -> Contents:
    """Return the contents of files. Unchanged files of a cached list are not read again. Raises OSError."""
    memo = cache_dir / "digests" / f"{paths_digest(paths)}.bin"
    memorized = _read_memo(memo, len(paths))
    facts, digests = memorized or (np.empty((len(paths), 2), np.int64), np.empty((len(paths), _DIGEST), np.uint8))
    settled = time.time_ns() - SETTLED_NS
    changed, young, read = False, list[int](), 0
    began = reported = time.monotonic()
    for index, path in enumerate(paths):
        if memorized is not None:
            stat = os.stat(path)  # noqa: PTH116 - ten thousand of them: Path is slow
            if (stat.st_size, stat.st_mtime_ns) == (facts[index, 0], facts[index, 1]):
                continue
        if memorized is not None and not changed:
            facts, digests = facts.copy(), digests.copy()
        changed = True
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            stat = os.fstat(file.fileno())  # before reading
            small = stat.st_size <= _BLOCK  # `file_digest` makes a buffer of its own for each
            hasher = hashlib.sha256(file.readall()) if small else hashlib.file_digest(file, "sha256")
        facts[index] = stat.st_size, stat.st_mtime_ns
        digests[index] = np.frombuffer(hasher.digest(), np.uint8)
        if stat.st_mtime_ns > settled:
            young.append(index)
        read += stat.st_size
        if say is not None and (now := time.monotonic()) - reported >= REPORT_SECONDS:
            reported = now
            # The sizes of the other files are estimated by those so far.
            say(f"reading files, {progress_text(read, read * len(paths) // (index + 1), read / (now - began))}")
    if changed:
        _store_memo(memo, facts, digests, young)
    return facts, digests


def recent_contents(paths: Sequence[str], cache_dir: Path) -> Contents:
    """Return cached contents of files that were just read; -1 for files that may have changed unnoticed."""
    memo = cache_dir / "digests" / f"{paths_digest(paths)}.bin"
    return _read_memo(memo, len(paths)) or read_contents(paths, cache_dir)


def paths_digest(paths: Sequence[str]) -> str:
    hasher = hashlib.sha256()
    for start in range(0, len(paths), 4096):
        hasher.update("\0".join(paths[start : start + 4096]).encode("utf-8", "surrogateescape") + b"\0")
    return hasher.hexdigest()[:32]


def _read_memo(memo: Path, count: int) -> Contents | None:
    """Read the result of `_store_memo`; None if it is missing or damaged."""
    try:
        held = np.memmap(memo, np.uint8, "r")
    except (OSError, ValueError):
        return None
    body = held[:-_DIGEST]
    if len(body) != count * (16 + _DIGEST) or hashlib.sha256(body.data).digest() != held[-_DIGEST:].tobytes():
        return None
    return body[: 16 * count].view(np.int64).reshape(-1, 2), body[16 * count :].reshape(-1, _DIGEST)


def _store_memo(memo: Path, facts: NDArray[np.int64], digests: NDArray[np.uint8], young: Sequence[int]) -> None:
    """Store contents atomically. young: indices of files that may change unnoticed."""
    memo.parent.mkdir(parents=True, exist_ok=True)
    part = memo.with_suffix(f".{secrets.token_hex(6)}.part")  # a pid is not one of its own in every container
    if young:
        facts = facts.copy()
        facts[young] = -1
    hasher = hashlib.sha256(facts.data)
    hasher.update(digests.data)
    with part.open("wb") as file:
        file.write(facts.data)
        file.write(digests.data)
        file.write(hasher.digest())
    if memo.is_dir():
        memo.rmdir()  # none of ours
    part.replace(memo)
