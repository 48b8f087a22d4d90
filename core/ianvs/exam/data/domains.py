"""Assigns samples to domains."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np

from ianvs.base.errors import Location, ValidationError, closest, one_line
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.listing import Listing, SourceError, column, summary


def assign_domains(listing: Listing, domain: str | None, spec: DatasetSpec) -> Listing:
    """Set the domain of each sample: that of its source, else its `domain` column, else a folder of its path."""
    names = spec.using or (tuple(spec.classes) if isinstance(spec.classes, Mapping) else ())
    if domain is not None:
        return replace(listing, domains=column([domain] * len(listing)))
    if not names or any(listing.domains):
        return listing
    domains, problems = [], []
    for index, name in enumerate(listing.ids):
        matches = set(_folders(name)) & set(names)
        if len(matches) > 1:
            message = f"'{name}' is in folders of two domains: {one_line(sorted(matches))}. Set its domain in a column."
            problems.append(ValidationError(message, listing.place(index), code="ambiguous-data"))
        domains.append(next(iter(matches), ""))
    if problems:
        raise SourceError(summary(problems))
    return replace(listing, domains=column(domains))


def select_domains(listing: Listing, spec: DatasetSpec, part: str) -> Listing:
    """Return the samples of the domains in `spec.using`. Raises SourceError if one of these has none.

    If no path contains a domain and no folder has a similar name, `using` is a mere label: the listing is unchanged.
    """
    if not spec.using:
        unknown = np.flatnonzero(listing.domains == "")
        if 0 < len(unknown) < len(listing):
            message = f"'{listing.ids[unknown[0]]}' has no domain, others of the {part} part have one. Set it."
            raise SourceError.single(message, listing.place(unknown[0]), "invalid-record")
        return listing
    present = sorted({domain for domain in listing.domains if domain})
    components = sorted({folder for name in listing.ids for folder in _folders(name)})
    if not present and listing.form == "files" and not any(closest(name, components) for name in spec.using):
        return listing
    problems = []
    for name in spec.using:
        if name not in present:
            message = (
                f"no sample of the {part} part belongs to the domain '{name}'.{closest(name, {*present, *components})} "
                f"Domains: {one_line(present) or 'none'}; folders in its paths: {one_line(components) or 'none'}."
            )
            problems.append(
                ValidationError(
                    message, spec.places.get("using") or Location(Path(listing.sources[0])), code="unknown-domain"
                )
            )
    if problems:
        raise SourceError(problems)
    return listing.take(np.isin(listing.domains.astype(str), spec.using))


def using_is_only_a_label(train: Listing, test: Listing, spec: DatasetSpec) -> bool:
    """Return whether `using` names no domain of the samples. Raises SourceError if only one part has the domains."""
    has_domains = [any(listing.domains) for listing in (train, test)]
    if all(has_domains):
        return False
    if any(has_domains):
        part, other, listing = ("training", "test", train) if has_domains[1] else ("test", "training", test)
        message = (
            f"no path of the {part} part contains one of {one_line(spec.using)}, those of the {other} part do. Name "
            "the domains in both parts: as a folder, in a column `domain`, or one file for each."
        )
        raise SourceError.single(message, Location(listing.sources[0]), "mismatched-data")
    return True


def _folders(name: str) -> tuple[str, ...]:
    return PurePosixPath(name).parts[:-1]
