"""Decides which numeric columns of a table are features. A row number is none: in a file sorted by class it reveals
labels.

A column without a name (as pandas writes an index) is left out, and so is one called `id`, `index` or the like whose
values number the rows. Both parts of a dataset have the same columns.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Location, ValidationError, closest, one_line
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.cells import number_of
from ianvs.exam.data.csv_headers import column_place, yaml_list
from ianvs.exam.data.listing import Listing, SourceError, data_warning

_NAMELESS = re.compile(r"(Unnamed: \d+(_level_\d+)?(\.\d+)*|__index_level_\d+__)?")
_NUMBERS_ROWS = {
    *("index", "idx", "row", "rowindex", "rowidx", "rownumber", "rownum", "rowno", "rownr", "rowname", "rownames"),
    *("sampleindex", "sampleidx", "samplenumber", "sampleno", "level0", "no", "nr", "sno", "slno", "srno", "serialno"),
    *("#", "№"),
    *("serialnumber", "recordnumber", "recno", "obs", "observation", "sample", "record", "entry", "uuid", "guid"),
}
"""Names of columns in lower case, without blanks and punctuation between words."""

_ID = re.compile(r"(?i:(.*[\W_])?(id|ids|uid))|.*[a-z](Id|ID|Uid|UID)")
_MARKS = re.compile(r"[\s_.\-]+")
_LISTED = 12  # columns listed in a message
_WORTH_TELLING = 10  # number of rows below which a column may count them by chance


def is_nameless(name: str) -> bool:
    """Return whether the column has no name: the index of a data frame as pandas writes it, or cells without a
    header.
    """
    return _NAMELESS.fullmatch(name) is not None


def may_number_rows(name: str) -> bool:
    """Return whether the column's name is usual for row numbers and ids."""
    folded = _MARKS.sub("", name).casefold()
    return folded in _NUMBERS_ROWS or _ID.fullmatch(name) is not None


def identifies_rows(values: Sequence[Any] | NDArray[Any]) -> bool:
    """Return whether (N,) cells are distinct and no measurement: integers or strings.

    They are compared as written, or in float64: float32 cannot distinguish 16777217 from 16777216.
    """
    if isinstance(values, np.ndarray):
        whole = values.dtype.kind in "iu" or (values.dtype.kind == "f" and bool((values % 1 == 0).all()))
        return whole and len(np.unique(values)) == len(values)
    try:
        if len(set(values)) != len(values):
            return False
    except TypeError:  # lists
        return False
    return all(_is_whole_or_text(value) for value in values)


def _is_whole_or_text(value: object) -> bool:
    try:
        return number_of(value).is_integer()
    except ValueError:
        return bool(str(value).strip())
    except TypeError:
        return False


def feature_names(columns: Sequence[str], reserved: Sequence[str | None]) -> tuple[list[str], list[str]]:
    """Return (columns that may be features, columns without a name), except those with the label or the domain."""
    others = [name for name in columns if name not in reserved]
    named = [name for name in others if not is_nameless(name)]
    return (named, [name for name in others if is_nameless(name)]) if named else (others, [])


def with_column_order(listing: Listing, first: Listing) -> Listing:
    """Return `listing` with its columns in the order of those of `first`. Raises SourceError if the columns differ."""
    if listing.features == first.features:
        return listing
    if {*listing.features} == {*first.features}:
        order = [listing.features.index(name) for name in first.features]
        return replace(listing, x=listing.x[:, order], features=first.features).noted(marks=["by name"])
    lacking = [name for name in first.features if name not in listing.features]
    extra = [name for name in listing.features if name not in first.features]
    differences = [f"lacks {one_line(lacking)}"] if lacking else []
    differences += [f"has {one_line(extra)} besides"] if extra else []
    hint = closest(lacking[0], extra) if lacking else ""
    message = (
        f"its columns are not those of {first.sources[0].name}: it {' and '.join(differences)}.{hint} Make them the "
        "same, or list by `input: [...]` in the dataset the columns that are features."
    )
    raise SourceError.single(message, _place(listing, listing.features[0]), "mismatched-data")


def without_row_numbers(parts: tuple[Listing, Listing], spec: DatasetSpec) -> tuple[Listing, Listing]:
    """Return the parts of a dataset with features, without columns that number the rows; both have the same columns.

    The warnings list columns that are left out or may be row numbers. Columns in `spec.input` all stay. Raises
    SourceError if the parts have different columns.
    """
    train, test = parts
    if spec.input is None:
        both = {*train.features} & {*test.features}
        # A column that only one part has, and that numbers its rows, is no feature either.
        numbering = {*train.row_ids} & {*test.row_ids} | ({*train.row_ids, *test.row_ids} - both)
        if both - numbering:
            train, test = _without(train, numbering), _without(test, numbering)
        if len(train) >= _WORTH_TELLING and len(both - numbering) > 1:
            counting = [
                name for name in train.features if name in both and _counts_up(train, name) and _counts_up(test, name)
            ]
            train = train.noted([_doubt(name, train) for name in counting])
    return train, with_column_order(test, train)


def _without(listing: Listing, numbering: Collection[str]) -> Listing:
    remaining = [position for position, name in enumerate(listing.features) if name not in numbering]
    if len(remaining) == len(listing.features):
        return listing
    adjacent = remaining == list(range(remaining[0], remaining[-1] + 1))
    # A slice of a memory map is a memory map.
    columns = slice(remaining[0], remaining[-1] + 1) if adjacent else remaining
    names = tuple(listing.features[position] for position in remaining)
    gone = [name for name in listing.features if name in numbering]
    warnings = [left_out_warning(name, names, _place(listing, name)) for name in gone]
    return replace(listing, x=listing.x[:, columns], features=names).noted(warnings, [f"without {n}" for n in gone])


def left_out_warning(name: str, features: Sequence[str], place: Location) -> ValidationError:
    """Return the warning on a column that is no feature. features: names of the remaining ones."""
    why = "has no name" if is_nameless(name) else "has another value in every row"
    remedy = "give it another name in the file"
    if len(features) < _LISTED:
        remedy = f"list all features by `input: {yaml_list([name, *features])}` in the dataset"
    message = f"the column '{name}' {why}: it is left out as the row number. If it is a feature, {remedy}."
    return data_warning(message, place)


def _counts_up(listing: Listing, name: str) -> bool:
    """Return whether each row of a column is one more than the row before; a test part may continue after training."""
    values = listing.x[:, listing.features.index(name)]
    return float(values[0]).is_integer() and bool((np.diff(values) == 1).all())


def _doubt(name: str, listing: Listing) -> ValidationError:
    others = [other for other in listing.features if other != name]
    remedy = "take it out of the file"
    if len(others) <= _LISTED:
        remedy = f"list the features without it: `input: {yaml_list(others)}` in the dataset"
    message = f"the column '{name}' counts the rows, and is read as a feature. If it is the row number, {remedy}."
    return data_warning(message, _place(listing, name))


def _place(listing: Listing, name: str) -> Location:
    return column_place(listing.sources[0], name, listing.place(0).line)
