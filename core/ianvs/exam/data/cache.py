"""The decode-once cache: slow data become memory-mapped arrays that all test cases share.

An entry is a folder named by what determines its content. It is written under a lock to a temporary name and renamed
when it is complete, so neither a second process nor a kill leaves half an entry. It holds the digests of its files: a
damaged entry is created again. Images are decoded a shard at a time with a record of the finished shards, so that a
killed process continues there.
"""

import hashlib
import json
import math
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.deep_images import ValueRange
from ianvs.base.digests import checksummed_text, file_state, has_changed, parse_checksummed, read_bytes
from ianvs.base.errors import DamagedError, DataError, ValidationError, shown_path
from ianvs.exam.data.decode import decode_labels, decode_picture, require_one_shape
from ianvs.exam.data.encoded_pictures import size_error
from ianvs.exam.data.fingerprint import file_digests
from ianvs.exam.data.labels import Numbering
from ianvs.exam.data.listing import TOLD, SourceError, summary
from ianvs.exam.data.throughput import REPORT_SECONDS, format_bytes, progress_text

Progress = Callable[[float | str], None]  # called with the completed share, 0 to 1, or a text

FORMAT = 2  # part of every key: raise it when decoded values change
_DIGESTS = "digests.json"
CHUNK = 256  # images between two progress reports
UNFINISHED = ".unfinished"
SHARD = 1 << 28  # bytes decoded between two checkpoints
_RESERVE = 1 << 28  # bytes of the disk that stay free


def entry(cache_dir: Path, key: str, fill: Callable[[Path], None], *, goes_on: bool = False) -> Path:
    """Return the complete folder of `key`. `fill(folder)` writes its files if no process has done so before.

    goes_on: `fill` may continue an interrupted attempt.
    """
    done = cache_dir / key
    if is_whole(done):
        with suppress(OSError):  # time of the last use, for `ianvs cache`
            os.utime(done)
        return done
    from filelock import FileLock

    cache_dir.mkdir(parents=True, exist_ok=True)
    with FileLock(cache_dir / f"{key}.lock"):
        if not is_whole(done):
            for stale in cache_dir.glob(f"{key}.*.part"):  # left by a killed process, since its lock is free
                shutil.rmtree(stale, ignore_errors=True)
            part = cache_dir / (f"{key}{UNFINISHED}" if goes_on else f"{key}.{os.getpid()}.part")
            try:
                part.mkdir(exist_ok=goes_on)
                fill(part)
                _store_digests(part, key)
                if done.is_dir():
                    shutil.rmtree(done)  # processes that have mapped its files keep them
                else:
                    done.unlink(missing_ok=True)
                part.replace(done)
            except SourceError:  # a broken file has to change, so the attempt can't be continued
                shutil.rmtree(part, ignore_errors=True)
                raise
            finally:
                if not goes_on:
                    shutil.rmtree(part, ignore_errors=True)
                with suppress(OSError):
                    part.rmdir()  # nothing was written
    return done


def is_whole(folder: Path) -> bool:
    """Return whether an entry exists and all of its files are unchanged.

    A file is read only if its size or modification time has changed; for equal content the new time is stored.
    Raises IanvsError if a file may not be read.
    """
    notes = folder / _DIGESTS
    try:
        record = parse_checksummed(read_bytes(notes) or b"", folder.name)
    except DamagedError:
        return False
    files = {} if record is None else record["files"]
    if not isinstance(files, dict) or any(has_changed(folder / name, before) for name, before in files.items()):
        return False
    with suppress(OSError):  # a read-only cache, or another process restores the entry
        if any((folder / name).stat().st_mtime_ns != before[1] for name, before in files.items()):
            _store_digests(folder, folder.name)
    return bool(files)


def invalidate(folder: Path) -> None:
    """Mark an entry as damaged, so that it is created again. Processes that have mapped its files keep them."""
    (folder / _DIGESTS).unlink(missing_ok=True)


