"""Converts labels as written to class indices.

All classes of a dataset have one numbering, 0 to C-1. If every domain has its own class list, a label is a position in
the list of its sample's domain, and the numbering is of the union of the lists, by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Location, ValidationError, closest, one_line
from ianvs.config.models.image_keys import IGNORE
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.cells import CLASS_INDEX, class_of
from ianvs.exam.data.listing import Listing, SourceError, summary

IGNORED = 255  # "no class" in segmentation masks, whatever number their files use


@dataclass(frozen=True)
class ClassLists:
    """The classes of a dataset.

    Attributes:
        names: Of all classes, in the order of their index.
        domains: For each domain the class indices of its own list, in that list's order; empty if all share `names`.
    """

    names: tuple[str, ...]
    domains: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def numbering(self, domain: str) -> Numbering:
        """Return the numbering of labels in `domain`."""
        if self.domains:
            return Numbering(self.domains[domain], f" of the domain '{domain}'")
        return Numbering(tuple(range(len(self.names))))


@dataclass(frozen=True)
class Numbering:
    """How a file numbers classes.

    Attributes:
        classes: The class index of each number.
        owner: Whose numbering it is, for messages.
        values: With `mask_values`, the value that stands for each of `classes` in place of its position: numbers, or
            colours (red, green, blue); one of the classes may then be IGNORED.
    """

    classes: tuple[int, ...]
    owner: str = ""
    values: tuple[int | tuple[int, ...], ...] = ()

    @property
    def colours(self) -> bool:
        """Whether colours stand for classes."""
        return bool(self.values) and isinstance(self.values[0], tuple)


AS_WRITTEN = Numbering(tuple(range(IGNORED)))  # for segmentation masks whose numbers are class indices


def only_numbers(listings: Sequence[Listing], spec: DatasetSpec) -> bool:
    """Return whether the classes are known only from the numbers in segmentation masks."""
    named = (
        spec.classes is not None
        or spec.mask_values is not None
        or any(listing.classes is not None for listing in listings)
    )
    return not named and any(listing.label_form in ("files", "maps") for listing in listings)


def numbered_classes(pictures: Sequence[NDArray[np.uint8]], spec: DatasetSpec) -> ClassLists:
    """Return classes "0", "1", ... up to the highest number in segmentation masks (N, height, width), except 255.

    Raises SourceError if all pixels are ignored.
    """
    highest = -1
    for picture in chain.from_iterable(pictures):  # one at a time: they may be a memory map of many gigabytes
        named = picture[picture != IGNORED]
        highest = max(highest, int(named.max()) if named.size else -1)
    if highest < 0:
        message = f"every pixel of the masks is {IGNORED}, which is ignored: there is no class to learn."
        raise SourceError.single(message, spec.place, "invalid-array")
    return ClassLists(tuple(map(str, range(highest + 1))))


def class_lists(listings: Sequence[Listing], spec: DatasetSpec) -> ClassLists:
    """Return the classes: those of `spec.classes`, else the source's own, else those found in the labels.

    Lists by domain are merged by name, in the order of `using`, else of the lists. Found names are sorted, integers by
    value; classes of masks are found elsewhere (see `only_numbers`). Raises SourceError if integers and names are
    mixed, or a domain has no list.
    """
    given = {listing.classes for listing in listings if listing.classes is not None}
    names: Collection[str] = ()
    if spec.classes is not None:
        names = spec.classes
    elif len(given) > 1:
        message = "the parts of the data bring different class names. List the names by `classes`."
        raise SourceError.single(message, spec.place, "mismatched-data")
    elif given:
        names = given.pop()
    elif spec.mask_values is not None:
        names = [name for name in spec.mask_values if name != IGNORE]
    elif any(listing.label_form == "class" for listing in listings):
        names = {token for listing in listings for token in listing.y}
        integers = {name for name in names if CLASS_INDEX.fullmatch(name)}
        if 0 < len(integers) < len(names):
            _refuse_mixed(listings, integers)
        names = sorted(names, key=int) if integers else sorted(names)
    lists = _by_domain(listings, spec) if isinstance(spec.classes, Mapping) else ClassLists(tuple(names))
    if len(lists.names) > IGNORED and any(listing.label_form in ("files", "maps") for listing in listings):
        message = f"there are {len(lists.names)} classes; masks can distinguish {IGNORED}."
        raise SourceError.single(message, spec.places.get("classes", spec.place), "out-of-range")
    return lists


def similar_classes(listings: Sequence[Listing], spec: DatasetSpec) -> tuple[str, Location] | None:
    """Return a warning on class names that differ in upper and lower case or blanks only, and the place of one.

    Single letters do not count: handwritten characters are classes in both cases.
    """
    counts = Counter(name for listing in listings if listing.label_form == "class" for name in listing.y.tolist())
    groups: dict[str, list[str]] = {}
    for name, _ in counts.most_common():
        if len(name) > 1:
            groups.setdefault("".join(name.casefold().split()), []).append(name)
    alike = [names for names in groups.values() if len(names) > 1]
    if spec.classes is not None or not alike:
        return None
    listing, row = next((each, row) for each in listings for row, name in enumerate(each.y) if name == alike[0][1])
    written = [
        f"'{name}' ({counts[name]} labels)" if counts[name] > 1 else f"'{name}' (one label)" for name in alike[0]
    ]
    more = f" {len(alike) - 1} more names are so." if len(alike) > 1 else ""
    message = (
        f"{' and '.join(written)} are read as {len(written)} classes, and differ in upper and lower case or blanks "
        f"only. If they are one class, write them alike.{more}"
    )
    return message, listing.place(row)


def class_indices(listing: Listing, lists: ClassLists) -> NDArray[np.int64]:
    """Return (N,) class indices. A label is a name in its class list, or a position in it if no name equals it."""
    indices = np.full(len(listing.y), -1)
    classes = lists.domains or {"": tuple(range(len(lists.names)))}
    for domain, class_list in classes.items():
        rows = np.flatnonzero(listing.domains == domain) if lists.domains else slice(None)
        labels: list[str] = listing.y[rows].tolist()
        positions: dict[str, int] = {}
        for position, index in enumerate(class_list):
            positions.setdefault(class_of(lists.names[index]), position)
        index_of = {}
        for label in dict.fromkeys(labels):
            position = positions.get(label, int(label) if CLASS_INDEX.fullmatch(label) else -1)
            index_of[label] = class_list[position] if 0 <= position < len(class_list) else -1
        indices[rows] = np.fromiter(map(index_of.__getitem__, labels), np.int64, len(labels))
    problems = []
    for row in np.flatnonzero(indices < 0).tolist():
        domain = listing.domains[row] if lists.domains else ""
        names = [lists.names[index] for index in classes[domain]]
        owner = f" of the domain '{domain}'" if lists.domains else ""
        message = f"the label '{listing.y[row]}' is none of the classes{owner}: {one_line(names)}."
        hint = closest(listing.y[row], names)
        problems.append(ValidationError(message + hint, listing.place(row), code="unknown-class"))
    if problems:
        raise SourceError(summary(problems))
    return indices


def _refuse_mixed(listings: Sequence[Listing], integers: set[str]) -> NoReturn:
    """Raise SourceError with the first label that is an integer where the first one is a name, or the other way."""
    first = listings[0].y[0]
    listing, i = next(
        (listing, i)
        for listing in listings
        for i, token in enumerate(listing.y)
        if (token in integers) != (first in integers)
    )
    kind = "a name" if first in integers else "an integer"
    message = f"the label '{listing.y[i]}' is {kind}, the first label, '{first}', is not."
    raise SourceError.single(f"{message} Or list all by `classes`.", listing.place(i), "ambiguous-data")


def _by_domain(listings: Sequence[Listing], spec: DatasetSpec) -> ClassLists:
    assert isinstance(spec.classes, Mapping)
    given = spec.classes
    place = spec.places.get("classes", spec.place)
    for listing in listings:
        for i in np.flatnonzero(~np.isin(listing.domains.astype(str), list(given)))[:1]:
            if name := str(listing.domains[i]):
                hint = closest(name, given) or f" There are lists for: {one_line(list(given))}."
                raise SourceError.single(
                    f"the domain '{name}' has no class list in `classes`.{hint}", place, "unknown-domain"
                )
            message = f"'{listing.ids[i]}' has no domain, but `classes` has a list for each domain. Name its domain."
            raise SourceError.single(message, listing.place(int(i)), "invalid-record")
    used = spec.using or tuple(given)
    names = tuple(dict.fromkeys(name for domain in used for name in given[domain]))
    index = {name: position for position, name in enumerate(names)}
    return ClassLists(names, {domain: tuple(index[name] for name in given[domain]) for domain in used})
