"""Tables of samples with labels, and datasets of a training and a test part."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.int64]  # of samples in a part of a dataset
Transform = Callable[[NDArray[Any]], NDArray[Any]]  # a batch of x to a batch of x, e.g. a fixed permutation of pixels


@dataclass(frozen=True)
class Table:
    """N samples as aligned columns. `x` may be a read-only memory map: index it, don't copy it whole.

    Attributes:
        x: (N, ...) features, images as uint8 (N, height, width, channels), or (N,) objects (strings, conversations).
        y: Labels of the data type (ianvs.exam.data_types): numbers, such as (N,) int64 class indices or uint8 masks
            (N, height, width); or (N,) objects, such as strings, or lists of an assistant's replies.
        ids: (N,) names of the samples, the same in each run.
        domains: (N,) domain names; None if the source has none.
        topics: (N,) topics, by which scores are broken down, "" for an unknown one; None if the source has none.
        references: (N,) lists of alternative correct replies to the last turn of each conversation, or None.
        facts: (N,) names of the facts that are asked for, equal for all wordings of a question and all its answers over
            time; None if the source has none.
        feedback: (N,) feedback as text, for exams with `feedback: text`; "" where the source has none.
        subjects: (N,) topics of consecutive samples (visits), which may recur; None: equal to `topics`.
        columns: Further columns (N, ...) by name, for metrics that use them; hidden from learners.
    """

    x: NDArray[Any]
    y: NDArray[Any]
    ids: NDArray[np.str_]
    domains: NDArray[np.str_] | None = None
    topics: NDArray[np.str_] | None = None
    references: NDArray[Any] | None = None
    facts: NDArray[np.str_] | None = None
    feedback: NDArray[Any] | None = None
    subjects: NDArray[np.str_] | None = None
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    aligned: ClassVar[tuple[str, ...]] = (
        *("x", "y", "ids", "domains", "topics", "references", "facts", "feedback", "subjects", "columns"),
    )

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: NDArray[Any]) -> Self:
        """Return the samples at `rows` (positions, or a bool for each), in that order."""
        return replace(self, **{name: _take_rows(getattr(self, name), rows) for name in self.aligned})


Samples = Table  # its name in sources of other packages


def _take_rows(values: Any, rows: NDArray[Any]) -> Any:
    if isinstance(values, Mapping):
        return {name: _take_rows(inner, rows) for name, inner in values.items()}
    return None if values is None else values[rows]


def concatenated(values: Sequence[Any], counts: Sequence[int]) -> Any:
    """Concatenate a column of several tables, with "" for the samples of tables that lack it."""
    if isinstance(values[0], Mapping):
        names = dict.fromkeys(name for inner in values for name in inner)
        return {name: concatenated([inner.get(name) for inner in values], counts) for name in names}
    if all(inner is None for inner in values):
        return None
    pairs = zip(values, counts, strict=True)
    return np.concatenate([np.full(count, "") if inner is None else inner for inner, count in pairs])


@dataclass(frozen=True)
class Dataset:
    """A training part and a test part.

    Attributes:
        name: Name of the dataset.
        kind: Name of its data type: "classification", "segmentation", "text", "conversation", ...
        train: The training part.
        test: The test part.
        classes: Class names by index, of all domains together.
        fingerprint: Digest of the content of both parts.
        ignore_index: 255 for masks, "no class"; else None.
        domain_classes: For each domain the indices of its own class list, in that list's order; empty if all domains
            have the same classes.
        notes: Messages about samples that were left out.
        folders: Folders of the files that the samples come from.
        layout: Original layout of arrays of images, "NHWC" or "NCHW"; in `x` the channels are last.
        test_repeats_train: Whether the test part may repeat the training part, as in exams that ask for facts.
    """

    name: str
    kind: str
    train: Table
    test: Table
    classes: tuple[str, ...]
    fingerprint: str
    ignore_index: int | None = None
    domain_classes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    layout: str = ""
    test_repeats_train: bool = False
