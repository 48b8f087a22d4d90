"""Large tables, lists and arrays are read once for all plans, while their files and what is said of them stay the same.

A plan asks for their fingerprint alone, a case for the samples.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.arrays import PACKED, array_files
from ianvs.exam.data.cache import Progress
from ianvs.exam.data.dataset import Dataset
from ianvs.exam.data.fingerprint import digest_of, file_digests, files_fingerprint, read_memo, write_memo
from ianvs.exam.data.kept_datasets import keep_dataset, kept_dataset, kept_facts
from ianvs.exam.data.listed import load_listed
from ianvs.exam.data.listed_files import keep_seen, kept_seen, look_at
from ianvs.exam.data.listing import Listing
from ianvs.exam.data.sources import LISTS, WITH_FIELDS, read_parts

__all__ = ["keep_table", "kept_fingerprint", "load_large", "table_key"]

WORTH_KEEPING = 2**20  # bytes of all files together, below which parsing costs less than keeping
_FORMAT = 2  # part of every key: raise it when the same files give other samples


def table_key(spec: DatasetSpec, cache_dir: Path | None) -> str | None:
    """What large files are kept under; None for small ones and folders, and where something can't be read."""
    paths = [path for source in (*spec.train, *spec.test) for path in array_files(source.path).values()]
    if cache_dir is None or spec.url is not None or not paths:
        return None
    try:
        size = sum(path.stat().st_size for path in paths)
        if size < WORTH_KEEPING or any(path.suffix.lower() not in (*WITH_FIELDS, *LISTS, *PACKED) for path in paths):
            return None
        digests = file_digests([str(path) for path in paths], cache_dir)
    except OSError:
        return None
    return f"table-{digest_of([_FORMAT, repr(spec), digests])[:32]}"


def kept_fingerprint(key: str | None, cache_dir: Path) -> str | None:
    """The fingerprint of large files that were read, with nothing wrong in them; None where none is kept."""
    if key is None:
        return None
    if (facts := kept_facts(key, cache_dir)) is not None:
        return str(facts["fingerprint"])
    found: str | None = read_memo(_memo(key, cache_dir))
    return found or kept_seen(_list(key), cache_dir)


def keep_table(parts: tuple[Listing, Listing], spec: DatasetSpec, key: str, cache_dir: Path) -> None:
    """Keep what saves reading the parts again, which nothing is wrong with."""
    form = parts[0].form
    seen = look_at(parts, spec.root) if form == "files" else None  # before what is in the files is read
    if form == "files" and seen is None:
        return
    fingerprint = files_fingerprint(spec, cache_dir, parts)
    packed = all(source.path.suffix.lower() in PACKED for source in (*spec.train, *spec.test))
    if form in ("arrays", "text") and not packed:  # those can be loaded as they are
        keep_dataset(load_listed(parts, spec, fingerprint, cache_dir), key, cache_dir)
        return
    with suppress(OSError):  # the cache only saves time
        if seen is not None:
            keep_seen(seen, fingerprint, _list(key), cache_dir)
        else:
            write_memo(_memo(key, cache_dir), fingerprint)


def load_large(spec: DatasetSpec, key: str, cache_dir: Path, progress: Progress | None = None) -> Dataset:
    """The samples of what is kept under `key`, read only if they are not kept. Raises SourceError."""
    kept = kept_dataset(key, cache_dir)
    listed = kept_seen(_list(key), cache_dir) if kept is None else None
    if listed is not None:
        kept = kept_dataset(_files(key, listed), cache_dir)
    if kept is not None:
        return kept
    parts = read_parts(spec)
    dataset = load_listed(parts, spec, files_fingerprint(spec, cache_dir, parts), cache_dir, progress)
    if dataset.fingerprint == listed:  # else files have changed since they were checked
        keep_dataset(dataset, _files(key, listed), cache_dir)
    return dataset


def _memo(key: str, cache_dir: Path) -> Path:
    return cache_dir / "fingerprints" / f"{key}.json"


def _list(key: str) -> str:
    return f"list-{key}"


def _files(key: str, fingerprint: str) -> str:
    return f"files-{digest_of([key, fingerprint])[:32]}"
