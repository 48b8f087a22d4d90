"""What a dataset is, as a hash of its content, without decoding it."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ianvs.base.digests import parsed, sealed_text
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.arrays import PACKED, array_files
from ianvs.exam.data.listing import Listing
from ianvs.exam.data.sources import PARTS, read_part, sources_of
from ianvs.store import write_atomic

VERSION = 2  # part of every fingerprint: raise it when the same files give other samples
SETTLED_NS = 2_000_000_000  # a younger file may still change without a change of its modification time


def digest_of(value: object) -> str:
    """SHA-256 of anything json can hold; the order of keys does not count."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def file_digests(paths: Sequence[str], cache_dir: Path) -> list[str]:
    """SHA-256 of each file's bytes. A file is read again only if its size or modification time has changed."""
    memo = cache_dir / "digests" / f"{digest_of(list(paths))[:32]}.json"
    known: dict[str, tuple[int, int, str]] = read_memo(memo) or {}
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
        write_memo(memo, fresh)
    return digests


def files_fingerprint(spec: DatasetSpec, cache_dir: Path, listings: tuple[Listing, Listing] | None = None) -> str:
    """Hash of what the testenv's sources hold: index files, all files they name, and the settings that shape samples.

    Not in it: where the files lie, how the yaml is written. listings: training and test, if they are read already.
    """
    known = zip(PARTS, listings or (None, None), strict=True)
    return settings_digest(spec, {part: _part(spec, part, cache_dir, listing) for part, listing in known})


def settings_digest(spec: DatasetSpec, facts: Mapping[str, object]) -> str:
    """Hash of `facts` and of the settings of a dataset that shape samples."""
    classes: object = spec.classes
    if isinstance(spec.classes, Mapping):
        # Pairs, not a mapping: their order gives the classes their numbers. Lists of unused domains don't count.
        classes = [[domain, spec.classes.get(domain)] for domain in spec.using or spec.classes]
    settings = {"image_size": spec.image_size, "classes": classes, "using": spec.using, "label": spec.label}
    return digest_of({"version": VERSION, **settings, **facts})


def _part(spec: DatasetSpec, part: str, cache_dir: Path, listing: Listing | None) -> dict[str, object]:
    sources = sources_of(spec, part)
    held = [[os.fspath(path) for path in array_files(source.path).values()] for source in sources]
    files = [path for paths in held for path in paths if Path(path).is_file()]
    contents = dict(zip(files, file_digests(files, cache_dir), strict=True))
    described = [
        [source.domain, *(contents.get(path) for path in paths)] for source, paths in zip(sources, held, strict=True)
    ]
    if sources and all(source.path.suffix.lower() in PACKED and source.path.is_file() for source in sources):
        # They name no other files: no need to unpack them more than once, ever, for the shape of their arrays.
        memo = cache_dir / "layouts" / f"{digest_of([part, described, spec.layout])[:32]}.json"
        layout: str | None = read_memo(memo) if listing is None else listing.layout
        if layout is None:
            layout = read_part(spec, part).layout
            write_memo(memo, layout)
        return {"sources": described, **({"layout": layout} if "NCHW" in layout else {})}
    listed = read_part(spec, part) if listing is None else listing
    return {"sources": described, "samples": listing_digest(listed, cache_dir)}


def listing_digest(listing: Listing, cache_dir: Path) -> str:
    """Hash of the samples' names and domains; of files, of their content and labels too."""
    columns: list[list[str]] = [listing.ids.tolist(), listing.domains.tolist()]
    if listing.form == "files":
        labels = listing.labels.tolist()
        columns.append(file_digests(listing.x.tolist(), cache_dir))
        columns.append(file_digests(labels, cache_dir) if listing.label_form == "files" else labels)
    return digest_of(columns)


def read_memo(memo: Path) -> Any:
    """What `write_memo` kept; None where nothing is, or it is damaged: it only saves time."""
    try:
        found = parsed(memo.read_bytes(), memo.name)
    except OSError:
        return None
    return None if found is None else found["kept"]


def write_memo(memo: Path, value: object) -> None:
    """Keep something that json can hold; whole or not at all."""
    write_atomic(memo, sealed_text({"kept": value}, memo.name).encode())
