"""Fingerprint of a dataset: a hash of its content, computed without decoding it."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ianvs.base.digests import checksummed_text, parse_checksummed
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.arrays import PACKED
from ianvs.exam.data.content_digests import Say, read_contents
from ianvs.exam.data.conversation_pictures import picture_digests
from ianvs.exam.data.file_formats import find_format
from ianvs.exam.data.listing import Listing, column
from ianvs.exam.data.sources import PARTS, read_parts
from ianvs.exam.data.typed_labels import type_facts
from ianvs.store import write_atomic

_BLOCK = 4096  # names of samples that are decoded to strings at a time
VERSION = 2  # part of every fingerprint: raise it when the same files give other samples


def digest_of(value: object) -> str:
    """Return the SHA-256 of a JSON value; the order of keys does not count."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def file_digests(paths: Sequence[str], cache_dir: Path, say: Say = None) -> list[str]:
    """Return the SHA-256 of each file's bytes. A file is read again only if its size or modification time has
    changed.
    """
    return [digest.tobytes().hex() for digest in read_contents(paths, cache_dir, say)[1]]


def files_fingerprint(
    spec: DatasetSpec, cache_dir: Path, listings: tuple[Listing, Listing] | None = None, say: Say = None
) -> str:
    """Return the hash of a testenv's sources: index files, all files they name, and the settings that affect samples.

    It does not depend on the location of the files or the formatting of the yaml. listings: training and test, if they
    are read already.
    """
    facts: dict[str, object] = {} if spec.data_type is None else type_facts(spec.data_type)
    of_parts = spec.train, spec.test if spec.test_share is None else spec.train
    for part, sources, listing in zip(PARTS, of_parts, listings or read_parts(spec), strict=True):
        paths = [match[1] if (match := find_format(source.path)) else (source.path,) for source in sources]
        files = [os.fspath(path) for of_source in paths for path in of_source if path.is_file()]
        contents = dict(zip(files, file_digests(files, cache_dir, say), strict=True))
        described = [
            [source.domain, *(contents.get(os.fspath(path)) for path in of_source)]
            for source, of_source in zip(sources, paths, strict=True)
        ]
        about: dict[str, object] = {"sources": described}
        if all(source.path.suffix.lower() in PACKED and source.path.is_file() for source in sources):
            about |= {"layout": listing.layout} if "NCHW" in listing.layout else {}
        else:
            about["samples"] = listing_digest(listing, cache_dir, say)
            about |= {"marks": list(listing.marks)} if listing.marks else {}
        facts[part] = about
    return settings_digest(spec, facts)


def settings_digest(spec: DatasetSpec, facts: Mapping[str, object]) -> str:
    """Return the hash of `facts` and of the settings of a dataset that affect samples."""
    classes: object = spec.classes
    if isinstance(spec.classes, Mapping):
        # Pairs, not a mapping: their order gives the classes their numbers. Lists of unused domains don't count.
        classes = [[domain, spec.classes.get(domain)] for domain in spec.using or spec.classes]
    settings = {"image_size": spec.image_size, "classes": classes, "using": spec.using, "label": spec.label}
    settings |= {"input": spec.input} if spec.input is not None else {}
    settings |= {"columns": sorted(spec.columns.items())} if spec.columns is not None else {}
    prompt = spec.system_prompt
    settings |= {"system_prompt": sorted(prompt.items()) if isinstance(prompt, Mapping) else prompt} if prompt else {}
    settings |= {"value_range": spec.value_range} if spec.value_range is not None else {}
    settings |= {"mask_values": list(spec.mask_values.items())} if spec.mask_values is not None else {}
    settings |= {"test_share": [spec.test_share, spec.test_seed]} if spec.test_share is not None else {}
    return digest_of({"version": VERSION, **settings, **facts})


def listing_digest(listing: Listing, cache_dir: Path, say: Say = None) -> str:
    """Return the hash of the samples' names and domains, and of the content and labels of files."""
    columns = [listing.ids, listing.domains]
    if listing.form == "files":
        columns.append(read_contents(listing.x.tolist(), cache_dir, say)[1])
        columns.append(
            read_contents(listing.y.tolist(), cache_dir, say)[1] if listing.label_form == "files" else listing.y
        )
    if listing.form == "conversation" and (shown := picture_digests(listing.x.tolist(), cache_dir, say)):
        columns.append(column(shown))
    # Hashes the same text as `digest_of`, without building it: it is many times as large as the names.
    hasher = hashlib.sha256(b"[")
    for number, values in enumerate(columns):
        hasher.update(b",[" if number else b"[")
        for start in range(0, len(values), _BLOCK):
            block = values[start : start + _BLOCK]
            entries = [digest.tobytes().hex() for digest in block] if block.ndim == 2 else block.tolist()
            text = json.dumps(entries, separators=(",", ":"))[1:-1]
            hasher.update(f",{text}".encode() if start else text.encode())
        hasher.update(b"]")
    hasher.update(b"]")
    return hasher.hexdigest()


def read_memo(memo: Path) -> Any:
    """Return the value stored by `write_memo`; None if it is missing or damaged, since it only saves time."""
    try:
        record = parse_checksummed(memo.read_bytes(), memo.name)
    except OSError:
        return None
    return None if record is None else record["kept"]


def write_memo(memo: Path, value: object) -> None:
    """Store a JSON value atomically."""
    write_atomic(memo, checksummed_text({"kept": value}, memo.name).encode())