def _store_digests(folder: Path, key: str) -> None:
    """Store the digests of all files of the entry `key` atomically."""
    files = {
        path.relative_to(folder).as_posix(): file_state(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(_DIGESTS)
    }
    part = folder / f"{_DIGESTS}.{secrets.token_hex(6)}"
    part.write_text(checksummed_text({"files": files}, key))
    part.replace(folder / _DIGESTS)


def cached_arrays(cache_dir: Path, key: str, make: Callable[[], Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of `make()`, memory-mapped read-only; computed once per key."""

    def fill(folder: Path) -> None:
        for name, array in make().items():
            np.save(folder / f"{name}.npy", array, allow_pickle=False)

    folder = entry(cache_dir, key, fill)
    return {file.stem: np.load(file, mmap_mode="r", allow_pickle=False) for file in sorted(folder.glob("*.npy"))}


def cached_pictures(
    paths: Sequence[str],
    size: tuple[int, int] | None,
    cache_dir: Path,
    progress: Progress | None = None,
    value_range: ValueRange | None = None,
) -> NDArray[np.uint8]:
    """Return image files as one read-only memory map (N, height, width, 3), decoded and resized at the first call.

    size: (height, width), or None if all images have one size. value_range: of images of more than 8 bits.
    """
    content = [size, value_range, file_digests(paths, cache_dir)]

    def decode(index: int) -> NDArray[np.uint8]:
        return decode_picture(paths[index], size, value_range=value_range)

    return decoded_once("rgb", content, paths, decode, cache_dir, progress)


def cached_labels(
    paths: Sequence[str],
    numberings: Sequence[Numbering],
    pictures: Sequence[str],
    size: tuple[int, int] | None,
    cache_dir: Path,
    progress: Progress | None = None,
) -> NDArray[np.uint8]:
    """Return segmentation masks as one read-only memory map (N, height, width) of class indices, 255 where ignored.

    numberings: how each file numbers classes. pictures: the image of each mask; their sizes have to match.
    """
    written = [(numbering.classes, numbering.values) for numbering in numberings]
    distinct = list(dict.fromkeys(written))
    used = [distinct.index(given) for given in written]

    def decode(index: int) -> NDArray[np.uint8]:
        require_one_shape(paths[index], pictures[index], size)
        return decode_labels(paths[index], size, numberings[index])

    content = [size, file_digests(paths, cache_dir), file_digests(pictures, cache_dir), distinct, used]
    return decoded_once("labels", content, paths, decode, cache_dir, progress)


def slice_of(progress: Progress | None, start: float, end: float) -> Progress | None:
    """Map the progress of a step, 0 to 1, to the range from start to end of the whole."""
    if progress is None:
        return None
    return lambda share: progress(share if isinstance(share, str) else start + (end - start) * share)


def decoded_once(
    kind: str,
    content: list[Any],
    paths: Sequence[str],
    decode: Callable[[int], NDArray[np.uint8]],
    cache_dir: Path,
    progress: Progress | None,
    shape: tuple[int, ...] | None = None,
) -> NDArray[np.uint8]:
    """Return the results of `decode(index)` as one read-only memory map (N, ...), computed at the first call only.

    kind, content: determine the key. shape: of each result; None: that of the first. Raises SourceError with all broken
    files at once, since decoding may take minutes; it stops early if there are many.
    """
    text = json.dumps([FORMAT, kind, *content])
    key = f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"

    def fill(folder: Path) -> None:
        decoded = {0: decode(0)} if shape is None else {}
        each = decoded[0].shape if shape is None else shape
        size, problems = math.prod(each), list[ValidationError]()
        record, file = folder / "done.json", folder / "pixels.npy"
        done = _decoded_count(record, file)
        _require_room(folder, (len(paths) - done) * size)
        mode = "r+" if done else "w+"
        pixels = np.lib.format.open_memmap(file, mode=mode, dtype=np.uint8, shape=(len(paths), *each))

        def store(index: int) -> None:
            try:
                picture = decoded[index] if index in decoded else decode(index)
            except SourceError as broken:
                problems.extend(broken.problems)
                return
            if picture.shape != each:
                (height, width), (h, w) = each[:2], picture.shape[:2]
                raise size_error(paths[0], (height, width), f"{paths[index]} is", (h, w))
            pixels[index] = picture

        shard, began = max(1, SHARD // size), time.monotonic()
        reported = began
        # Threads, since decoding releases the GIL; in chunks, since pending calls take memory.
        with ThreadPoolExecutor() as pool:
            for start in range(done, len(paths), shard):
                end = min(start + shard, len(paths))
                for chunk in range(start, end, CHUNK):
                    upto = min(chunk + CHUNK, end)
                    for _ in pool.map(store, range(chunk, upto)):
                        pass
                    if len(problems) >= TOLD or (problems and upto == len(paths)):
                        raise SourceError(summary(sorted(problems, key=str)))
                    if progress is not None:
                        progress(upto / len(paths))
                        if (now := time.monotonic()) - reported >= REPORT_SECONDS:
                            reported = now
                            progress(
                                progress_text(size * upto, size * len(paths), size * (upto - done) / (now - began))
                            )
                pixels.flush()
                if not problems:  # a continued attempt would not see them again
                    record.write_text(checksummed_text({"done": end}, record.name))
        record.unlink()

    folder = entry(cache_dir, key, fill, goes_on=True)
    pixels: NDArray[np.uint8] = np.load(folder / "pixels.npy", mmap_mode="r", allow_pickle=False)
    return pixels


def _decoded_count(record: Path, file: Path) -> int:
    """Return the number of decoded images of an unfinished entry."""
    with suppress(OSError):
        record_data = parse_checksummed(record.read_bytes(), record.name)
        return int(str(record_data["done"])) if record_data is not None and file.is_file() else 0
    return 0


def _require_room(folder: Path, needed: int) -> None:
    """Raise DataError unless the disk has `needed` free bytes."""
    free = shutil.disk_usage(folder).free - _RESERVE
    if needed > free:
        raise DataError(
            f"decoded images need {format_bytes(needed)} in {shown_path(folder.parent)}, "
            f"{format_bytes(max(0, free))} are free. Set `storage: encoded` in the dataset, "
            "or make room: `ianvs cache WORKSPACE` lists what it holds.",
            code="insufficient-resources",
        )
