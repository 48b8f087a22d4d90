"""What a case is worth after its first rounds, to a search that may see no more than these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ianvs.base.types import POOLED, ScoreMatrix
from ianvs.config.spec import SelectSpec
from ianvs.exam.metrics.metric_columns import MetricColumn
from ianvs.results.stored.case_results import by_group, numbers_of
from ianvs.results.stored.selection import first_rounds, parts_of
from ianvs.store import CaseStore, ExamRecord

__all__ = ["worth_after"]


def worth_after(
    store: CaseStore,
    case_id: str,
    column: MetricColumn,
    columns: Sequence[MetricColumn],
    exam: ExamRecord,
    after: int | None,
    select: SelectSpec | None,
) -> float | None:
    """The number of `column` over the first `after` rounds and, where each round has a test set, over theirs.

    columns: of the exam. after: None of a case that has finished, for all rounds. select: by validation: over its share
    of the groups of test samples. None where there is none, or it is not finite.
    """
    score = column.name if column.metric.level == "score" else column.of
    stored = next((one for one in columns if one.name == score), None)
    found = None if stored is None else store.score(case_id, stored.key, after)
    if stored is None or found is None or not found.values.size:
        return None
    count = len(found.values) - 1
    each = not stored.metric.pooled and found.values.shape[1] == len(exam.rounds)
    matrix = ScoreMatrix(
        found.values,
        score,
        exam.rounds[:count],
        exam.tests if found.values.shape[1] == len(exam.tests) else (POOLED,),
        higher_is_better=stored.metric.higher_is_better,
    )
    if each:
        matrix = first_rounds(matrix, count)
    if select is None or select.by != "validation":
        return numbers_of([column], {score: matrix}, {column.name: 0.0})[column.name]
    without = found.left_out
    if each and without is not None:
        without = without[:, :count]
    groups = by_group(matrix, without, some=True)
    return None if groups is None else float(np.mean(parts_of(groups, select.share)[0]))
