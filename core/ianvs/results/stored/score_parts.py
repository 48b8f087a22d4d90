"""Numbers of scores that yield several, such as one for each class."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ianvs.exam.metrics.metric_columns import part_column
from ianvs.store.stored_score import finite


def has_parts_alone(score: str, details: Mapping[str, Any]) -> bool:
    """Return whether a score has several numbers and none of its own, by the `details` of a case."""
    return score in details and not any(score in (parts or {}) for parts in details[score][-1])


def with_parts(numbers: Mapping[str, float | None], details: Mapping[str, Any]) -> dict[str, float | None]:
    """Return `numbers` with the parts of scores that have several numbers in place of the scores.

    Args:
        numbers: By column. A score with a number of its own keeps it, and its parts stay in `details`.
        details: By score the parts of each test set, for each round, as in `CaseResult`.

    Returns:
        The numbers. A part is the unweighted mean over the test sets that have it after the last round.
    """
    with_parts = dict(numbers)
    for score, rounds in details.items():
        if with_parts.get(score) is not None or not has_parts_alone(score, details):
            continue
        with_parts.pop(score, None)
        values: dict[str, list[float]] = {}
        for parts in rounds[-1]:
            for part, value in (parts or {}).items():
                values.setdefault(part, []).extend(() if value is None else (value,))
        for part, of_tests in values.items():
            with_parts[part_column(score, part)] = finite(np.mean(of_tests)) if of_tests else None
    return with_parts
