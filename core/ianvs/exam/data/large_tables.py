"""Cache of large tables, lists and arrays, valid while their files and settings are unchanged.

A plan needs only the fingerprint, a case also the samples. A dataset is cached as it was read; for a long list of files
sizes and modification times are cached, by which a change is found.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.arrays import PACKED
from ianvs.exam.data.cache import Progress, entry, invalidate, is_whole
from ianvs.exam.data.content_digests import Say, recent_contents
from ianvs.exam.data.dataset import Dataset, Table
from ianvs.exam.data.encoded_pictures import EncodedPictures, encoded_in, write_names
from ianvs.exam.data.file_formats import ARRAYS, OWN, find_format
from ianvs.exam.data.fingerprint import digest_of, file_digests, files_fingerprint
from ianvs.exam.data.labels import only_numbers
from ianvs.exam.data.listing import Listing, column
from ianvs.exam.data.load_listing import load_listed, stays_encoded
from ianvs.exam.data.sources import PARTS, read_parts

WORTH_CACHING = 2**20  # bytes of all files together; parsing fewer is faster than caching them
SEPARATE_PROCESS_BYTES = 2**24  # lists and tables of this size are read in another process
_FORMAT = 6  # part of every key: raise it when the same files give other samples
_COLUMNS = [name for name in Table.aligned if name != "columns"]
_FACTS = ("name", "kind", "classes", "fingerprint", "ignore_index", "domain_classes", "notes", "layout")
_SURROGATES = "surrogatepass"  # json may hold lone surrogates
_BLOCK = 4096  # files that are compared together: their names take memory


def table_key(spec: DatasetSpec, cache_dir: Path | None) -> str | None:
    """Return the cache key of large files; None for small ones and folders, and if a file can't be read."""
    if cache_dir is None or spec.url is not None or spec.data_type is not None:
        return None
    matches = [find_format(source.path) for source in (*spec.train, *spec.test)]
    readable = [match for match in matches if match is not None and match[0].suffixes]
    if not readable or len(readable) < len(matches):
        return None
    paths = [path for _, files in readable for path in files]
    try:
        size = sum(path.stat().st_size for path in paths)
        if size < WORTH_CACHING and not any(file_format.large for file_format, _ in readable):
            return None
        digests = file_digests([str(path) for path in paths], cache_dir)
    except OSError:
        return None
    return f"list-{digest_of([_FORMAT, repr(spec), digests])[:32]}"


def is_large(spec: DatasetSpec) -> bool:
    """Return whether reading the files takes so much memory that another process should do it."""
    size = 0
    for source in (*spec.train, *spec.test):
        file_format, files = find_format(source.path) or (None, ())
        if file_format is not None and file_format.large:  # a small file may hold a large table
            return True
        mapped = file_format is ARRAYS and spec.test_share is None
        size += sum(path.stat().st_size for path in files if file_format in OWN and not mapped)
    return size >= SEPARATE_PROCESS_BYTES


def cache_listing(
    parts: tuple[Listing, Listing], spec: DatasetSpec, key: str, cache_dir: Path, say: Say = None
) -> str | None:
    """Cache the fingerprint (and the samples) of valid parts. Returns the fingerprint if it was cached."""
    form = parts[0].form
    fingerprint = files_fingerprint(spec, cache_dir, parts, say)
    files = _files_of(parts)
    facts = [recent_contents(paths.tolist(), cache_dir)[0] for paths in files]
    if any((entry < 0).any() for entry in facts):  # a file was written just now, and may change once more
        return None
    if spec.root is not None and not all(path.startswith(f"{spec.root}{os.sep}") for entry in files for path in entry):
        return None  # it is not in the folder that is searched first
    with suppress(OSError):  # the cache only saves time
        cache_file_facts(files, np.concatenate([np.empty((0, 2), np.int64), *facts]), fingerprint, key, cache_dir)
    if form in ("arrays", "text") and not _is_memory_mappable(spec):
        cache_dataset(load_listed(parts, spec, fingerprint, cache_dir), spec, cache_dir)
    elif form == "files" and stays_encoded(parts, spec) and not only_numbers(parts, spec):  # else all are decoded first
        cache_image_dataset(load_listed(parts, spec, fingerprint, cache_dir), spec, cache_dir)
    return fingerprint


