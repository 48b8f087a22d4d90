"""What a data source yields: samples with labels, whatever a sample is."""

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

    x: (N, ...) features, images as uint8 (N, height, width, channels), or (N,) objects (texts, conversations).
    y: as the data type says (ianvs.exam.data_types): numbers, such as (N,) int64 class indices or uint8 masks
    (N, height, width) of them; or (N,) objects, such as texts, or lists of an assistant's replies.
    ids: (N,) names of the samples that stay the same from run to run.
    domains: (N,) domain names, or None where the source knows none.
    topics: (N,) what each sample is about, "" where that isn't known; None where the source knows none. Scores are
    broken down by it.
    references: (N,) lists of further right replies to the last turn of each conversation; None where there are none.
    facts: (N,) names of what each sample asks for, the same in all its wordings and whatever the answer is by then;
    None where the source knows none. feedback: (N,) what a learner is told in words where the exam gives feedback in
    texts, "" where the source has none. subjects: (N,) what a stretch of the samples in their order is about, which may
    come back; None: that is the topics.
    columns: by name (N, ...) what else is known of each sample, for metrics that name it; learners don't see it.
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
        """The samples at `rows` (positions, or a bool for each), in that order."""
        return replace(self, **{name: _taken(getattr(self, name), rows) for name in self.aligned})


Samples = Table  # its name in sources that other packages bring


def _taken(values: Any, rows: NDArray[Any]) -> Any:
    if isinstance(values, Mapping):
        return {name: _taken(inner, rows) for name, inner in values.items()}
    return None if values is None else values[rows]


def concatenated(values: Sequence[Any], counts: Sequence[int]) -> Any:
    """A column of several tables, one after the other; "" for the samples of those that lack it."""
    if isinstance(values[0], Mapping):
        names = dict.fromkeys(name for inner in values for name in inner)
        return {name: concatenated([inner.get(name) for inner in values], counts) for name in names}
    if all(inner is None for inner in values):
        return None
    pairs = zip(values, counts, strict=True)
    return np.concatenate([np.full(count, "") if inner is None else inner for inner, count in pairs])


@dataclass(frozen=True)
class Dataset:
    """A training part and a test part. `fingerprint` changes when, and only when, their content does.

    classes: names by class index; of all domains together. ignore_index: 255 for masks, "no class"; else None.
    domain_classes: for each domain the class indices of its own class list, in that list's order; empty where all
    domains share `classes`. notes: what was left out of the samples, in full sentences. folders: where the files lie
    that its samples come from. layout: of arrays of images, as they came: "NHWC" or "NCHW"; in `x` the channels are
    last. test_repeats_train: whether the test part may repeat the training part, since what is asked for are facts.
    """

    name: str
    kind: str  # the name of its data type: "classification", "segmentation", "text", "conversation", ...
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
