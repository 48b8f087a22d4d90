"""What a dataset is, as a hash of its content, without decoding it."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ianvs.config.spec import DatasetSpec
from ianvs.data.arrays import PACKED, array_files
from ianvs.data.listing import Listing
from ianvs.data.sources import PARTS, read_part, sources_of

__all__ = ["digest_of", "file_digests", "files_fingerprint"]

VERSION = 2  # part of every fingerprint: raise it when the same files give other samples
SETTLED_NS = 2_000_000_000  # a younger file may still change without a change of its modification time


def digest_of(value: Any) -> str:
    """SHA-256 of anything json can hold; the order of keys does not count."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def file_digests(paths: Sequence[str], cache_dir: Path) -> list[str]:
    """SHA-256 of each file's bytes. A file is read again only if its size or modification time has changed."""
    memo = cache_dir / "digests" / f"{digest_of(list(paths))[:32]}.json"
    known = _read_memo(memo)
    now = time.time_ns()
    fresh: dict[str, tuple[int, int, str]] = {}
    changed = False
    digests = []
    for path in paths:
        stat = os.stat(path)  # noqa: PTH116  (ten thousand of them: Path is slow)
        size, modified, digest = known.get(path, (-1, -1, ""))
        if (size, modified) != (stat.st_size, stat.st_mtime_ns):
            with open(path, "rb") as file:  # noqa: PTH123
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            changed = True
        digests.append(digest)
        if now - stat.st_mtime_ns > SETTLED_NS:
            fresh[path] = (stat.st_size, stat.st_mtime_ns, digest)
    if changed:
        _write_memo(memo, fresh)
    return digests


def files_fingerprint(spec: DatasetSpec, cache_dir: Path, listings: Mapping[str, Listing] | None = None) -> str:
    """Hash of what the testenv's sources hold: index files, all files they name, and the settings that shape samples.

    Not in it: where the files lie, how the yaml is written. listings: of each part, if they are read already.
    """
    return digest_of(
        {
            "version": VERSION,
            "image_size": spec.image_size,
            "classes": _classes(spec),
            "using": spec.using,
            "label": spec.label,
            **{part: _part(spec, part, cache_dir, listings) for part in PARTS},
        }
    )


def _classes(spec: DatasetSpec) -> Any:
    if not isinstance(spec.classes, Mapping):
        return spec.classes
    # Pairs, not a mapping: their order gives the classes their numbers. Lists of domains that are not used don't count.
    return [[domain, spec.classes.get(domain)] for domain in spec.using or spec.classes]


def _part(spec: DatasetSpec, part: str, cache_dir: Path, listings: Mapping[str, Listing] | None) -> dict[str, Any]:
    sources = sources_of(spec, part)
    held = [[os.fspath(path) for path in array_files(source.path).values()] for source in sources]
    files = [path for paths in held for path in paths if Path(path).is_file()]
    contents = dict(zip(files, file_digests(files, cache_dir), strict=True))
    described = [
        [source.domain, *(contents.get(path) for path in paths)] for source, paths in zip(sources, held, strict=True)
    ]
    if sources and all(source.path.suffix.lower() in PACKED and source.path.is_file() for source in sources):
        return {"sources": described}  # name no other files: no need to unpack them
    return {"sources": described, "samples": _samples(listings[part] if listings else read_part(spec, part), cache_dir)}


def _samples(listing: Listing, cache_dir: Path) -> str:
    columns: list[list[str]] = [listing.ids.tolist(), listing.domains.tolist()]
    if listing.form == "files":
        columns.append(file_digests(listing.x.tolist(), cache_dir))
        columns.append(listing.labels.tolist())
    if listing.label_form == "files":
        columns[-1] = file_digests(listing.labels.tolist(), cache_dir)
    return digest_of(columns)


def _read_memo(memo: Path) -> dict[str, tuple[int, int, str]]:
    try:
        return {
            path: (int(size), int(time_), digest)
            for path, (size, time_, digest) in json.loads(memo.read_text()).items()
        }
    except (OSError, ValueError, AttributeError, TypeError):
        return {}  # not there, or damaged: it only saves time


def _write_memo(memo: Path, entries: dict[str, tuple[int, int, str]]) -> None:
    memo.parent.mkdir(parents=True, exist_ok=True)
    part = memo.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(entries))
    part.replace(memo)
