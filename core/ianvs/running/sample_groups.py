"""Random groups of test samples: a score without each of them gives its variance over samples (jackknife)."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.metrics.label_pictures import LabelPictures
from ianvs.exam.metrics.metric import EvaluationRecord, PartialRecord

GROUPS = 100  # number of groups of test samples, at most one for each sample
FEW_GROUPS = 20  # number of groups if every round is scored without each of them, for metrics over rounds
MOST_LEFT_OUT = 10_000  # limit of stored numbers of a score for that
_SEED = 20_240_903  # the same groups for all methods, rounds and seeds, so that differences are paired


def without_groups(row: Sequence[EvaluationRecord | None], groups: int) -> Iterator[list[EvaluationRecord | None]]:
    """Yield, for each g, the test sets without the g-th of their random groups of equal size.

    There are `groups` of them, or as many as the smallest test set has samples. None if samples are not stored (of
    segmentation masks only counts are), or a test set has a single one.
    """
    groups, drawn = group_samples(row, groups)
    for group in range(groups):
        yield [
            None if record is None or groups_of is None else PartialRecord.select(record, groups_of != group)
            for record, groups_of in zip(row, drawn, strict=True)
        ]


def group_samples(
    row: Sequence[EvaluationRecord | None], groups: int
) -> tuple[int, Sequence[NDArray[np.int64] | None]]:
    """Return (number of groups, the group (N,) of each sample by test set); 0 if nothing can be grouped."""
    sizes = [stored_samples(record) for record in row if record is not None]
    groups = min([groups, *sizes])
    if not sizes or groups < 2:
        return 0, [None] * len(row)
    return groups, [None if record is None else _drawn(stored_samples(record), groups) for record in row]


def stored_samples(record: EvaluationRecord) -> int:
    """Return the number of separately stored samples; 0: none."""
    if record.y_true is None or isinstance(record.y_true, LabelPictures):
        return 0
    return len(record.y_true)


@lru_cache(maxsize=16)
def _drawn(samples: int, groups: int) -> NDArray[np.int64]:
    return np.asarray(np.random.default_rng(_SEED).permutation(samples) % groups)
