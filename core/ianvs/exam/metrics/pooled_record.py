"""Combines the samples of all test sets into one record."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ianvs.exam.metrics.metric import EvaluationRecord, PartialRecord, has_rows
from ianvs.exam.metrics.packed_replies import Replies
from ianvs.exam.metrics.ragged import Ragged, join_ragged


def pool_records(row: Sequence[EvaluationRecord | None]) -> EvaluationRecord | None:
    """Return the samples of all evaluated test sets as one record, each once; None if none was evaluated.

    Columns that only some test sets have are dropped.
    """
    records = _without_repeats([record for record in row if record is not None])
    if len(records) < 2:
        return records[0] if records else None

    def joined(columns: Sequence[Any]) -> Any:
        if all(isinstance(column, Ragged) for column in columns):
            return join_ragged(columns)
        arrays = [np.asarray(column) for column in columns if isinstance(column, np.ndarray | Replies)]
        return np.concatenate(arrays) if len(arrays) == len(columns) else None

    counts = joined([None if record.counts is None else record.counts[None] for record in records])
    names = set.intersection(*(set(record.extras) for record in records))
    whole = EvaluationRecord(
        records[0].classes,
        y_true=joined([record.y_true for record in records]),
        y_pred=joined([record.y_pred for record in records]),
        counts=None if counts is None else counts.sum(0),
        extras={name: np.concatenate([record.extras[name] for record in records]) for name in names},
        unseen=joined([record.unseen for record in records]),
        columns=_joined_columns(records, joined),
        seen=records[0].seen,
        seen_before=records[0].seen_before,
        seen_first=records[0].seen_first,
    )
    where = joined([record.positions for record in records])
    return whole if where is None else replace(PartialRecord.select(whole, np.argsort(where)), positions=None)


def _joined_columns(records: Sequence[EvaluationRecord], joined: Callable[[Sequence[Any]], Any]) -> dict[str, Any]:
    """Return the columns that all records have.

    One without a row per sample belongs to the dataset and is equal in all.
    """
    first, *others = (record.columns for record in records)
    return {
        name: joined([column, *(other[name] for other in others)]) if has_rows(column) else column
        for name, column in first.items()
        if all(name in other for other in others)
    }


def _without_repeats(records: list[EvaluationRecord]) -> list[EvaluationRecord]:
    """Return the records without samples that an earlier record has."""
    positions = np.empty(0, np.int64)
    for j, record in enumerate(records):
        if record.positions is not None:
            records[j] = PartialRecord.select(record, ~np.isin(record.positions, positions))
            positions = np.union1d(positions, record.positions)
    return records
