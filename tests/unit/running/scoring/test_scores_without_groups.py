"""Scores without groups of samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics import EvaluationRecord, find
from ianvs.running.scoring import _part_scores


@pytest.mark.parametrize("sizes", [(100, 57, 33), (5, 3), (360, None, 372)])
@pytest.mark.parametrize("groups", [100, 20])
def test_a_mean_over_samples_is_the_same_from_sums_as_computed_once_for_each_group(
    sizes: tuple[int | None, ...], groups: int
) -> None:
    draws = np.random.default_rng(0)
    row = [
        None
        if size is None
        else EvaluationRecord(("a", "b", "c"), y_true=draws.integers(0, 3, size), y_pred=draws.integers(0, 3, size))
        for size in sizes
    ]
    accuracy = find("accuracy")
    assert accuracy is not None and accuracy.mean_of is not None
    from_sums = _part_scores((MetricSpec("accuracy"), "key", accuracy), row, groups)
    one_by_one = _part_scores((MetricSpec("accuracy"), "key", replace(accuracy, mean_of=None)), row, groups)
    np.testing.assert_array_equal(from_sums, one_by_one)
