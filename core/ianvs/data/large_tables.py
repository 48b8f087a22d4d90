"""Large tables, lists and arrays are read once for all plans, while their files and what is said of them stay the same.

Of tables of numbers all is kept, of others their fingerprint: that is all that a plan asks for.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import numpy as np

from ianvs.config.spec import DatasetSpec
from ianvs.data.arrays import PACKED, array_files
from ianvs.data.cache import entry, is_whole
from ianvs.data.dataset import Dataset, Samples
from ianvs.data.fingerprint import digest_of, file_digests, files_fingerprint, read_memo, write_memo
from ianvs.data.listed import load_listed
from ianvs.data.listed_files import keep_seen, kept_seen, look_at
from ianvs.data.listing import Listing
from ianvs.data.sources import LISTS, PARTS, WITH_FIELDS

__all__ = ["keep_dataset", "keep_table", "kept_dataset", "kept_fingerprint", "table_key"]

WORTH_KEEPING = 2**20  # bytes of all files together, below which parsing costs less than keeping
_FORMAT = 1  # part of every key: raise it when the same files give other samples
_COLUMNS = ("x", "y", "ids", "domains")  # the last is not kept where the source knows none


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
    kept = kept_dataset(key, cache_dir)
    if kept is not None:
        return kept.fingerprint
    found: str | None = read_memo(_memo(key, cache_dir))
    return found or kept_seen(f"list-{key}", cache_dir)


def keep_table(parts: tuple[Listing, Listing], spec: DatasetSpec, key: str, cache_dir: Path) -> None:
    """Keep what saves reading the parts again, which nothing is wrong with."""
    form = parts[0].form
    seen = look_at(parts, spec.root) if form == "files" else None  # before what is in the files is read
    if form == "files" and seen is None:
        return
    fingerprint = files_fingerprint(spec, cache_dir, parts)
    packed = all(source.path.suffix.lower() in PACKED for source in (*spec.train, *spec.test))
    if form == "arrays" and not packed:  # those can be loaded as they are
        keep_dataset(load_listed(parts, spec, fingerprint, cache_dir), key, cache_dir)
        return
    with suppress(OSError):  # the cache only saves time
        if seen is not None:
            keep_seen(seen, fingerprint, f"list-{key}", cache_dir)
        else:
            write_memo(_memo(key, cache_dir), fingerprint)


def _memo(key: str, cache_dir: Path) -> Path:
    return cache_dir / "fingerprints" / f"{key}.json"


def kept_dataset(key: str | None, cache_dir: Path) -> Dataset | None:
    """The dataset, its columns memory-mapped; None where none is kept."""
    if key is None or not is_whole(cache_dir / key):
        return None
    folder = cache_dir / key
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    train, test = (_part(folder, part) for part in PARTS)
    return Dataset(facts["name"], "classification", train, test, tuple(facts["classes"]), facts["fingerprint"])


def _part(folder: Path, part: str) -> Samples:
    files = {name: folder / f"{part}_{name}.npy" for name in _COLUMNS}
    return Samples(**{name: np.load(file, mmap_mode="r") for name, file in files.items() if file.is_file()})


def keep_dataset(dataset: Dataset, key: str, cache_dir: Path) -> None:
    """Keep a dataset of numbers with class labels. Others name files or hold texts, and are not kept; nor is anything
    where the cache can't be written: it only saves time."""
    plain = not (dataset.notes or dataset.domain_classes or dataset.layout or dataset.folders)
    if dataset.kind != "classification" or dataset.train.x.dtype == object or not plain:
        return

    def fill(folder: Path) -> None:
        for part, samples in (("train", dataset.train), ("test", dataset.test)):
            for name in _COLUMNS:
                values = getattr(samples, name)
                if values is not None:
                    np.save(folder / f"{part}_{name}.npy", values, allow_pickle=False)
        facts = {"name": dataset.name, "classes": dataset.classes, "fingerprint": dataset.fingerprint}
        (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")

    with suppress(OSError):
        entry(cache_dir, key, fill)
