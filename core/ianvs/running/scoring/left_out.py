"""What the score of a test set would be without a part of its samples: how much of it is chance of the samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.metrics.label_pictures import LabelPictures
from ianvs.exam.metrics.metric import EvaluationRecord

__all__ = ["GROUPS", "jackknife_groups"]

GROUPS = 20
_SEED = 20_240_903  # the same groups for all methods, rounds and seeds: differences are paired
_BY_SAMPLE = ("y_true", "y_pred", "probe", "topics", "unseen")


def jackknife_groups(row: Sequence[EvaluationRecord | None]) -> list[list[EvaluationRecord | None]]:
    """[g][j] test set j without the g-th of its groups of samples, which are drawn at random and equally large.

    There are GROUPS of them, or as many as the smallest test set has samples. Empty where samples are not kept (of
    label pictures only counts are), or where a test set has a single one.
    """
    sizes = [_size(record) for record in row if record is not None]
    groups = min([GROUPS, *sizes])
    if not sizes or groups < 2:
        return []
    drawn = [None if record is None else _drawn(_size(record), groups) for record in row]
    return [
        [
            None if record is None or of is None else _part(record, of != group)
            for record, of in zip(row, drawn, strict=True)
        ]
        for group in range(groups)
    ]


def _size(record: EvaluationRecord) -> int:
    """How many samples can be told apart; 0: none."""
    if record.y_true is None or isinstance(record.y_true, LabelPictures):
        return 0
    return len(record.y_true)


def _drawn(samples: int, groups: int) -> NDArray[np.int64]:
    return np.asarray(np.random.default_rng(_SEED).permutation(samples) % groups)


def _part(record: EvaluationRecord, kept: NDArray[np.bool_]) -> EvaluationRecord:
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    parts = {name: values[name][kept] for name in _BY_SAMPLE if values[name] is not None}
    extras = {name: value[kept] for name, value in record.extras.items()}
    return replace(record, **parts, extras=extras, counts=None)
