"""What files hold, as digests: each is read once, ever, while its size and time of modification stay the same."""

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.data.throughput import Throughput

SETTLED_NS = 2_000_000_000  # a younger file may still change without a change of its modification time
_BLOCK = 1 << 20  # bytes of a file that is read at once
_DIGEST = 32

Contents = tuple[NDArray[np.int64], NDArray[np.uint8]]
"""((N, 2) size in bytes and modification time in ns, (N, 32) SHA-256) of files. Both were true at one time."""


Say = Callable[[str], object] | None
"""Told every few seconds how far a reading of files is, and how much of it is left."""


def contents(paths: Sequence[str], cache_dir: Path, say: Say = None) -> Contents:
    """Of each file, from what the cache knows of this list of files where it has not changed since. Raises OSError."""
    memo = _memo(paths, cache_dir)
    memorized = _read_memo(memo, len(paths))
    facts, digests = memorized or (np.empty((len(paths), 2), np.int64), np.empty((len(paths), _DIGEST), np.uint8))
    settled = time.time_ns() - SETTLED_NS
    changed, young = False, list[int]()
    pace, read = Throughput(), 0
    for index, path in enumerate(paths):
        if memorized is not None:
            stat = os.stat(path)  # noqa: PTH116 - ten thousand of them: Path is slow
            if (stat.st_size, stat.st_mtime_ns) == (facts[index, 0], facts[index, 1]):
                continue
        if memorized is not None and not changed:
            facts, digests = facts.copy(), digests.copy()
        changed = True
        size, modified, digest = _read(path)
        facts[index] = size, modified
        read += size
        # The others are as large as those so far: nobody has looked at them.
        if say is not None and (message := pace.text(read, read * len(paths) // (index + 1))):
            say(f"reading files, {message}")
        digests[index] = np.frombuffer(digest, np.uint8)
        if modified > settled:
            young.append(index)
    if changed:
        _keep(memo, facts, digests, young)
    return facts, digests


def known_contents(paths: Sequence[str], cache_dir: Path) -> Contents:
    """As `contents`, of files that were looked at just now; -1 in place of what may still change unseen."""
    return _read_memo(_memo(paths, cache_dir), len(paths)) or contents(paths, cache_dir)


def _memo(paths: Sequence[str], cache_dir: Path) -> Path:
    return cache_dir / "digests" / f"{paths_digest(paths)}.bin"


def _read(path: str) -> tuple[int, int, bytes]:
    """(size, modification time before it was read, SHA-256)"""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - ten thousand of them: Path is slow
        stat = os.fstat(file.fileno())
        small = stat.st_size <= _BLOCK  # `file_digest` makes a buffer of its own for each
        hasher = hashlib.sha256(file.readall()) if small else hashlib.file_digest(file, "sha256")
        return stat.st_size, stat.st_mtime_ns, hasher.digest()


def paths_digest(paths: Sequence[str]) -> str:
    hasher = hashlib.sha256()
    for start in range(0, len(paths), 4096):
        hasher.update("\0".join(paths[start : start + 4096]).encode("utf-8", "surrogateescape") + b"\0")
    return hasher.hexdigest()[:32]


def _read_memo(memo: Path, count: int) -> Contents | None:
    """What `_keep` kept; None where nothing is, or it is damaged: it only saves time."""
    try:
        held = np.memmap(memo, np.uint8, "r")
    except (OSError, ValueError):
        return None
    body = held[:-_DIGEST]
    if len(body) != count * (16 + _DIGEST) or hashlib.sha256(body.data).digest() != held[-_DIGEST:].tobytes():
        return None
    return body[: 16 * count].view(np.int64).reshape(-1, 2), body[16 * count :].reshape(-1, _DIGEST)


def _keep(memo: Path, facts: NDArray[np.int64], digests: NDArray[np.uint8], young: Sequence[int]) -> None:
    """Whole or not at all. young: which may still change unseen."""
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
