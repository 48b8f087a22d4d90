"""Aggregates over exams: by hand and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from ianvs.results.stats import exams_needed, over_exams
from ianvs.results.stats.over_exams import holm


def test_ranks_and_wins_worked_out_by_hand() -> None:
    """In the second exam b and c are level: they share places 2 and 3, and half a win."""
    found = over_exams(np.array([[0.9, 0.8, 0.1], [0.9, 0.5, 0.5]]))
    assert [row.mean_rank for row in found.rows] == [1.0, 2.25, 2.75]
    assert [row.win_rate for row in found.rows] == [1.0, 0.375, 0.125]
    assert [row.mean for row in found.rows] == pytest.approx([0.9, 0.65, 0.3])
    assert found.friedman is None and found.pairs is None
    assert all(row.mean_rank_interval is None for row in found.rows), "two exams tell nothing of others"


def test_a_method_that_lacks_a_cell_gets_no_aggregate_and_disturbs_no_other() -> None:
    whole = np.random.default_rng(0).random((5, 3))
    gap = np.column_stack([whole, [0.1, np.nan, 0.3, 0.2, 0.5]])
    assert over_exams(gap).rows[3] is None
    assert over_exams(gap).rows[:3] == over_exams(whole).rows


def test_how_many_exams_the_tests_need() -> None:
    assert [exams_needed(m) for m in (2, 3, 5, 10)] == [6, 7, 9, 11]


@pytest.mark.parametrize("exams", [6, 7, 12])
def test_tests_are_scipys_and_silent_below_the_bound(exams: int) -> None:
    scores = np.random.default_rng(exams).random((exams, 3)) + np.array([0.0, 0.5, 0.1])
    found = over_exams(scores)
    if exams < exams_needed(3):
        assert found.friedman is None and found.pairs is None
        return
    assert found.friedman == pytest.approx(scipy.stats.friedmanchisquare(*scores.T).pvalue)
    pairs = [(0, 1), (0, 2), (1, 2)]
    wanted = holm(np.array([scipy.stats.wilcoxon(scores[:, i], scores[:, j]).pvalue for i, j in pairs]))
    assert [found.pairs[i, j] for i, j in pairs] == pytest.approx(wanted)


def test_the_smallest_p_of_so_many_exams_passes_holms_first_step() -> None:
    for methods in (2, 3, 5):
        exams = exams_needed(methods)
        scores = np.arange(methods)[None, :] + 0.01 * np.random.default_rng(1).random((exams, methods))
        assert over_exams(scores).pairs[0, methods - 1] <= 0.05


def test_the_interquartile_mean_is_scipys_trimmed_mean_where_quarters_are_whole() -> None:
    scores = np.random.default_rng(2).random((8, 3))
    unit = (scores - scores.min(1, keepdims=True)) / np.ptp(scores, axis=1)[:, None]
    for i, row in enumerate(over_exams(scores).rows):
        assert row.iqm == pytest.approx(scipy.stats.trim_mean(unit[:, i], 0.25))
        assert row.iqm_interval[0] <= row.iqm <= row.iqm_interval[1]


def test_a_quarter_that_falls_between_exams_counts_with_its_share() -> None:
    """Of six normalised scores 0, .2, .4, .6, .8, 1 the middle half is half of .2, all of .4 and .6, half of .8."""
    first = np.array([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    found = over_exams(np.column_stack([first, np.zeros(6), np.ones(6)]))
    assert found.rows[0].iqm == pytest.approx((0.1 + 0.4 + 0.6 + 0.4) / 3)
