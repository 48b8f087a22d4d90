"""Listings of samples before anything is decoded: aligned columns, and where each sample was written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.error_codes import ErrorCode
from ianvs.base.errors import DataError, Location, ValidationError
from ianvs.exam.data.dataset import Table, concatenated

TOLD = 5  # reported problems of one file
A_FUNCTION_READS = (
    "Anything else is read by a function of ten lines that returns the samples: `name: FUNCTION` and `url: ./mine.py` "
    "in the dataset (docs/extending.md#a-dataset)."
)


class SourceError(DataError):
    """A source that can't be read, with all problems found in it."""

    def __init__(self, problems: Iterable[ValidationError]) -> None:
        self.problems: tuple[ValidationError, ...] = tuple(problems)
        super().__init__(
            "\n".join(map(str, self.problems)), code=self.problems[0].code if self.problems else "unspecified"
        )

    @classmethod
    def single(cls, message: str, location: Location | None, code: ErrorCode) -> SourceError:
        """Return an error with a single problem."""
        return cls([ValidationError(message, location, code=code)])

    def __reduce__(self) -> tuple[type[SourceError], tuple[tuple[ValidationError, ...]]]:
        return type(self), (self.problems,)


def data_warning(message: str, location: Location | None) -> ValidationError:
    """Return a warning that something is read in an unexpected way."""
    return ValidationError(message, location, warning=True, code="doubtful-data")


@dataclass(frozen=True, kw_only=True)
class Listing(Table):
    """Samples as they were written: a table that knows the place of each row.

    Attributes:
        form: The type of `x`: (N,) absolute file names ("files"), (N, ...) arrays ("arrays"), (N,) strings ("text") or
            Conversation ("conversation").
        label_form: The type of `y`: (N,) class tokens ("class"), (N,) absolute names of masks ("files"), (N, height,
            width) uint8 ("maps"), (N,) strings ("text") or lists of them ("replies"); else the name of a data type.
        ids: (N,) the samples' names as written, relative if possible.
        domains: (N,) names, "" if none is written.
        origins: (N,) positions in `sources`; None: the first source.
        lines: (N,) lines in the source; None: no lines.
    """

    form: str
    label_form: str
    domains: NDArray[Any]
    sources: tuple[Path, ...]
    origins: NDArray[np.int64] | None = None
    lines: NDArray[np.int64] | None = None
    classes: tuple[str, ...] | None = None  # the source's own names for integer labels
    given: NDArray[Any] | None = None  # (N,) name of each sample in its source, "" without one
    marks: tuple[str, ...] = ()  # marks of data that an earlier version read differently; part of the fingerprint
    features: tuple[str, ...] = ()  # names of the columns of `x`, of a table of numbers
    row_ids: tuple[str, ...] = ()  # columns of `features` with the name and values of a row number
    label_columns: tuple[str, ...] = ()  # names of the columns of `y` (N, C), for a table with several
    warnings: tuple[ValidationError, ...] = ()  # warnings of the reader of the files, each with its place
    layout: str = ""  # original layout of arrays with four axes, NHWC or NCHW; in `x` the channels are last

    aligned: ClassVar[tuple[str, ...]] = (*Table.aligned, "given", "origins", "lines")

    def noted(self, warnings: Iterable[ValidationError] = (), marks: Iterable[str] = ()) -> Listing:
        """Return the listing with further warnings and marks."""
        return replace(self, warnings=(*self.warnings, *warnings), marks=(*self.marks, *marks))

    def place(self, index: int) -> Location:
        """Return where sample `index` was written."""
        source = self.sources[0 if self.origins is None else self.origins[index]]
        return Location.of_line(source, 0 if self.lines is None else self.lines[index])


def column(values: Sequence[Any]) -> NDArray[Any]:
    """Return an (N,) object array; numpy alone would make a matrix of equally long lists."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def all_different(names: Sequence[str] | NDArray[np.str_]) -> bool:
    """Return whether it is certain that no two names are equal; a set of them would need many times the memory."""
    hashes = np.fromiter(map(hash, names), np.int64, len(names))
    hashes.sort()
    return bool((hashes[1:] != hashes[:-1]).all())


def numbered_names(stem: str, count: int) -> NDArray[np.str_]:
    """Return (count,) names "train/000000", "train/000001" and so on, for the `stem` "train"."""
    names = np.char.add(f"{stem}/", np.char.zfill(np.arange(count).astype(str), 6))
    return names.astype(f"U{len(names[-1])}") if count else names


def join(listings: Sequence[Listing]) -> Listing:
    """Concatenate listings. Raises SourceError if they list different kinds of samples."""
    first = listings[0]
    for other in listings[1:]:
        for noun, expected, actual in (
            ("samples", _described(first.form, first.x), _described(other.form, other.x)),
            ("labels", _described(first.label_form, first.y), _described(other.label_form, other.y)),
            ("class names", str(first.classes), str(other.classes)),
        ):
            if expected != actual:
                message = (
                    f"its {noun} are {actual}, those of {first.sources[0].name} are {expected}. Make them the same."
                )
                raise SourceError([ValidationError(message, Location(other.sources[0]), code="mismatched-data")])
    counts = [len(listing) for listing in listings]
    columns = (name for name in first.aligned if name not in ("origins", "lines"))
    joined = {name: concatenated([getattr(each, name) for each in listings], counts) for name in columns}
    joined["origins"] = np.repeat(np.arange(len(listings), dtype=np.int64), counts)
    lines = (np.zeros(len(each), np.int64) if each.lines is None else each.lines for each in listings)
    joined["lines"] = np.concatenate([*lines])
    return replace(
        first,
        **joined,
        sources=tuple(listing.sources[0] for listing in listings),
        warnings=tuple(warning for listing in listings for warning in listing.warnings),
        marks=tuple(sorted({mark for listing in listings for mark in listing.marks})),
        row_ids=tuple(name for name in first.row_ids if all(name in listing.row_ids for listing in listings)),
        layout=" and ".join(dict.fromkeys(listing.layout for listing in listings)),
    )


def _described(form: str, values: NDArray[Any]) -> str:
    return f"{values.dtype} {values.shape[1:]}" if form in ("arrays", "maps") else form


def summary(problems: Sequence[ValidationError]) -> list[ValidationError]:
    """Return the first of many problems of one file, and the number of the others."""
    if len(problems) <= TOLD:
        return list(problems)
    *first, last = problems[:TOLD]
    return [*first, replace(last, message=f"{last.message} ({len(problems) - TOLD} more lines have problems.)")]
