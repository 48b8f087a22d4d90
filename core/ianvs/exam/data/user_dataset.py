"""Datasets of a user's file: a function that returns the samples.

It is called once, in a separate process (user_dataset_process.py). The samples are cached until the function's source,
its options or a file that it read changes.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ianvs.base.errors import Location, ValidationError, shown_path
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.array_names import KEYS
from ianvs.exam.data.arrays import Layout, arrays_listing, class_tokens, require_aligned
from ianvs.exam.data.cache import entry, is_whole
from ianvs.exam.data.conversations import read_conversations
from ianvs.exam.data.domains import assign_domains
from ianvs.exam.data.fingerprint import digest_of, listing_digest, read_memo, settings_digest, write_memo
from ianvs.exam.data.grids import TEXT_COLUMN, records_grid
from ianvs.exam.data.index import files_listing
from ianvs.exam.data.listing import Listing, SourceError, column, numbered_names
from ianvs.exam.data.normalize_user_data import CONVERSATIONS, LABELS, TENSORS, stored_columns
from ianvs.exam.data.records import Records
from ianvs.exam.data.sources import PARTS, select
from ianvs.exam.data.tables import table_listing
from ianvs.exam.data.typed_labels import type_facts, type_name
from ianvs.exam.data.user_dataset_process import SHAPING, CallResult, StoredSamples, file_signature
from ianvs.plugins.source import source_of
from ianvs.processes.isolated import IsolatedCallError, ask_isolated

VERSION = 5  # part of every key: raise it when the storage format changes


@dataclass(frozen=True)
class UserDataset:
    """The parts that a function returned, and the digests of their stored files."""

    parts: tuple[Listing, Listing]  # training, test
    content: Mapping[str, str]

    def fingerprint(self, spec: DatasetSpec, cache_dir: Path) -> str:
        """Return the hash of the samples and of settings that affect them, not of the function."""
        facts: dict[str, object] = {"class_names": self.parts[0].classes}
        facts |= {} if spec.data_type is None else type_facts(spec.data_type)
        for part, listing in zip(PARTS, self.parts, strict=True):
            if "NCHW" in listing.layout:
                facts[f"{part}_layout"] = listing.layout
            if listing.form == "files":
                facts[part] = listing_digest(listing, cache_dir)
                digests = {name: digest_of(values.tolist()) for name, values in listing.columns.items()}
                facts |= {f"{part}_columns": digests} if digests else {}
            else:
                facts[part] = {name: digest for name, digest in self.content.items() if name.startswith(f"{part}/")}
        return settings_digest(spec, facts)


def load_user_dataset(spec: DatasetSpec, cache_dir: Path, seconds: float) -> UserDataset:
    """Return the cached result of the function `spec.name` in `spec.url` for the options, calling it if necessary.

    seconds: limit for importing the file and calling the function. Raises SourceError.
    """
    url = Path(spec.url or "")
    if not url.is_file():
        raise SourceError.single(f"there is no file '{url}'.", spec.places.get("url", spec.place), "missing-file")
    name = str(spec.name)
    identity = [VERSION, str(url), name, source_of(str(url), name), dict(spec.options), str(spec.root), spec.download]
    identity.append({key: getattr(spec, key) for key in SHAPING})
    if spec.data_type is not None:
        identity += [type_facts(spec.data_type), spec.classes]
    memo = cache_dir / "authored" / f"{digest_of(identity)[:32]}.json"
    made = _read_memo(memo, cache_dir)
    if made is None:
        from filelock import FileLock

        memo.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(memo.with_suffix(".lock")):  # another process may do the same
            made = _read_memo(memo, cache_dir) or _ask(spec, url, memo, cache_dir, seconds)
    place = Location.of_line(url, made["line"])
    folder = _folder(made, cache_dir)
    classes = None if made["classes"] is None else tuple(made["classes"])
    listings = [_listing(spec, folder / part, part, place, classes) for part in PARTS]
    train, test = (
        select(assign_domains(listing, None, spec), spec, part) for part, listing in zip(PARTS, listings, strict=True)
    )
    return UserDataset((train, test), made["content"])


def _read_memo(memo: Path, cache_dir: Path) -> StoredSamples | None:
    """Return the last result, unless a file that the function read has changed."""
    made: StoredSamples | None = read_memo(memo)
    if made is None or not is_whole(_folder(made, cache_dir)):
        return None
    return made if all(file_signature(path) == look for path, look in made["read"].items()) else None


def _folder(made: StoredSamples, cache_dir: Path) -> Path:
    return cache_dir / f"authored-{digest_of(made['content'])[:32]}"


def _ask(spec: DatasetSpec, url: Path, memo: Path, cache_dir: Path, seconds: float) -> StoredSamples:
    """Call the function in another process. Raises SourceError with all errors."""
    name, place = str(spec.name), spec.places.get("name", spec.place)
    for stale in memo.parent.glob(f"{memo.stem}.*.new"):  # left by a killed process: we hold its lock
        shutil.rmtree(stale, ignore_errors=True)
    folder = memo.with_suffix(f".{os.getpid()}.new")
    folder.mkdir()
    calling = f"calling {name}() of {shown_path(url)}"
    try:
        answer: CallResult = ask_isolated(
            "ianvs.exam.data.user_dataset_process:call_function", (spec, folder.resolve()), seconds
        )
        if answer["made"] is None:
            raise SourceError(
                ValidationError(
                    message, Location(url, line, 1) if line else _place_of(option, spec) or place, code=code
                )
                for message, option, line, code in answer["wrong"]
            )
        made = answer["made"]

        def move(target: Path) -> None:
            for inside in folder.iterdir():
                inside.replace(target / inside.name)

        entry(cache_dir, _folder(made, cache_dir).name, move)
        write_memo(memo, made)
        return made
    except IsolatedCallError as error:
        remedy = " Allow it more time in the job file." if error.overran else ""
        raise SourceError.single(f"{calling} {error}.{remedy}", place, "failed-plugin") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _place_of(option: str, spec: DatasetSpec) -> Location | None:
    return spec.data_type.place if option == "data_type" and spec.data_type else spec.places.get(option)


def _listing(spec: DatasetSpec, folder: Path, part: str, place: Location, classes: tuple[str, ...] | None) -> Listing:
    if (folder / CONVERSATIONS).is_file():
        if classes is not None:
            message = "`classes` has no meaning for conversations, whose labels are the assistant's replies."
            raise SourceError.single(message, place, "unfit-key")
        for key in ("columns", "system_prompt", "skip_bad"):
            if getattr(spec, key):
                message = f"`{key}` is for conversations in files; these are a function's. Take it out."
                raise SourceError.single(message, spec.places.get(key, place), "unfit-key")
        records = [json.loads(line) for line in (folder / CONVERSATIONS).read_text(encoding="utf-8").splitlines()]
        table = Records(place.file, tuple(records), (), (place.line,) * len(records), f"{part}[{{index}}]: ")
        if TEXT_COLUMN in records[0]:
            listing = table_listing(records_grid(table), spec, part)
        else:
            listing = read_conversations(table, spec)
        return replace(listing, ids=numbered_names(part, len(records)))
    arrays = {key: np.load(file, mmap_mode="r") for key in KEYS if (file := folder / f"{key}.npy").is_file()}
    called = {key: f"{key} of {part}" for key in KEYS}
    if (folder / LABELS).is_file():
        arrays["y"] = column([json.loads(line) for line in (folder / LABELS).read_text().splitlines()])
    columns = stored_columns(folder)
    for name, values in columns.items():
        if len(values) != len(arrays["x"]):
            message = f"column '{name}' of {part} has {len(values)} entries for {len(arrays['x'])} samples."
            raise SourceError.single(message, place, "mismatched-data")
    if arrays["x"].dtype.kind != "U":
        usual: Layout | None = "NCHW" if (folder / TENSORS).is_file() else None
        listing = arrays_listing(arrays, part, place, called, classes, spec.layout, usual, type_name(spec))
        return replace(listing, columns=columns)
    count = require_aligned(arrays, called, place)
    listing = files_listing(
        place.file,
        spec,
        arrays["x"].tolist(),
        [""] * count if spec.data_type else class_tokens(arrays["y"], called["y"], place).tolist(),
        [place.line] * count,
        arrays["domain"].tolist() if "domain" in arrays else [""] * count,
        remedy=f"Paths are relative to `root` or to the folder of {place.file.name}.",
    )
    if spec.data_type is not None:
        listing = replace(listing, label_form=spec.data_type.name, y=arrays["y"])
    return replace(listing, ids=arrays.get("ids", listing.ids), classes=classes, columns=columns)
