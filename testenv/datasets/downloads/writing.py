"""Writes the index files that a testenv reads, from the files found by a preparer."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError, shown_path
from ianvs.exam.data.labels import IGNORED
from ianvs.store.files import write_atomic, write_json
from ianvs.testenv.datasets.downloads.label_ids import check_ids, check_size, map_ids, read_ids, write_ids
from ianvs.testenv.datasets.downloads.paired_folders import Pair
from ianvs.testenv.datasets.downloads.raw_domain import RawDomain

PARTS = ("train", "test")
PROVENANCE = "provenance.json"

Progress = Callable[[int, int], None]  # (images done, images in all)


@dataclass(frozen=True)
class Prepared:
    """A prepared domain: `folder` holds train-index.txt, test-index.txt, classes.yaml and provenance.json."""

    domain: str
    folder: Path
    classes: tuple[str, ...]
    counts: Mapping[str, int]  # number of images, by "train" and "test"
    warnings: tuple[str, ...]


def write_domain(
    raw: RawDomain, folder: Path, origin: Mapping[str, Any], *, check: bool = True, progress: Progress | None = None
) -> Prepared:
    """Check every pair, write mapped masks, then the lists. Raises DataError that names the first invalid file.

    origin: the origin of the data, for provenance.json. check: whether masks that are used unchanged are opened; those
    that are mapped always are.
    """
    refuse_strange_index(folder)
    pairs = {"train": raw.train, "test": raw.test}
    done, total = 0, len(raw.train) + len(raw.test)
    warnings = list(raw.warnings)
    pixels: dict[str, dict[str, int]] = {}
    listed: dict[str, list[Pair]] = {}
    for part, of_part in pairs.items():
        if not of_part:
            raise DataError(f"the {part} part of {raw.domain} would be empty.", code="damaged-dataset")
        work = partial(_settle, raw, folder / "labels" / part, check)
        counts = np.zeros(IGNORED + 1, dtype=np.int64)
        listed[part] = []
        for pair, counted in _in_threads(work, of_part):
            listed[part].append(pair)
            counts += counted
            done += 1
            if progress is not None:
                progress(done, total)
        if check or raw.mapping is not None:
            pixels[part] = _by_class(raw, counts)
            absent = [name for name in raw.labels.classes if not pixels[part][name]]
            if absent:
                warnings.append(f"no pixel of the {part} part is {', '.join(absent)}")
    record = {
        **origin,
        "domain": raw.domain,
        "counts": {part: len(ready) for part, ready in listed.items()},
        "split": dict(raw.split),
        "mapping": None if raw.mapping is None else {str(old): new for old, new in raw.mapping.items()},
        "pixels": pixels,
        "warnings": warnings,
    }
    write_json(folder / PROVENANCE, record)
    _write_classes(folder, raw)
    for part, ready in listed.items():
        _write_index(folder, part, ready)
    return Prepared(raw.domain, folder, raw.labels.classes, record["counts"], tuple(warnings))


def write_together(folder: Path, domains: Sequence[Prepared], origin: Mapping[str, Any]) -> None:
    """Write index files over several domains, prepared in folders of their names below `folder`."""
    import yaml

    for part in PARTS:
        lines: list[str] = []
        for prepared in domains:
            for line in (prepared.folder / f"{part}-index.txt").read_text(encoding="utf-8").splitlines():
                sep = "\t" if "\t" in line else " "
                lines.append(_line(*(_written(prepared.folder / path, folder) for path in line.split(sep))))
        write_atomic(folder / f"{part}-index.txt", "".join(lines).encode())
    lists = {prepared.domain: list(prepared.classes) for prepared in domains}
    write_atomic(folder / "classes.yaml", yaml.safe_dump({"classes": lists}, sort_keys=False, width=110).encode())
    write_json(folder / PROVENANCE, {**origin, "domains": list(lists)})


def refuse_strange_index(folder: Path) -> None:
    """Raise DataError if `folder` has index files that were not written by this command."""
    strange = [name for part in PARTS if (folder / (name := f"{part}-index.txt")).exists()]
    if strange and not (folder / PROVENANCE).exists():
        message = "is there already and was not written by `ianvs dataset prepare`. Choose another folder by `--out`."
        raise DataError(f"{shown_path(folder / strange[0])}: {message}", code="existing-output")


def _settle(raw: RawDomain, folder: Path, check: bool, pair: Pair) -> tuple[Pair, NDArray[np.int64]]:
    """Return the pair to list, with its mask mapped if necessary, and how often each id occurs in it."""
    if not (check or pair.mapped):
        return pair, np.zeros(IGNORED + 1, dtype=np.int64)
    ids = read_ids(pair.label, first_channel=raw.first_channel)
    check_size(pair.picture, pair.label, ids.shape)
    if pair.mapped and raw.mapping is not None:
        ids = map_ids(pair.label, ids, raw.mapping)
        target = folder / f"{pair.key}_TrainIds.png"
        write_ids(target, ids)
        pair = Pair(pair.key, pair.picture, target)
    else:
        check_ids(pair.label, ids, len(raw.labels.classes))
    return pair, np.bincount(ids.ravel().astype(np.uint8), minlength=IGNORED + 1)


def _in_threads(
    work: Callable[[Pair], tuple[Pair, NDArray[np.int64]]], pairs: Sequence[Pair]
) -> Iterator[tuple[Pair, NDArray[np.int64]]]:
    """Yield the results in order. Decoding releases the interpreter's lock, so threads are sufficient."""
    pool = ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, 16))
    try:
        yield from pool.map(work, pairs)
    finally:
        pool.shutdown(cancel_futures=True)


def _by_class(raw: RawDomain, counts: NDArray[np.int64]) -> dict[str, int]:
    names = raw.labels.classes
    return {name: int(counts[number]) for number, name in enumerate(names)} | {
        "ignored": int(counts[len(names) :].sum())
    }


def _write_classes(folder: Path, raw: RawDomain) -> None:
    import yaml

    content: dict[str, Any] = {"domain": raw.domain, "classes": list(raw.labels.classes)}
    if raw.labels.groups:
        content["groups"] = {group: list(names) for group, names in raw.labels.groups.items()}
    content["palette"] = {name: list(colour) for name, colour in raw.labels.palette.items()}
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=110)
    text = "# Names in the order of their ids; `classes` is what a testenv wants.\n" + text
    write_atomic(folder / "classes.yaml", text.encode())


def _write_index(folder: Path, part: str, pairs: Sequence[Pair]) -> None:
    lines = [_line(_written(pair.picture, folder), _written(pair.label, folder)) for pair in pairs]
    write_atomic(folder / f"{part}-index.txt", "".join(lines).encode())


def _line(picture: str, label: str) -> str:
    """Return a line of an index, separated by a blank, or by a tab if a path has blanks or quotes."""
    both = picture + label
    if "\t" in both or "\n" in both:
        raise DataError(
            f"{picture!r}: an index can't list a path with a tab or a line break. Rename the folder.",
            code="damaged-dataset",
        )
    return f"{picture}\t{label}\n" if " " in both or '"' in both else f"{picture} {label}\n"


def _written(path: Path, folder: Path) -> str:
    """Return a path relative to the index if it is in its folder or the one above, which are moved together.

    Else absolute.
    """
    path, folder = Path(os.path.abspath(path)), Path(os.path.abspath(folder))  # noqa: PTH100  (links stay links)
    if path.is_relative_to(folder) or (path.is_relative_to(folder.parent) and folder.parent != Path(folder.anchor)):
        return Path(os.path.relpath(path, folder)).as_posix()
    return path.as_posix()
