"""From what a testenv names to one listing per part of the data; folders of class folders of pictures."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Location, ValidationError, one_line
from ianvs.base.tool_files import tool_part
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam.data.arrays import PACKED, read_arrays
from ianvs.exam.data.conversation_forms import Forms
from ianvs.exam.data.conversations import holds_conversations, read_conversations
from ianvs.exam.data.csv_headers import csv_header
from ianvs.exam.data.dataset import Positions
from ianvs.exam.data.domains import assign_domains, select_domains
from ianvs.exam.data.index import COMPRESSED, LISTS, PICTURE_SUFFIXES, WITH_FIELDS, read_lines, suffix_of
from ianvs.exam.data.listing import Listing, SourceError, all_different, column, join
from ianvs.exam.data.records import read_records
from ianvs.exam.data.row_numbers import aligned, without_row_numbers
from ianvs.exam.data.split import stratified_split
from ianvs.exam.data.table_forms import table_form, table_forms
from ianvs.exam.data.tables import read_csv, read_table
from ianvs.exam.data.typed_labels import type_name, typed

PARTS = ("train", "test")
T = TypeVar("T")


def sources_of(spec: DatasetSpec, part: str) -> tuple[SourceSpec, ...]:
    """The sources of "train" or "test", which may be a share of the former."""
    return spec.train if part == "train" or spec.test_share is not None else spec.test


def read_parts(spec: DatasetSpec) -> tuple[Listing, Listing]:
    """The training and the test part. Raises SourceError with the problems of both."""
    if spec.test_share is None:
        train, test = _each(lambda part: _read_whole(spec, part), PARTS)
        return typed(without_row_numbers((train, test), spec), spec)
    whole = _read_whole(spec, "train")
    classes = whole.label_form == "class" and spec.data_type is None
    kept, taken = shared_out(whole.labels, classes, whole.domains.tolist(), spec.test_share, spec.test_seed)
    return typed(without_row_numbers((whole.take(kept), whole.take(taken)), spec), spec)


def read_part(spec: DatasetSpec, part: str) -> Listing:
    """What "train" or "test" lists, domains chosen. Raises SourceError with the problems of all its sources."""
    return _read_whole(spec, part) if spec.test_share is None else read_parts(spec)[PARTS.index(part)]


def shared_out(
    labels: Iterable[Any], classes: bool, domains: Sequence[str], share: float, seed: int
) -> tuple[Positions, Positions]:
    """Positions of the training and of the test part; every class of every domain gives about the same share.

    labels: (N,) classes if `classes`, else they don't count. domains: (N,) names.
    """
    groups: dict[object, int] = {}
    pairs = zip(domains, labels if classes else domains, strict=True)
    group = np.fromiter((groups.setdefault(pair, len(groups)) for pair in pairs), np.int64, len(domains))
    return stratified_split(group, len(group), share, np.random.default_rng(seed))


def _read_whole(spec: DatasetSpec, part: str) -> Listing:
    names = domain_names(spec)

    def read(source: SourceSpec) -> Listing:
        _require_no_contradiction(source, spec)
        return assign_domains(_read(source, spec, part), source.domain, names)

    listings = _each(read, sources_of(spec, part))
    if not listings:
        message = f"the dataset has no {part} part. Give `{part}_index` or `{part}_data`"
        raise SourceError(
            [ValidationError(f"{message}, or a built-in source by `name`.", spec.place, code="missing-data")]
        )
    if all(one.features for one in listings):
        listings = [aligned(one, listings[0]) for one in listings]
    return select(join(listings), spec, part)


def _each(read: Callable[[T], Listing], of: Iterable[T]) -> list[Listing]:
    """What `read` lists of each. Raises SourceError with the problems of all, one that they share once."""
    listings: list[Listing] = []
    problems: list[ValidationError] = []
    for one in of:
        try:
            listings.append(read(one))
        except SourceError as broken:
            problems += broken.problems
    if problems:
        raise SourceError(dict.fromkeys(problems))
    return listings


def domain_names(spec: DatasetSpec) -> tuple[str, ...]:
    """What is looked for in the paths of samples."""
    return spec.using or (tuple(spec.classes) if isinstance(spec.classes, Mapping) else ())


def select(listing: Listing, spec: DatasetSpec, part: str) -> Listing:
    """The samples of the domains to use, each under a name of its own. Raises SourceError."""
    selected = select_domains(listing, spec, part)
    return replace(selected, ids=_unique(selected.ids))


def _require_no_contradiction(source: SourceSpec, spec: DatasetSpec) -> None:
    """`domain` names a field of records: where there are none, or the domain is given already, it would do nothing."""
    if spec.domain is None:
        return
    place = spec.places.get("domain", source.place)
    if source.domain is not None:
        message = f"`domain` names a field, but {source.path.name} is given for the domain '{source.domain}'. Keep one."
        raise SourceError([ValidationError(message, place, code="conflicting-keys")])
    if source.path.is_file() and suffix_of(source.path) not in WITH_FIELDS and not table_form(source.path):
        message = f"`domain` names a column of {one_line(WITH_FIELDS)}; {source.path.name} has none. Take it out."
        raise SourceError([ValidationError(message, place, code="unfit-key")])


def _read(source: SourceSpec, spec: DatasetSpec, part: str) -> Listing:
    path = source.path
    if (found := table_form(path)) is not None:
        return found[0].read(found[1], path, spec)
    if path.is_dir():
        return read_folder(source, spec)
    if not path.is_file():
        raise SourceError([ValidationError(f"there is no file or folder '{path}'.", source.place, code="missing-file")])
    match suffix_of(path):
        case listed if listed in LISTS:
            return read_lines(source, spec)
        case ".csv" | ".tsv":
            if not Forms().of(dict.fromkeys(csv_header(path))):
                return read_table(source, spec)
            rows = read_csv(path)
            talk = not (spec.input or spec.label) and holds_conversations(rows, spec)
            return read_conversations(rows, spec) if talk else read_table(source, spec, rows)
        case ".json" | ".jsonl":
            records = read_records(path)
            if holds_conversations(records, spec):
                return read_conversations(records, spec)
            return read_table(source, spec, records)
        case packed if packed in PACKED:
            return read_arrays(source, part, spec.layout, type_name(spec))
        case other:
            known = one_line([".txt", *WITH_FIELDS, *PACKED, *(end for form in table_forms() for end in form.suffixes)])
            packed = f"(text also in {' or '.join(COMPRESSED)})"
            message = f"don't know how to read '{other}'; expected {known} {packed}, or a folder."
            raise SourceError([ValidationError(message, source.place or Location(path), code="wrong-path-type")])


def _unique(ids: NDArray[np.str_]) -> NDArray[np.str_]:
    """A name for one sample only: the second of equal names gets `#2`, the third `#3`."""
    rising = bool((ids[:-1] < ids[1:]).all())  # as names that we give are, and most lists
    if rising or all_different(ids):
        return ids
    counts: Counter[str] = Counter()
    names = []
    for name in ids.tolist():
        counts[name] += 1
        names.append(name if counts[name] == 1 else f"{name}#{counts[name]}")
    return np.array(names, dtype=str)


def read_folder(source: SourceSpec, spec: DatasetSpec) -> Listing:
    """`<class>/.../<picture>`, or `<domain>/<class>/.../<picture>` for the domains that `using` names.

    In the order of the sorted paths, which is the same on every machine.
    """
    names, left_out = _pictures(source.path)
    if not names:
        message = f"holds no pictures; expected <class>/<picture> with {one_line(PICTURE_SUFFIXES)}."
        raise SourceError([ValidationError(message, Location(source.path), code="empty-dataset")])
    labels = [_class(name, spec.using) for name in names]
    loose = [name.as_posix() for name, label in zip(names, labels, strict=True) if label is None]
    if loose:
        message = f"these pictures lie in no class folder: {one_line(loose, 3)}. Put each into the folder of its class."
        raise SourceError([ValidationError(message, Location(source.path), code="invalid-record")])
    warnings = []
    if left_out:
        message = (
            f"{one_line(left_out, 5)} is left out: hidden files and those of tools are no samples. Rename a folder "
            "that is a class, or name its pictures in an index file."
        )
        warnings.append(ValidationError(message, Location(source.path), warning=True, code="doubtful-data"))
    none = np.zeros(len(names), dtype=np.int64)
    return Listing(
        form="files",
        x=column([os.fspath(source.path / name) for name in names]),
        label_form="class",
        labels=column(labels),
        ids=np.array([name.as_posix() for name in names], dtype=str),
        domains=column([""] * len(names)),
        sources=(source.path,),
        origins=none,
        lines=none,
        warnings=tuple(warnings),
    )


def _pictures(folder: Path) -> tuple[list[PurePath], tuple[str, ...]]:
    """(pictures below a folder, sorted; folders and pictures that tools left there, which are none of the samples)."""
    found, left_out = [], set()
    for here, _, files in os.walk(folder, followlinks=True):
        below = PurePath(here).relative_to(folder)
        for name in files:
            if name.lower().endswith(PICTURE_SUFFIXES):
                path = below / name
                if (of_tool := tool_part(path)) is None:
                    found.append(path)
                else:
                    left_out.add(of_tool.as_posix())
    return sorted(found, key=lambda name: name.parts), tuple(sorted(left_out))


def _class(name: PurePath, domains: tuple[str, ...]) -> str | None:
    folders = name.parent.parts
    if folders and folders[0] in domains:
        folders = folders[1:]
    return folders[0] if folders else None
