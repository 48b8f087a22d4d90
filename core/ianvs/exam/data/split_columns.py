"""The column of a table that assigns each row to the training or the test part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ianvs.base.errors import ValidationError
from ianvs.base.split_words import parts_by_word
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.cells import text_of
from ianvs.exam.data.csv_headers import column_place, yaml_list
from ianvs.exam.data.grids import Grid, listed
from ianvs.exam.data.listing import SourceError, data_warning

SPLIT_COLUMNS = (
    *("split", "subset", "partition", "set", "fold", "phase", "usage", "data_split", "dataset_split"),
    *("split_name", "split_set", "train", "test", "is_train", "is_test", "istrain", "istest"),
    *("is_training", "is_testing", "in_train", "in_test", "train_test", "traintest", "train_test_split"),
    *("is_val", "is_valid", "is_validation"),
)
"""Names of columns that are the split if their cells say so."""
_CERTAIN = SPLIT_COLUMNS[:3]
_FLAGS = {
    **dict.fromkeys(("train", "is_train", "istrain", "is_training", "in_train"), ("test", "train")),
    **dict.fromkeys(("is_test", "istest", "is_testing", "in_test"), ("train", "test")),
    **dict.fromkeys(("is_val", "is_valid", "is_validation"), ("train", "test")),
}
"""The part of false and true cells, by the column's name. `test` alone may be a measurement."""
_TRUTH = {"0": 0, "false": 0, "no": 0, "1": 1, "true": 1, "yes": 1}
_NEVER_FEATURES = {*SPLIT_COLUMNS} - {"usage"}
"""Names that are told if the column is a feature."""


@dataclass(frozen=True)
class Split:
    """A column that assigns each row to a part.

    Attributes:
        column: Its name.
        parts: The part of each cell, "train", "test" or `LEFT_OUT`, by the cell's text.
        certain: Whether the column's name and cells leave no doubt.
    """

    column: str
    parts: Mapping[str, str]
    certain: bool = True


def split_column(grid: Grid, spec: DatasetSpec) -> Split | None:
    """Return the column that assigns each row to training or testing; None without one."""
    used = {spec.input, spec.label, spec.domain, *(spec.input or ()), *(spec.label or ())}
    for word in SPLIT_COLUMNS:
        name = grid.named([word])
        if name is None or name in used:
            continue
        parts = _parts_of(grid, name)
        if parts is None:
            continue
        if spec.test_share is not None and len(set(parts.values())) > 1:
            message = (
                f"the column '{name}' says which rows are tested, and `test_share` would draw others. Give the file as "
                "`test_data`, too, in place of `test_share`; or give the column another name."
            )
            place = spec.places.get("test_share", column_place(grid.path, name, 0))
            raise SourceError.single(message, place, "conflicting-keys")
        return Split(name, parts, word in _CERTAIN)
    return None


def _parts_of(grid: Grid, name: str) -> Mapping[str, str] | None:
    """Return the part of each cell of a column by its text; None if its cells name no parts."""
    try:
        words = {text_of(cell) for cell in listed(grid.cells(name))}
    except ValueError:  # lists, for example
        return None
    if (parts := parts_by_word(words)) is not None:
        return parts
    flags = _FLAGS.get(name.casefold())
    if flags is None or not all(word.casefold() in _TRUTH for word in words):
        return None
    return {word: flags[_TRUTH[word.casefold()]] for word in words}


def split_warnings(grid: Grid, spec: DatasetSpec, features: Sequence[str], line: int) -> list[ValidationError]:
    """Return warnings about features whose names are those of a split; [] if `input` lists the features."""
    if spec.input:
        return []
    doubtful = [name for name in features if name.casefold() in _NEVER_FEATURES]
    others = [name for name in features if name not in doubtful]
    return [data_warning(_doubt(name, others), column_place(grid.path, name, line)) for name in doubtful]


def _doubt(name: str, others: Sequence[str]) -> str:
    remedy = f"`input: {yaml_list(others)}` leaves it out" if others else "take it out of the file"
    return (
        f"the column '{name}' is read as a feature, and is called as one that says which rows are tested. If it does, "
        f"write train or test in its cells; {remedy}. If it is a feature, list it with the others by `input`."
    )


def is_used_for_both(path: Path, spec: DatasetSpec) -> bool:
    """Return whether a file or folder is given for the training part and for the test part."""
    return all(any(source.path == path for source in part) for part in (spec.train, spec.test))