def load_large_table(spec: DatasetSpec, key: str, cache_dir: Path, progress: Progress | None = None) -> Dataset:
    """Return the samples cached under `key`; they are read if they are not cached. Raises SourceError."""
    fingerprint = read_cached_fingerprint(key, cache_dir)
    stored = None if fingerprint is None else read_cached_dataset(spec, fingerprint, cache_dir)
    if stored is not None:
        return stored
    parts = read_parts(spec)
    dataset = load_listed(parts, spec, files_fingerprint(spec, cache_dir, parts), cache_dir, progress)
    if dataset.fingerprint == fingerprint and not _is_memory_mappable(
        spec
    ):  # else files have changed since they were checked
        cache_dataset(dataset, spec, cache_dir)
    return dataset


def _is_memory_mappable(spec: DatasetSpec) -> bool:
    """Return whether all samples are in files of arrays, which can be loaded as they are."""
    packed = all(source.path.suffix.lower() in PACKED for source in (*spec.train, *spec.test))
    return packed and spec.test_share is None


def _key(spec: DatasetSpec, fingerprint: str) -> str:
    return f"files-{digest_of([_FORMAT, repr(spec), fingerprint])[:32]}"


def cache_dataset(dataset: Dataset, spec: DatasetSpec, cache_dir: Path) -> None:
    """Cache a dataset, except conversations. Decoded images are in the cache already, and are referred to."""
    if dataset.kind == "conversation":
        return

    def fill(folder: Path) -> None:
        facts = {name: getattr(dataset, name) for name in _FACTS}
        facts["folders"] = [str(path) for path in dataset.folders]
        facts["pictures"] = {}
        for part, samples in zip(PARTS, (dataset.train, dataset.test), strict=True):
            for name in _COLUMNS:
                values = getattr(samples, name)
                if values is None:
                    continue
                if (encoded := encoded_in(values)) is not None:
                    facts["pictures"][f"{part}_{name}"] = f"{encoded.folder.name}/"
                elif (pictures := _entry_of(values, cache_dir)) is not None:
                    facts["pictures"][f"{part}_{name}"] = pictures
                elif values.dtype == object:  # strings, boxes and the like; NumPy pads strings to the longest
                    text = json.dumps(values.tolist(), ensure_ascii=False)
                    (folder / f"{part}_{name}.json").write_text(text, "utf-8", _SURROGATES)
                else:
                    np.save(folder / f"{part}_{name}.npy", values, allow_pickle=False)
        (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")

    with suppress(OSError):  # the cache can't be written: it only saves time
        entry(cache_dir, _key(spec, dataset.fingerprint), fill)


def cache_image_dataset(dataset: Dataset, spec: DatasetSpec, cache_dir: Path) -> None:
    """Cache a dataset of image files, encoded or decoded, for cases that know its fingerprint."""
    parts = (dataset.train, dataset.test)
    of_files = all(
        encoded_in(samples.x) is not None or _entry_of(samples.x, cache_dir) is not None for samples in parts
    )
    if of_files and not any(samples.columns for samples in parts):
        cache_dataset(dataset, spec, cache_dir)


def read_cached_dataset(
    spec: DatasetSpec, fingerprint: str, cache_dir: Path, *, of_images: bool = False
) -> Dataset | None:
    """Return a dataset cached by `cache_dataset`, with memory-mapped arrays; None if it is missing or damaged.

    of_images: only one of `cache_image_dataset`. Encoded files are checked when they are read, not here.
    """
    key = _key(spec, fingerprint)
    if of_images and any((cache_dir / key).glob("train_x.*")):  # a table, whose file is checked
        return None
    if not is_whole(cache_dir / key):
        return None
    facts: dict[str, Any] = json.loads((cache_dir / key / "facts.json").read_text(encoding="utf-8"))
    if not all(is_whole(cache_dir / file.partition("/")[0]) for file in facts["pictures"].values()):
        return None
    for used in {key, *(file.partition("/")[0] for file in facts["pictures"].values())}:
        with suppress(OSError):  # when it was used last, for `ianvs cache`
            os.utime(cache_dir / used)
    parts = []
    for part in PARTS:
        columns: dict[str, Any] = {}
        for name in _COLUMNS:
            stem = f"{part}_{name}"
            pictures = facts["pictures"].get(stem, "")
            numbers = cache_dir / pictures if pictures else cache_dir / key / f"{stem}.npy"
            if pictures.endswith("/"):
                columns[name] = EncodedPictures(numbers)
            elif numbers.is_file():
                columns[name] = np.load(numbers, mmap_mode="r", allow_pickle=False)
            elif (file := cache_dir / key / f"{stem}.json").is_file():
                columns[name] = column(json.loads(file.read_text("utf-8", _SURROGATES)))
        parts.append(Table(**columns))
    fields = {name: facts[name] for name in _FACTS}
    fields |= {name: tuple(facts[name]) for name in ("classes", "notes")}
    fields["domain_classes"] = {name: tuple(indices) for name, indices in facts["domain_classes"].items()}
    return Dataset(train=parts[0], test=parts[1], folders=tuple(map(Path, facts["folders"])), **fields)


def _entry_of(values: NDArray[Any], cache_dir: Path) -> str | None:
    """Return the file below `cache_dir` that `values` maps as a whole; None for other arrays."""
    if not isinstance(values, np.memmap) or values.filename is None:
        return None
    file, root = Path(values.filename), cache_dir.resolve()  # numpy follows links, too
    if not file.is_relative_to(root):
        return None
    whole = np.load(file, mmap_mode="r", allow_pickle=False)
    same = (whole.shape, whole.dtype) == (values.shape, values.dtype)
    return file.relative_to(root).as_posix() if same else None


def _files_of(listings: Sequence[Listing]) -> list[NDArray[Any]]:
    """Return columns of the files that the listings name."""
    columns = [each.x for each in listings if each.form == "files"]
    shown = [x.pictures for each in listings if each.form == "conversation" for x in each.x]
    if names := dict.fromkeys(str(each.file) for pictures in shown for each in pictures if each.file is not None):
        columns.append(column(list(names)))
    return columns + [each.y for each in listings if each.label_form == "files"]


def cache_file_facts(
    files: Sequence[NDArray[Any]], facts: NDArray[np.int64], fingerprint: str, key: str, cache_dir: Path
) -> None:
    """Cache the fingerprint of samples read from `files`, in place of an earlier one.

    facts: (N, 2) size in bytes and modification time in ns of each file, before it was read.
    """

    def fill(folder: Path) -> None:
        write_names(folder, chain(*files))
        np.save(folder / "facts.npy", facts)
        (folder / "fingerprint").write_text(fingerprint)

    invalidate(cache_dir / key)
    entry(cache_dir, key, fill)


def read_cached_fingerprint(key: str, cache_dir: Path) -> str | None:
    """Return the fingerprint cached by `cache_file_facts`, if no file has changed."""
    folder = cache_dir / key
    if not is_whole(folder):
        return None
    try:
        facts = np.load(folder / "facts.npy", mmap_mode="r", allow_pickle=False)
        for start, names in _blocks(folder):
            stats = [(stat.st_size, stat.st_mtime_ns) for stat in map(os.stat, names)]
            if not np.array_equal(stats, facts[start : start + len(names)]):
                return None
        return (folder / "fingerprint").read_text()
    except OSError:  # a file is gone, or another process is replacing the entry
        return None


def _blocks(folder: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Yield (index of the first, names) of blocks of files."""
    ends = np.load(folder / "ends.npy", allow_pickle=False)
    with (folder / "names").open("rb") as file:
        for start in range(0, len(ends), _BLOCK):
            before = int(ends[start - 1]) if start else 0
            length = int(ends[min(start + _BLOCK, len(ends)) - 1]) - before
            yield start, file.read(length).removesuffix(b"\0").split(b"\0")
