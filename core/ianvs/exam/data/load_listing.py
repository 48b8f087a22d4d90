"""Converts listings of a training and a test part to a Dataset: agrees on classes, decodes images once."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Location, ValidationError
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.cache import Progress, cached_arrays, cached_labels, cached_pictures, entry, slice_of
from ianvs.exam.data.content_digests import paths_digest, recent_contents
from ianvs.exam.data.conversation_pictures import picture_digests
from ianvs.exam.data.conversations import extra_columns, notes_of, user_turns
from ianvs.exam.data.dataset import Dataset, Table
from ianvs.exam.data.decode import picture_size, require_value_range
from ianvs.exam.data.domains import using_is_only_a_label
from ianvs.exam.data.encoded_pictures import Coding, EncodedPictures
from ianvs.exam.data.fingerprint import digest_of, file_digests
from ianvs.exam.data.grids import ABOUT
from ianvs.exam.data.labels import (
    AS_WRITTEN,
    IGNORED,
    ClassLists,
    Numbering,
    class_indices,
    class_lists,
    numbered_classes,
    only_numbers,
    similar_classes,
)
from ianvs.exam.data.listing import Listing, SourceError, all_different, data_warning
from ianvs.exam.data.masks import mask_numbering, to_class_indices
from ianvs.exam.data.sources import PARTS
from ianvs.exam.data.typed_labels import DATA_TYPES, Parts, type_url
from ianvs.plugins.loader import load

DECODED_BYTES = 2 << 30  # size of the decoded images of both parts, above which they stay encoded

_KINDS = {
    "class": "classification",
    "text": "text",
    "replies": "conversation",
    "files": "segmentation",
    "maps": "segmentation",
}
"""The data type by the form of the labels; any other form is the name of the data type that has read them."""


def check_listed(parts: Parts, spec: DatasetSpec) -> None:
    """Raise SourceError unless the parts fit each other and every label is one of the classes."""
    lists = _agreed_classes(parts, spec)
    for listing in parts:
        if listing.label_form == "class":
            class_indices(listing, lists)


def warnings_of(parts: Parts, spec: DatasetSpec) -> list[ValidationError]:
    """Return warnings about data that are read in an unexpected way."""
    messages = []
    if spec.using and using_is_only_a_label(*parts, spec):
        messages.append((_using_is_a_label(spec), spec.places.get("using", spec.place)))
    if parts[0].label_form in ("files", "maps") and only_numbers(parts, spec):
        messages.append((_named_by_numbers(), spec.place))
    turned = next((listing for listing in parts if "NCHW" in listing.layout), None)
    if turned is not None and spec.layout is None:
        height, width, channels = turned.x.shape[1:]
        message = (
            f"images are read as NCHW, (N, channels, height, width): {height} x {width} pixels, {channels} channels. "
            "`layout: NCHW` in the dataset says that this is right; `layout: NHWC` reads them with channels last."
        )
        messages.append((message, Location(turned.sources[0])))
    for part, listing in zip(PARTS, parts, strict=True):
        if listing.given is not None and not all_different(listing.given):
            messages += _duplicate_warnings(listing, listing.given, part)
    messages += [alike] if (alike := similar_classes(parts, spec)) is not None else []
    return [
        *(data_warning(message, place) for message, place in messages),
        *reader_warnings(parts),
        *(_warnings_of_type(parts, spec) if spec.data_type is not None else ()),
    ]


def reader_warnings(parts: Parts) -> list[ValidationError]:
    """Return the warnings of the readers of the files, each once even if both parts have it."""
    by_message = {warning.message: warning for listing in reversed(parts) for warning in reversed(listing.warnings)}
    return list(reversed(by_message.values()))


def _note(warning: ValidationError) -> str:
    """Return a warning as a note of the dataset; it names a file without its folder, since reports are read
    elsewhere.
    """
    place = warning.place
    return f"{place.file.name}{f':{place.line}' if place.line else ''}: {warning.message}" if place else warning.message


def _warnings_of_type(parts: Parts, spec: DatasetSpec) -> Iterator[ValidationError]:
    """Yield warnings of the testenv's data type on labels beside their images.

    Sources that read labels of a type themselves compare them with the files, since they know the places.
    """
    for listing in parts:
        if listing.label_form in _KINDS:
            continue
        if listing.form == "files":
            sizes = np.array([picture_size(path) for path in listing.x])
        elif listing.form == "arrays" and listing.x.ndim == 4:
            sizes = np.tile(listing.x.shape[1:3], (len(listing), 1))
        else:
            continue
        for row, message in _data_type(listing, spec).warnings(listing.y, sizes):
            yield data_warning(message, listing.place(row))


def _duplicate_warnings(listing: Listing, given: NDArray[Any], part: str) -> list[tuple[str, Location]]:
    """Return a warning on samples that are listed twice, and the place of the first repetition; [] if none is.

    given: (N,) names of the samples.
    """
    seen: set[str] = set()
    again: list[int] = []
    for index, name in enumerate(given):
        if name and name in seen:
            again.append(index)
        seen.add(name)
    if not again:
        return []
    name = listing.ids[again[0]].partition("#")[0] if listing.form == "files" else given[again[0]]
    message = (
        f"'{name}' occurs twice: {len(again)} of {len(listing)} samples of the {part} part repeat "
        "another, and count twice. Keep one of each, or give each an id of its own."
    )
    return [(message, listing.place(again[0]))]


def load_listed(
    parts: Parts, spec: DatasetSpec, fingerprint: str, cache_dir: Path, progress: Progress | None = None
) -> Dataset:
    """Return the samples; images are decoded at the first call only. Raises SourceError."""
    train, test = parts
    lists = _agreed_classes(parts, spec)
    unnamed = only_numbers(parts, spec)
    conversations = train.form == "conversation"
    named_parts = zip(PARTS, parts, strict=True) if conversations else ()
    notes = [note for part, part_listing in named_parts for note in notes_of(part_listing.x.tolist(), part)]
    notes += [_using_is_a_label(spec)] if spec.using and using_is_only_a_label(train, test, spec) else []
    require_value_range(parts, spec)
    notes += map(_note, reader_warnings(parts))
    notes += map(_note, _warnings_of_type(parts, spec) if spec.data_type is not None else ())
    spec = replace(spec, storage="encoded" if stays_encoded(parts, spec) else "decoded")
    train_x = _samples(train, spec, cache_dir, slice_of(progress, 0.0, 0.5), f"{fingerprint} train")
    test_x = _samples(test, spec, cache_dir, slice_of(progress, 0.5, 0.8), f"{fingerprint} test")
    if train_x.shape[1:] != test_x.shape[1:]:
        message = f"its samples are {test_x.shape[1:]}, those of the training part are {train_x.shape[1:]}."
        remedy = " Set `image_size: [height, width]` in the dataset." if train.form == "files" else ""
        raise SourceError.single(message + remedy, Location(test.sources[0]), "mismatched-data")
    numbering = AS_WRITTEN if unnamed else mask_numbering(spec, lists.names)
    train_y = _load_labels(train, lists, spec, cache_dir, slice_of(progress, 0.8, 0.9), numbering, fingerprint)
    test_y = _load_labels(test, lists, spec, cache_dir, slice_of(progress, 0.9, 1.0), numbering, fingerprint)
    if unnamed:
        lists = _classes_in_masks(train, test, [train_y, test_y], spec, cache_dir)
        notes.append(_named_by_numbers(len(lists.names)))
    tables: list[Table] = []
    folders: set[Path] = set()
    for listing, x, y in ((train, train_x, train_y), (test, test_x, test_y)):
        if y.ndim == 3 and listing.label_form in ("files", "maps") and x.shape[1:3] != y.shape[1:3]:
            message = f"images are {x.shape[1:3]}, masks {y.shape[1:3]}. Set `image_size: [height, width]`."
            raise SourceError.single(message, Location(listing.sources[0]), "mismatched-data")
        domains = listing.domains.astype(str) if any(listing.domains) else None
        about = {name: getattr(listing, name) for name in ABOUT.values()}
        about |= extra_columns(listing.x.tolist()) if conversations else {}
        tables.append(Table(x, y, listing.ids, domains, columns=listing.columns, **about))
        for form, paths in ((listing.form, listing.x), (listing.label_form, listing.y)):
            if form == "files":
                folders |= set(map(Path, {os.path.dirname(path) for path in paths}))  # noqa: PTH120 - Path is slow
    kind = _KINDS.get(train.label_form, train.label_form)
    return Dataset(
        name=_name(spec),
        kind=kind,
        train=tables[0],
        test=tables[1],
        classes=lists.names,
        fingerprint=fingerprint,
        ignore_index=IGNORED if kind == "segmentation" else None,
        domain_classes=lists.domains,
        notes=tuple(notes),
        folders=tuple(sorted(folders)),
        layout=train.layout,
    )


def _agreed_classes(parts: Parts, spec: DatasetSpec) -> ClassLists:
    train, test = parts
    if spec.using:
        using_is_only_a_label(train, test, spec)  # raises where only one part knows the domains
    if (train.form, train.label_form) != (test.form, test.label_form):
        message = (
            f"the test part has {test.form} with labels as {test.label_form}, the training part has {train.form} with "
            f"labels as {train.label_form}. Both parts hold the same kind of samples."
        )
        raise SourceError.single(message, Location(test.sources[0]), "mismatched-data")
    conversations = train.form == "conversation"
    with_channels = "is for arrays of images with channels, (N, ., ., .); these samples are not."
    masked, of_arrays = train.label_form in ("files", "maps"), train.form == "arrays"
    resized = train.form == "files" or (of_arrays and train.x.shape[1:3] == spec.image_size)  # or were in a table
    images = train.form == "files" or (of_arrays and train.x.ndim == 4 and train.x.dtype == np.uint8)
    no_label = "has no meaning for conversations, whose labels are the assistant's replies."
    for key, given, misplaced, why in (
        ("image_size", spec.image_size, not resized, "is for image files; these samples are not."),
        ("value_range", spec.value_range, not images, "is for images; these samples are none."),
        ("mask_values", spec.mask_values, not masked, "is for segmentation masks; these labels are none."),
        ("storage", spec.storage, train.form != "files", "is for image files; these samples are not."),
        ("layout", spec.layout, not train.layout, with_channels),
        ("pictures", spec.pictures, not conversations, "is for conversations; these samples are not."),
        ("system_prompt", spec.system_prompt, not conversations, "is for conversations; these samples are not."),
        ("columns", spec.columns, not conversations, "is for conversations; these samples are not."),
        ("label", spec.label, conversations, no_label),
        ("classes", spec.classes, conversations, no_label),
    ):
        if misplaced and given is not None:
            raise SourceError.single(f"`{key}` {why} Take it out.", spec.places.get(key, spec.place), "unfit-key")
    lists = class_lists(parts, spec)
    if spec.mask_values is not None:
        mask_numbering(spec, lists.names)  # raises where a name in it is no class
    return lists


def _samples(
    listing: Listing, spec: DatasetSpec, cache_dir: Path, progress: Progress | None, content: str
) -> NDArray[Any]:
    if listing.form != "files":
        if (
            "NCHW" in listing.layout
        ):  # the same memory layout as for channels-last input: otherwise the last bits of results differ
            key = f"pictures-{digest_of(content)[:32]}"
            return cached_arrays(cache_dir, key, lambda: {"x": listing.x})["x"]
        if listing.form != "conversation":
            return listing.x
        picture_digests(listing.x.tolist(), cache_dir)
        return user_turns(listing.x)
    if spec.storage == "encoded":
        return _encoded(listing, spec, cache_dir, content)
    return cached_pictures(listing.x.tolist(), spec.image_size, cache_dir, progress, spec.value_range)


def stays_encoded(parts: Parts, spec: DatasetSpec) -> bool:
    """Return whether images are decoded when they are read. Raises SourceError if that depends on an unreadable
    image.
    """
    if spec.storage is not None or parts[0].form != "files":
        return spec.storage == "encoded"
    height, width = spec.image_size or picture_size(parts[0].x[0])
    channels = 4 if parts[0].label_form == "files" else 3
    return sum(map(len, parts)) * height * width * channels > DECODED_BYTES


def _encoded(
    listing: Listing, spec: DatasetSpec, cache_dir: Path, content: str, numberings: Sequence[Numbering] = ()
) -> NDArray[Any]:
    """Return the images of a listing that stay encoded, or its masks if `numberings` are given, one for each mask."""
    paths = (listing.y if numberings else listing.x).tolist()
    height, width = spec.image_size or picture_size(listing.x[0])
    distinct = list(dict.fromkeys(numberings))
    where = {numbering: index for index, numbering in enumerate(distinct)}
    shape = (height, width) if numberings else (height, width, 3)
    coding = Coding("labels" if numberings else "rgb", spec.image_size, shape, tuple(distinct), spec.value_range)
    used = [where[numbering] for numbering in numberings] if numberings else None
    key = f"encoded-{digest_of([2, content, coding.to_json(), paths_digest(paths)])[:32]}"

    def fill(folder: Path) -> None:
        EncodedPictures.keep(folder, coding, paths, recent_contents(paths, cache_dir), used)

    return cast("NDArray[Any]", EncodedPictures(entry(cache_dir, key, fill)))  # it has the interface of an array


def _load_labels(
    listing: Listing,
    lists: ClassLists,
    spec: DatasetSpec,
    cache_dir: Path,
    progress: Progress | None,
    numbering: Numbering | None,
    content: str,
) -> NDArray[Any]:
    """Return labels as the Dataset holds them. numbering: of segmentation masks whose classes have no names."""
    if listing.label_form == "class":
        return class_indices(listing, lists)
    if listing.label_form in ("text", "replies"):
        return listing.y
    if listing.label_form not in _KINDS:
        return _labels_by_data_type(listing, spec, cache_dir)
    of_domain = {domain: numbering or lists.numbering(domain) for domain in set(listing.domains.tolist())}
    numberings = [of_domain[domain] for domain in listing.domains]
    if listing.label_form == "files" and spec.storage == "encoded":
        return _encoded(listing, spec, cache_dir, content, numberings)
    if listing.label_form == "files":
        paths, pictures = listing.y.tolist(), listing.x.tolist()
        return cached_labels(paths, numberings, pictures, spec.image_size, cache_dir, progress)
    maps = [to_class_indices(picture, numberings[i], listing.place(i)) for i, picture in enumerate(listing.y)]
    return np.stack(maps)


def _labels_by_data_type(listing: Listing, spec: DatasetSpec, cache_dir: Path) -> NDArray[Any]:
    """Return labels that a data type has read, moved along if images are resized."""
    if listing.form != "files" or spec.image_size is None:
        return listing.y
    paths = listing.x.tolist()
    key = f"sizes-{digest_of(file_digests(paths, cache_dir))[:32]}"
    sizes = cached_arrays(cache_dir, key, lambda: {"sizes": np.array([picture_size(path) for path in paths])})["sizes"]
    labels: NDArray[Any] = _data_type(listing, spec).resized(listing.y, np.array(spec.image_size) / sizes)
    return labels


def _data_type(listing: Listing, spec: DatasetSpec) -> Any:
    """Return the data type of the labels; this package can't import its class."""
    return load(type_url(spec.data_type), listing.label_form, DATA_TYPES).target()


