"""Ranks, tiers, seeds needed, collapses and the Pareto front, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from ianvs.results.stats import paired_difference, standings
from ianvs.results.stats.critical_values import critical_value
from ianvs.results.stats.over_exams import holm
from ianvs.results.stats.standing import (
    expected_largest,
    outlier_seeds,
    pareto_front,
    samples_to_separate,
    seeds_to_separate,
    unseen_failure,
    unsteady_methods,
)
from tests.documents import DOCUMENTS, python_of


def of(*columns: list[float]):
    return standings(np.array(columns, dtype=float).T)


def drawn(n: int, m: int, gap: float, random: np.random.Generator) -> np.ndarray:
    """(n, m) scores of methods whose spread differs, and which seeds move together."""
    return (
        -gap * np.arange(m)
        + 0.5 * random.normal(size=(n, 1))
        + random.normal(size=(n, m)) * random.uniform(0.5, 1.5, m)
    )


# --- pairs ---------------------------------------------------------------------------------------------------------


def test_a_paired_difference_worked_out_by_hand() -> None:
    """Differences .03, .01, .02: mean .02, std .01, error .01 / sqrt(3); t(.975, 2) = 4.303."""
    found = paired_difference([0.93, 0.91, 0.95], [0.90, 0.90, 0.93])
    assert found.mean == pytest.approx(0.02)
    assert found.low == pytest.approx(0.02 - 4.3027 * 0.0057735, abs=1e-6)
    assert found.high == pytest.approx(0.02 + 4.3027 * 0.0057735, abs=1e-6)
    assert found.p == pytest.approx(scipy.stats.ttest_rel([0.93, 0.91, 0.95], [0.90, 0.90, 0.93]).pvalue)
    assert not found.separated


def test_holms_steps_worked_out_by_hand() -> None:
    assert holm(np.array([0.01, 0.04, 0.03])).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert holm(np.array([0.6, 0.9])).tolist() == [1.0, 1.0]
    assert holm(np.array([])).tolist() == []


def test_differences_of_two_alone_that_are_all_equal_tell_no_spread() -> None:
    pair = paired_difference([0.1, 0.2, 0.3], [0.2, 0.3, 0.4])  # the same .1 each time, but for rounding
    assert (pair.low, pair.high, pair.p) == (None, None, 1.0)
    assert not paired_difference([0.5], [0.1]).separated


# --- ranks and tiers -----------------------------------------------------------------------------------------------


def test_ranks_and_tiers_worked_out_by_hand() -> None:
    """c is far below. a and b differ by .0067; their variance .00023 is larger than half-way to the mean, .00012, of
    all pairs: the margin is 4.68 sqrt(.00023 / 3) = .041."""
    found = of([0.90, 0.91, 0.92], [0.89, 0.92, 0.90], [0.10, 0.12, 0.11])
    assert [(row.low, row.high, row.tier) for row in found.rows] == [(1, 2, "A"), (1, 2, "A"), (3, 3, "B")]
    pair = found.pairs.between(0, 1)
    assert pair.high - pair.mean == pytest.approx(0.0413, abs=1e-4)


def test_a_tier_ends_where_a_method_is_apart_from_any_of_its_members() -> None:
    """Neighbours overlap all the way down; the first and the third don't."""
    base = np.array([0.00, 0.02, -0.02, 0.01, -0.01])
    found = of((0.90 + base).tolist(), (0.89 + base[::-1]).tolist(), (0.88 + 0.9 * base).tolist())
    assert list(zip(found.pairs.first, found.pairs.second, found.pairs.apart, strict=True)) == [
        (0, 1, False),
        (0, 2, True),
        (1, 2, False),
    ]
    assert [row.tier for row in found.rows] == ["A", "A", "B"]
    assert [(row.low, row.high) for row in found.rows] == [(1, 2), (1, 3), (2, 3)]


def test_the_27th_tier_has_two_letters() -> None:
    scores = np.array([[100.0 * i, 100.0 * i + 0.1 * (i % 3), 100.0 * i - 0.1] for i in range(28)]).T
    found = standings(scores)
    assert [found.rows[i].tier for i in (27, 2, 1, 0)] == ["A", "Z", "AA", "AB"]


def test_the_same_numbers_give_the_same_table() -> None:
    scores = drawn(25, 5, 0.3, np.random.default_rng(4))
    assert standings(scores).rows == standings(scores).rows


def test_so_many_seeds_do_separate_them() -> None:
    """The least n at which the margin and .84 standard errors are no more than the difference."""
    for difference, spread, methods in ((1.0, 1.0, 2), (0.3, 1.0, 8)):
        n = seeds_to_separate(difference, spread, 0.0, methods, 100)
        assert n is not None
        reach = [(float(critical_value("seeds", methods, k)) + 0.84) * np.sqrt(spread / k) for k in (n - 1, n)]
        assert reach[0] > difference >= reach[1]
    assert seeds_to_separate(0.0, 1.0, 0.0, 2, 100) is None


def test_no_seed_takes_the_chance_of_the_samples_away() -> None:
    assert seeds_to_separate(0.1, 0.0001, 0.01, 2, 100) is None
    assert samples_to_separate(0.1, 0.01, 2, 100) == pytest.approx(2 * 1.98**2)


