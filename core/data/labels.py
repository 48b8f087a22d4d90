"""From labels as they were written to class indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from core.config.spec import DatasetSpec
from core.data.listing import Listing, SourceError, summary
from core.errors import Place, Problem, closest, one_line

__all__ = ["class_indices", "class_names", "ignored_value"]


def class_names(listings: Sequence[Listing], spec: DatasetSpec) -> tuple[str, ...]:
    """The class names in the order of their index: `spec.classes`, else the source's own, else found in the labels.

    Found names are sorted, integers by their value. Raises SourceError where integers and names are mixed.
    """
    if spec.classes is not None:
        return spec.classes
    given = {listing.classes for listing in listings if listing.classes is not None}
    if len(given) > 1:
        message = "the parts of the data bring different class names. List the names by `classes`."
        raise SourceError([Problem(message, spec.place)])
    if given:
        return next(iter(given))
    if any(listing.label_form in ("files", "maps") for listing in listings):
        message = "label pictures hold numbers only: list the class names by `classes`, in the order of these numbers."
        raise SourceError([Problem(message, spec.place)])
    if all(listing.label_form == "text" for listing in listings):
        return ()
    names = {token for listing in listings for token in listing.labels}
    integers = {name for name in names if _is_integer(name)}
    if integers and integers != names:
        raise SourceError([_mixed(listings, integers)])
    return tuple(sorted(names, key=int) if integers else sorted(names))


def class_indices(listing: Listing, names: tuple[str, ...]) -> NDArray[np.int64]:
    """(N,) positions in `names`. A label is a name, or an integer below len(names) that is none of the names."""
    index = {name: position for position, name in enumerate(names)}
    known = {token: index.get(token, _as_index(token, len(names))) for token in set(listing.labels)}
    wrong = [i for i, token in enumerate(listing.labels) if known[token] is None]
    if wrong:
        problems = []
        for i in wrong:
            token = listing.labels[i]
            message = f"the label '{token}' is none of the classes: {one_line(names)}.{closest(token, names)}"
            problems.append(Problem(message, listing.place(i)))
        raise SourceError(summary(problems))
    return np.array([known[token] for token in listing.labels], dtype=np.int64)


def ignored_value(values: Sequence[int], names: tuple[str, ...], where: Callable[[int], Place]) -> int | None:
    """The label that means "no class": 255 or len(names), if the label pictures hold it.

    values: all numbers that occur in label pictures. where: number -> a label picture that holds it.
    Raises SourceError for a number that is neither a class nor ignored.
    """
    outside = [value for value in values if value >= len(names)]
    if not outside:
        return None
    if len(outside) == 1 and outside[0] in (255, len(names)):
        return outside[0]
    message = (
        f"the label pictures hold {one_line(outside)}, but there are {len(names)} classes (0 to {len(names) - 1}), and "
        f"only one other number can be ignored, 255 or {len(names)}. List all classes by `classes`, or map the labels."
    )
    odd = next(value for value in outside if value not in (255, len(names)) or value == outside[-1])
    raise SourceError([Problem(message, where(odd))])


def _is_integer(token: str) -> bool:
    return token.removeprefix("-").isdecimal()


def _as_index(token: str, count: int) -> int | None:
    return int(token) if _is_integer(token) and 0 <= int(token) < count else None


def _mixed(listings: Sequence[Listing], integers: set[str]) -> Problem:
    first = listings[0].labels[0] in integers
    for listing in listings:
        for i, token in enumerate(listing.labels):
            if (token in integers) != first:
                other, kind = listings[0].labels[0], "an integer" if token in integers else "a name"
                message = (
                    f"the label '{token}' is {kind}, the first label, '{other}', is not. Or list all by `classes`."
                )
                return Problem(message, listing.place(i))
    raise AssertionError("labels of two kinds, and no first one of the second kind")