def _classes_in_masks(
    train: Listing, test: Listing, pictures: list[NDArray[Any]], spec: DatasetSpec, cache_dir: Path
) -> ClassLists:
    """Return the classes in segmentation masks; those of files are cached while the files stay the same."""
    if train.label_form != "files":
        return numbered_classes(pictures, spec)
    contents = [file_digests(listing.y.tolist(), cache_dir) for listing in (train, test)]
    key = f"classes-{digest_of([spec.image_size, *contents])[:32]}"
    arrays = cached_arrays(cache_dir, key, lambda: {"names": np.array(numbered_classes(pictures, spec).names)})
    return ClassLists(tuple(arrays["names"].tolist()))


def _named_by_numbers(count: int | None = None) -> str:
    numbers = '"0", "1" and so on' if count is None else f'"0" to "{count - 1}"'
    return (
        f"no class names are given: classes are the numbers in the label pictures ({IGNORED} is ignored), and their "
        f"names are these numbers, {numbers}. List names by `classes` in the dataset, in the order of the numbers."
    )


def _using_is_a_label(spec: DatasetSpec) -> str:
    return (
        f"no path in the index holds {' or '.join(spec.using)}, so `using` is only a label. Without a `scenario`, the "
        f"training and the test file are each cut into {len(spec.using)} parts in the order of their lines. For rounds "
        "by domain, make the domain a folder of the path, a column `domain`, or give an index for each domain."
    )


def _name(spec: DatasetSpec) -> str:
    """Return the name of the data in a leaderboard."""
    if spec.title is not None:
        return spec.title
    if spec.name is not None:
        return spec.name
    if spec.using:
        return " ".join(spec.using)
    # The name of an index is its folder; of another file its name, or its folder if the name only states the part.
    first = spec.train[0]
    says_little = first.path.stem.casefold() in ("train", "train_data", "training", "x_train", "data", "x")
    return first.path.parent.name if first.form == "index" or says_little else first.path.stem
