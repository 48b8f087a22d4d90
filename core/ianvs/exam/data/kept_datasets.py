"""Datasets as they were read, in the cache: each case opens them instead of reading what they were made of."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.data.cache import entry, is_whole
from ianvs.exam.data.dataset import Dataset, Samples
from ianvs.exam.data.listing import column
from ianvs.exam.data.sources import PARTS

__all__ = ["keep_dataset", "kept_dataset", "kept_facts"]

_COLUMNS = ("x", "y", "ids", "domains")  # the last is not kept where the source knows none
_FACTS = ("name", "kind", "classes", "fingerprint", "ignore_index", "domain_classes", "notes", "layout")


def keep_dataset(dataset: Dataset, key: str, cache_dir: Path) -> None:
    """Keep all but conversations; decoded pictures, which lie in the cache already, are named and not copied.

    Nothing is kept where the cache can't be written: it only saves time.
    """
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
                if (pictures := _entry_of(values, cache_dir)) is not None:
                    facts["pictures"][f"{part}_{name}"] = pictures
                elif values.dtype == object:
                    _save_texts(folder, f"{part}_{name}", values)
                else:
                    np.save(folder / f"{part}_{name}.npy", values, allow_pickle=False)
        (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")

    with suppress(OSError):
        entry(cache_dir, key, fill)


def kept_facts(key: str, cache_dir: Path) -> dict[str, Any] | None:
    """What is known of a dataset that is kept, and is as it was written: "fingerprint" and others."""
    if not is_whole(cache_dir / key):
        return None
    facts: dict[str, Any] = json.loads((cache_dir / key / "facts.json").read_text(encoding="utf-8"))
    whole = all(is_whole((cache_dir / file).parent) for file in facts["pictures"].values())
    return facts if whole else None


def kept_dataset(key: str, cache_dir: Path) -> Dataset | None:
    """The dataset, its numbers and pictures memory-mapped; None where none is kept."""
    facts = kept_facts(key, cache_dir)
    if facts is None:
        return None
    train, test = (_part(cache_dir / key, part, facts["pictures"], cache_dir) for part in PARTS)
    told = {name: facts[name] for name in ("name", "kind", "fingerprint", "ignore_index", "layout")}
    return Dataset(
        **told,
        train=train,
        test=test,
        classes=tuple(facts["classes"]),
        domain_classes={name: tuple(indices) for name, indices in facts["domain_classes"].items()},
        notes=tuple(facts["notes"]),
        folders=tuple(map(Path, facts["folders"])),
    )


def _part(folder: Path, part: str, pictures: dict[str, str], cache_dir: Path) -> Samples:
    columns: dict[str, NDArray[Any]] = {}
    for name in _COLUMNS:
        kept = f"{part}_{name}"
        numbers = cache_dir / pictures[kept] if kept in pictures else folder / f"{kept}.npy"
        if numbers.is_file():
            columns[name] = np.load(numbers, mmap_mode="r", allow_pickle=False)
        elif (folder / f"{kept}.txt").is_file():
            columns[name] = _load_texts(folder, kept)
    return Samples(**columns)


def _entry_of(values: NDArray[Any], cache_dir: Path) -> str | None:
    """The file below `cache_dir` that `values` is a map of, all of it; None for other arrays."""
    if not isinstance(values, np.memmap) or values.filename is None:
        return None
    file, root = Path(values.filename), cache_dir.resolve()  # numpy follows links, too
    if not file.is_relative_to(root):
        return None
    whole = np.load(file, mmap_mode="r", allow_pickle=False)
    same = (whole.shape, whole.dtype) == (values.shape, values.dtype)
    return file.relative_to(root).as_posix() if same else None


def _save_texts(folder: Path, name: str, texts: NDArray[Any]) -> None:
    """(N,) texts, one after the other, and where each of them ends: numpy's texts are all as wide as the longest."""
    held = texts.tolist()
    (folder / f"{name}.txt").write_bytes("".join(held).encode("utf-8", "surrogatepass"))  # json may hold half a pair
    np.save(folder / f"{name}_ends.npy", np.cumsum([len(text) for text in held], dtype=np.int64))


def _load_texts(folder: Path, name: str) -> NDArray[Any]:
    together = (folder / f"{name}.txt").read_bytes().decode("utf-8", "surrogatepass")
    ends = np.load(folder / f"{name}_ends.npy").tolist()
    return column([together[start:end] for start, end in pairwise([0, *ends])])
