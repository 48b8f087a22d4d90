"""What sources list, before anything is decoded: aligned columns of samples, and where each one was written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError, Location, ValidationError

TOLD = 5  # of the problems of one file
_COLUMNS = ("x", "labels", "ids", "domains", "lines")


class SourceError(DataError):
    """A source that can't be read, with every problem found in it."""

    def __init__(self, problems: Iterable[ValidationError]) -> None:
        self.problems: tuple[ValidationError, ...] = tuple(problems)
        super().__init__(
            "\n".join(map(str, self.problems)), code=self.problems[0].code if self.problems else "unspecified"
        )

    def __reduce__(self) -> tuple[type[SourceError], tuple[tuple[ValidationError, ...]]]:
        return type(self), (self.problems,)


@dataclass(frozen=True)
class Listing:
    """N samples as they were written down.

    x: (N,) absolute file names ("files"), (N, ...) arrays ("arrays"), or (N,) texts ("text").
    labels: (N,) class tokens ("class"), (N,) absolute names of label pictures ("files"), (N, height, width) uint8
    ("maps"), or (N,) texts ("text").
    ids: (N,) the samples' names as written, relative where they could be made so.
    domains: (N,) names, "" where none is written.
    origins, lines: (N,) the position in `sources` and the line there (0: has no lines) where a sample was written.
    """

    form: str
    x: NDArray[Any]
    label_form: str
    labels: NDArray[Any]
    ids: NDArray[Any]
    domains: NDArray[Any]
    sources: tuple[Path, ...]
    origins: NDArray[np.int64]
    lines: NDArray[np.int64]
    classes: tuple[str, ...] | None = None  # names that the source itself brings for integer labels
    given: NDArray[Any] | None = None  # (N,) what each sample goes by where it was written, "" for nothing
    marks: tuple[str, ...] = ()  # what a later version reads of the same files; part of what they are
    # Of texts, (N,) by the names of Samples' columns: what else is written of each, "" for nothing.
    about: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # (N, ...) by name, for metrics that name them
    features: tuple[str, ...] = ()  # names of the columns of `x`, of a table of numbers
    row_ids: tuple[str, ...] = ()  # those of `features` whose name and values are those of a row number
    label_columns: tuple[str, ...] = ()  # names of the columns of `labels` (N, C), of a table that has several
    warnings: tuple[ValidationError, ...] = ()  # of the reader of the files, each with its place
    layout: str = ""  # of arrays with four axes, as they came: NHWC or NCHW; in `x` the channels are last

    def __len__(self) -> int:
        return len(self.ids)

    def place(self, index: int) -> Location:
        """Where sample `index` was written."""
        return Location(self.sources[self.origins[index]], int(self.lines[index]), 1 if self.lines[index] else 0)

    def take(self, keep: NDArray[Any]) -> Listing:
        """The samples at `keep` (positions or a mask), in that order."""
        return replace(
            self,
            given=None if self.given is None else self.given[keep],
            about={name: values[keep] for name, values in self.about.items()},
            columns={name: values[keep] for name, values in self.columns.items()},
            **{name: getattr(self, name)[keep] for name in (*_COLUMNS, "origins")},
        )


def column(values: Sequence[Any]) -> NDArray[Any]:
    """(N,) object array. numpy alone would make a matrix of equally long lists."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def all_different(names: Sequence[str] | NDArray[np.str_]) -> bool:
    """Whether it is certain that no two of the names are equal; a set of them takes many times as much memory."""
    hashes = np.fromiter(map(hash, names), np.int64, len(names))
    hashes.sort()
    return bool((hashes[1:] != hashes[:-1]).all())


def numbered_names(stem: str, count: int) -> NDArray[np.str_]:
    """(count,) names "train/000000", "train/000001" and so on, where `stem` is "train"."""
    names = np.char.add(f"{stem}/", np.char.zfill(np.arange(count).astype(str), 6))
    return names.astype(f"U{len(names[-1])}") if count else names


def join(listings: Sequence[Listing]) -> Listing:
    """One listing after the other. Raises SourceError when they list different kinds of things."""
    first = listings[0]
    if len(listings) == 1:
        return first
    for other in listings[1:]:
        for noun, expected, actual in (
            ("samples", _described(first.form, first.x), _described(other.form, other.x)),
            ("labels", _described(first.label_form, first.labels), _described(other.label_form, other.labels)),
            ("class names", str(first.classes), str(other.classes)),
        ):
            if expected != actual:
                message = (
                    f"its {noun} are {actual}, those of {first.sources[0].name} are {expected}. Make them the same."
                )
                raise SourceError([ValidationError(message, Location(other.sources[0]), code="mismatched-data")])
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(listing, name) for listing in listings]) for name in _COLUMNS
    }
    return replace(
        first,
        **joined,
        sources=tuple(listing.sources[0] for listing in listings),
        origins=np.repeat(np.arange(len(listings), dtype=np.int64), [len(listing) for listing in listings]),
        given=None
        if first.given is None
        else np.concatenate([listing.given for listing in listings if listing.given is not None]),
        about=_about(listings),
        warnings=tuple(warning for listing in listings for warning in listing.warnings),
        marks=tuple(sorted({mark for listing in listings for mark in listing.marks})),
        row_ids=tuple(name for name in first.row_ids if all(name in listing.row_ids for listing in listings)),
        layout=" and ".join(dict.fromkeys(listing.layout for listing in listings)),
    )


def _about(listings: Sequence[Listing]) -> dict[str, NDArray[Any]]:
    """What any of them tells about its samples; "" where another does not."""
    names = dict.fromkeys(name for listing in listings for name in listing.about)
    return {
        name: np.concatenate([listing.about.get(name, np.full(len(listing), "")) for listing in listings])
        for name in names
    }


def _described(form: str, values: NDArray[Any]) -> str:
    return f"{values.dtype} {values.shape[1:]}" if form in ("arrays", "maps") else form


def summary(problems: Sequence[ValidationError]) -> list[ValidationError]:
    """The first of many problems of one file; the last of them says how many more there are."""
    if len(problems) <= TOLD:
        return list(problems)
    *first, last = problems[:TOLD]
    return [*first, replace(last, message=f"{last.message} ({len(problems) - TOLD} more lines have problems.)")]
