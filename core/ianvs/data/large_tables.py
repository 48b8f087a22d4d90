"""Large tables, lists and arrays are read once for all plans, while their files and what is said of them stay the same.

Of tables of numbers, and of questions and answers, all is kept, of others their fingerprint: that is all that a plan
asks for.
"""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.config.spec import DatasetSpec
from ianvs.data.arrays import PACKED, array_files
from ianvs.data.cache import entry, is_whole
from ianvs.data.dataset import Dataset, Samples
from ianvs.data.fingerprint import digest_of, file_digests, files_fingerprint, read_memo, write_memo
from ianvs.data.listed import load_listed
from ianvs.data.listed_files import keep_seen, kept_seen, look_at
from ianvs.data.listing import Listing, column
from ianvs.data.sources import LISTS, PARTS, WITH_FIELDS

__all__ = ["keep_dataset", "keep_table", "kept_dataset", "kept_fingerprint", "table_key"]

WORTH_KEEPING = 2**20  # bytes of all files together, below which parsing costs less than keeping
_FORMAT = 2  # part of every key: raise it when the same files give other samples
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
    if (facts := _kept_facts(key, cache_dir)) is not None:
        return str(facts["fingerprint"])
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
    if form in ("arrays", "text") and not packed:  # those can be loaded as they are
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
    if key is None or (facts := _kept_facts(key, cache_dir)) is None:
        return None
    train, test = (_part(cache_dir / key, part) for part in PARTS)
    return Dataset(facts["name"], facts["kind"], train, test, tuple(facts["classes"]), facts["fingerprint"])


def _kept_facts(key: str, cache_dir: Path) -> dict[str, Any] | None:
    """Of a dataset that is kept, and is as it was written: name, kind, classes, fingerprint."""
    if not is_whole(cache_dir / key):
        return None
    facts: dict[str, Any] = json.loads((cache_dir / key / "facts.json").read_text(encoding="utf-8"))
    return facts


def _part(folder: Path, part: str) -> Samples:
    columns: dict[str, NDArray[Any]] = {}
    for name in _COLUMNS:
        if (numbers := folder / f"{part}_{name}.npy").is_file():
            columns[name] = np.load(numbers, mmap_mode="r")
        elif (folder / f"{part}_{name}.txt").is_file():
            columns[name] = _load_texts(folder, f"{part}_{name}")
    return Samples(**columns)


def keep_dataset(dataset: Dataset, key: str, cache_dir: Path) -> None:
    """Keep a dataset of numbers with class labels, or of texts. Others name files or hold conversations, and are not
    kept; nor is anything where the cache can't be written: it only saves time."""
    plain = not (dataset.notes or dataset.domain_classes or dataset.layout or dataset.folders)
    if dataset.kind not in ("classification", "text") or not plain:
        return

    def fill(folder: Path) -> None:
        for part, samples in (("train", dataset.train), ("test", dataset.test)):
            for name in _COLUMNS:
                values = getattr(samples, name)
                if values is not None and values.dtype == object:
                    _save_texts(folder, f"{part}_{name}", values)
                elif values is not None:
                    np.save(folder / f"{part}_{name}.npy", values, allow_pickle=False)
        facts = {name: getattr(dataset, name) for name in ("name", "kind", "classes", "fingerprint")}
        (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")

    with suppress(OSError):
        entry(cache_dir, key, fill)


def _save_texts(folder: Path, name: str, texts: NDArray[Any]) -> None:
    """(N,) texts, one after the other, and where each of them ends: numpy's texts are all as wide as the longest."""
    held = texts.tolist()
    (folder / f"{name}.txt").write_bytes("".join(held).encode("utf-8", "surrogatepass"))  # json may hold half a pair
    np.save(folder / f"{name}_ends.npy", np.cumsum([len(text) for text in held], dtype=np.int64))


def _load_texts(folder: Path, name: str) -> NDArray[Any]:
    together = (folder / f"{name}.txt").read_bytes().decode("utf-8", "surrogatepass")
    ends = np.load(folder / f"{name}_ends.npy").tolist()
    return column([together[start:end] for start, end in pairwise([0, *ends])])
