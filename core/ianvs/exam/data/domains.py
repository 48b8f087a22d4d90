"""Which domain a sample belongs to."""

from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np

from ianvs.base.errors import Location, ValidationError, closest, one_line
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.listing import Listing, SourceError, column, summary


def assign_domains(listing: Listing, domain: str | None, names: tuple[str, ...]) -> Listing:
    """The domain of each sample: its source's, else that in its `domain` column, else the one that its path names.

    names: of domains, to look for among the folders of a path.
    """
    if domain is not None:
        return replace(listing, domains=column([domain] * len(listing)))
    if not names or any(listing.domains):
        return listing
    domains, problems = [], []
    for index, name in enumerate(listing.ids):
        matches = set(_folders(name)) & set(names)
        if len(matches) > 1:
            message = f"'{name}' is in the folders of two domains: {one_line(sorted(matches))}. Name it in a column."
            problems.append(ValidationError(message, listing.place(index), code="ambiguous-data"))
        domains.append(next(iter(matches), ""))
    if problems:
        raise SourceError(summary(problems))
    return replace(listing, domains=column(domains))


def select_domains(listing: Listing, spec: DatasetSpec, part: str) -> Listing:
    """Only the samples of the domains in `spec.using`. Raises SourceError when one of these has none.

    An index whose paths hold no domain at all, and nothing that looks like a slip of the pen, comes back whole: `using`
    is a label then.
    """
    if not spec.using:
        unknown = np.flatnonzero(listing.domains == "")
        if 0 < len(unknown) < len(listing):
            message = f"'{listing.ids[unknown[0]]}' has no domain, other samples of the {part} part have one. Name it."
            raise SourceError.single(message, listing.place(unknown[0]), "invalid-record")
        return listing
    seen = sorted({domain for domain in listing.domains if domain})
    components = sorted({folder for name in listing.ids for folder in _folders(name)})
    if not seen and listing.form == "files" and not any(closest(name, components) for name in spec.using):
        return listing
    problems = []
    for name in spec.using:
        if name not in seen:
            message = (
                f"no sample of the {part} part belongs to the domain '{name}'.{closest(name, {*seen, *components})} "
                f"Domains found: {one_line(seen) or 'none'}; folders in its paths: {one_line(components) or 'none'}."
            )
            problems.append(
                ValidationError(
                    message, spec.places.get("using") or Location(Path(listing.sources[0])), code="unknown-domain"
                )
            )
    if problems:
        raise SourceError(problems)
    return listing.take(np.isin(listing.domains.astype(str), spec.using))


def label_only(train: Listing, test: Listing, spec: DatasetSpec) -> bool:
    """Whether `using` names no domain of the samples. Raises SourceError where only one part knows the domains."""
    if not spec.using:
        return False
    has_domains = [any(listing.domains) for listing in (train, test)]
    if all(has_domains):
        return False
    if any(has_domains):
        part, other, listing = ("training", "test", train) if has_domains[1] else ("test", "training", test)
        message = (
            f"no path of the {part} part holds one of {one_line(spec.using)}, and those of the {other} part do. Name "
            "the domains in both parts: as a folder, in a column `domain`, or one file for each."
        )
        raise SourceError.single(message, Location(listing.sources[0]), "mismatched-data")
    return True


def _folders(name: str) -> tuple[str, ...]:
    return PurePosixPath(name).parts[:-1]
