"""Reads what a testenv names into one listing per part of the data."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import ValidationError, one_line
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam.data.conversations import require_domains_of_prompts, with_system_prompts
from ianvs.exam.data.dataset import Positions
from ianvs.exam.data.domains import assign_domains, select_domains
from ianvs.exam.data.file_formats import find_format, read_source
from ianvs.exam.data.index import WITH_FIELDS
from ianvs.exam.data.listing import Listing, SourceError, all_different, data_warning, join
from ianvs.exam.data.row_numbers import with_column_order, without_row_numbers
from ianvs.exam.data.split import stratified_split
from ianvs.exam.data.typed_labels import read_typed_labels, with_combinations_noted

PARTS = ("train", "test")


def read_parts(spec: DatasetSpec) -> tuple[Listing, Listing]:
    """Return the training and the test part. Raises SourceError with the problems of both."""
    if spec.test_share is None:
        listings: list[Listing] = []
        problems: list[ValidationError] = []
        for part in PARTS:
            try:
                listings.append(_read_whole(spec, part))
            except SourceError as broken:
                problems += broken.problems
        if problems:
            raise SourceError(dict.fromkeys(problems))
        train, test = listings
        domains = {*train.domains.tolist(), *test.domains.tolist()}
    else:
        whole = _read_whole(spec, "train")
        classes, domains = whole.label_form == "class" and spec.data_type is None, {*whole.domains.tolist()}
        rest, taken = split_by_share(whole.y, classes, whole.domains.tolist(), spec)
        train, test = whole.take(rest), whole.take(taken)
        if classes and (untested := _untested_classes_warning(train, test, spec)) is not None:
            train = train.noted([untested])
    if spec.system_prompt is not None:
        require_domains_of_prompts(domains, spec)
    if train.features and test.features:
        train, test = without_row_numbers((train, test), spec)
    if spec.data_type is None and spec.label_separator is None:
        return with_combinations_noted((train, test), spec)
    return read_typed_labels((train, test), spec)


def _untested_classes_warning(train: Listing, test: Listing, spec: DatasetSpec) -> ValidationError | None:
    """Return a warning if a class has too few samples for `test_share` to draw one of them."""
    counts, tested = Counter(train.y.tolist()), {*test.y.tolist()}
    names = [name for name in counts if name not in tested]
    few = [name for name in names if counts[name] > 1]
    if not names or spec.test_share is None:
        return None
    remedy = "Give them more samples, or leave them out"
    if few:
        remedy = f"Raise `test_share` to {1 / min(counts[name] for name in few):.2g}, or give them more samples"
    message = (
        f"`test_share` draws no test sample of {one_line(names)}: {one_line([f'{counts[n]} of {n}' for n in names])} "
        f"are too few. {remedy}."
    )
    place = spec.places.get("test_share", spec.place)
    return data_warning(message, place)


def read_part(spec: DatasetSpec, part: str) -> Listing:
    """Return the listing of "train" or "test" with the selected domains. Raises SourceError with all problems."""
    return _read_whole(spec, part) if spec.test_share is None else read_parts(spec)[PARTS.index(part)]


def split_by_share(
    labels: Iterable[Any], classes: bool, domains: Sequence[str], spec: DatasetSpec
) -> tuple[Positions, Positions]:
    """Return positions of the training and the test part; every class of every domain has about the same share.

    Args:
        labels: (N,) labels.
        classes: Whether labels are classes; otherwise they are ignored.
        domains: (N,) names.
        spec: The dataset, with `test_share`.

    Raises:
        SourceError: If the share is too small for a single test sample.
    """
    share = spec.test_share or 0.0
    groups: dict[object, int] = {}
    pairs = zip(domains, labels if classes else domains, strict=True)
    group = np.fromiter((groups.setdefault(pair, len(groups)) for pair in pairs), np.int64, len(domains))
    rest, taken = stratified_split(group, len(group), share, np.random.default_rng(spec.test_seed))
    if len(taken) or not len(group):
        return rest, taken
    if len(groups) == len(group):
        why = f"each {'class' if classes else 'domain'} has a single sample, which is trained on"
        remedy = f"Give more samples{' of each class' if classes else ''}"
    else:
        why = f"{share:g} of {len(group)} samples are none"
        remedy = f"Raise it to {max(1 / len(group), 0.01):.2g} or more, give more samples"
    message = f"`test_share` draws no test sample: {why}. {remedy}, or name the test part by `test_data`."
    raise SourceError.single(message, spec.places.get("test_share", spec.place), "missing-data")


def _read_whole(spec: DatasetSpec, part: str) -> Listing:
    """Return the listing of all sources of a part. Raises SourceError with all their problems, equal ones once."""
    listings: list[Listing] = []
    problems: list[ValidationError] = []
    for source in spec.train if part == "train" else spec.test:
        try:
            if spec.domain is not None:
                _require_no_contradiction(source, spec)
            listing = read_source(source, spec, part)
            if source.domain is not None or spec.using or isinstance(spec.classes, Mapping):
                listing = assign_domains(listing, source.domain, spec)
            listings.append(listing)
        except SourceError as broken:
            problems += broken.problems
    if problems:
        raise SourceError(dict.fromkeys(problems))
    if not listings:
        message = f"the dataset has no {part} part. Give `{part}_index` or `{part}_data`"
        raise SourceError.single(f"{message}, or a built-in source by `name`.", spec.place, "missing-data")
    if all(listing.features for listing in listings):
        listings = [with_column_order(listing, listings[0]) for listing in listings]
    listing = select(listings[0] if len(listings) == 1 else join(listings), spec, part)
    return listing if spec.system_prompt is None else with_system_prompts(listing, spec)


def select(listing: Listing, spec: DatasetSpec, part: str) -> Listing:
    """Return the samples of the selected domains, each under a unique name. Raises SourceError."""
    selected = select_domains(listing, spec, part) if spec.using or any(listing.domains) else listing
    ids = selected.ids
    rising = bool((ids[:-1] < ids[1:]).all())  # as generated names are, and most lists
    return selected if rising or all_different(ids) else replace(selected, ids=_unique(ids))


def _require_no_contradiction(source: SourceSpec, spec: DatasetSpec) -> None:
    """Raise SourceError if `domain` names a field but there are no fields, or the domain is already given."""
    place = spec.places.get("domain", source.place)
    if source.domain is not None:
        message = f"`domain` names a field, but {source.path.name} is given for the domain '{source.domain}'. Keep one."
        raise SourceError.single(message, place, "conflicting-keys")
    if source.path.is_file() and (match := find_format(source.path)) is not None and not match[0].fields:
        message = f"`domain` names a column of {one_line(WITH_FIELDS)}; {source.path.name} has none. Take it out."
        raise SourceError.single(message, place, "unfit-key")


def _unique(ids: NDArray[np.str_]) -> NDArray[np.str_]:
    """Make names unique: the second of equal names gets `#2`, the third `#3`."""
    counts: Counter[str] = Counter()
    names = []
    for name in ids.tolist():
        counts[name] += 1
        names.append(name if counts[name] == 1 else f"{name}#{counts[name]}")
    return np.array(names, dtype=str)