def test_a_failure_that_three_seeds_have_not_shown_may_come_in_63_of_100() -> None:
    assert [round(100 * unseen_failure(n)) for n in (3, 5, 10)] == [63, 45, 26]
    assert (1 - unseen_failure(3)) ** 3 == pytest.approx(0.05)


def test_the_best_of_twenty_equal_configurations_looks_1_87_standard_errors_better() -> None:
    assert [expected_largest(n) for n in (1, 2, 10, 20)] == pytest.approx([0, 0.564, 1.539, 1.867], abs=0.03)
    drawn = np.random.default_rng(0).normal(0, 0.01, (4000, 20, 3)).mean(axis=2).max(axis=1).mean()
    assert drawn == pytest.approx(expected_largest(20) * 0.01 / np.sqrt(3), rel=0.02)  # .011, as of 20 configurations


def test_a_seed_that_collapsed_is_found_and_a_wide_spread_is_not() -> None:
    base = np.random.default_rng(0).normal(0.9, 0.01, (10, 4))
    assert outlier_seeds(base) == {}
    base[3, 1] = 0.2
    assert outlier_seeds(base) == {1: [3]}
    assert outlier_seeds(base[:, 1:2]) == {}, "nothing says how wide a spread is usual"
    wide = np.random.default_rng(1).normal(0.9, 0.01, (10, 4)) * [1, 0.001, 0.001, 0.001]
    assert outlier_seeds(wide) == {}, "a method among much steadier ones is not wild"
    assert outlier_seeds(np.array([[0.9, 0.1], [0.9, 0.2]])) == {}


@pytest.mark.parametrize(
    ("means", "spreads", "unsteady"),
    [
        ([0.462, 0.865, 0.90], [0.190, 0.008, 0.006], [0]),  # DER++ on MNIST at a learning rate of .05 and of .01
        ([0.462, 0.865], [0.190, 0.008], [0]),
        ([0.462], [0.190], [0]),
        ([0.42], [0.08], []),  # replay in one pass
        ([0.99, 0.86, 0.98], [0.002, 0.064, 0.003], []),  # a wide spread beside narrow ones, and yet a small one
        ([0.3, 0.35, 0.32], [0.1, 0.09, 0.11], []),  # all of an exam
        ([0.9, 0.8], [np.nan, np.nan], []),  # one seed each
        ([-40.0, -4.0, -5.0], [20.0, 0.1, 0.2], [0]),  # a loss
        ([0.9, 0.5], [0.0, 0.2], [1]),  # beside a method without chance
        ([], [], []),
    ],
)
def test_a_method_is_unsteady_by_the_spread_of_the_others_and_the_size_of_scores(means, spreads, unsteady) -> None:
    assert unsteady_methods(np.array(means, float), np.array(spreads, float)) == unsteady


def front(
    points: list[tuple[float, ...]], better: np.ndarray | None = None, tolerance: tuple[float, ...] = ()
) -> list[int]:
    """points: score, and what it costs. better: None: by any difference of scores."""
    found = np.array(points, dtype=float)
    scores = found[:, 0]
    return pareto_front(scores, scores[:, None] > scores if better is None else better, found[:, 1:], tolerance)


def test_the_pareto_front_worked_out_by_hand() -> None:
    assert front([(-1, 4), (-2, 2), (-4, 1), (-3, 3), (-1, 4)]) == [0, 1, 2, 4]


def test_a_row_is_removed_only_by_what_is_better_by_more_than_noise() -> None:
    nothing = np.zeros((2, 2), dtype=bool)
    assert front([(0.9, 10.0), (0.8, 10.5)], nothing, (0.1,)) == [0, 1]
    assert front([(0.9, 10.0), (0.8, 11.5)], nothing, (0.1,)) == [0], "it costs more by more than the tolerance"
    assert front([(0.9, 10.5), (0.8, 10.0)], ~np.eye(2, dtype=bool), (0.1,)) == [0], "the same costs, a worse score"


def test_identical_methods_have_the_same_mark_whatever_the_clock_says() -> None:
    assert front([(0.9, 10.0), (0.9, 10.4)], tolerance=(0.1,)) == [0, 1]


def test_only_marked_rows_remove_others() -> None:
    """The first removes the second, which would remove the third; the first needs too much memory for that."""
    nothing, tolerance = np.zeros((3, 3), dtype=bool), (0.1, 0.02)
    points = [(0.9, 10.0, 100.0), (0.8, 11.5, 99.0), (0.7, 13.0, 97.5)]
    assert front(points, nothing, tolerance) == [0, 2]
    assert front(points[1:], nothing[1:, 1:], tolerance) == [0]


def test_the_page_on_statistics_shows_what_its_code_gives() -> None:
    page = (DOCUMENTS / "statistics.md").read_text(encoding="utf-8")
    code = python_of("statistics.md")
    names: dict[str, object] = {}
    exec(code, names)
    value, said = code.strip().splitlines()[-1].split("  # ")
    assert str(eval(value, names)) == said
    margins = [f"{margin:.4f}".removeprefix("0") for margin in names["table"].pairs.margin]
    for pair, margin in zip(("a - b", "a - c", "b - c"), margins, strict=True):
        assert f"{pair}: {margin}" in page
