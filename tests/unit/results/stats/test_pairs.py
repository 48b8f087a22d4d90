"""Simultaneous intervals of differences: worked values, closed forms, and a naive second implementation."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from statistics import fmean, median, variance

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from ianvs.results.stats import Summary, compare_all, paired_difference, standings, unpaired_difference
from ianvs.results.stats.critical_values import MOST_COMPARED, critical_value
from ianvs.results.stats.pairs import ENOUGH_FOR_BOOTSTRAP, comparison_bars

CASES = json.loads((Path(__file__).parents[3] / "golden" / "statistics.json").read_text(encoding="utf-8"))["cases"]


def numbers(values: list) -> np.ndarray:
    return np.array([[np.nan if v is None else v for v in row] for row in values], dtype=float)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_worked_values_of_the_specification(case: dict) -> None:
    parts = [np.array(case["parts"], dtype=float)] if case["parts"] else []
    found = standings(numbers(case["scores"]), parts, fixed_test_set=case["fixed_test_set"])
    pairs, wanted = found.pairs, case["expected"]
    assert pairs.distinct == wanted["distinct"]
    assert np.column_stack([pairs.first, pairs.second]).tolist() == wanted["pairs"]
    assert pairs.seeds.tolist() == wanted["n"]
    for name, ours in (
        ("difference", pairs.difference),
        ("se_seeds", np.sqrt(np.where(pairs.seeds > 1, pairs.spread / np.maximum(pairs.seeds, 1), np.nan))),
        ("se_samples", np.sqrt(pairs.samples)),
        ("margin", pairs.margin),
    ):
        np.testing.assert_allclose(ours, numbers([wanted[name]])[0], rtol=1e-9, atol=1e-12, err_msg=name)
    assert pairs.apart.tolist() == wanted["separated"]
    ranks = [(row.low, row.high, row.tier) for row in found.rows]
    assert ranks == list(zip(wanted["rank_low"], wanted["rank_high"], wanted["tier"], strict=True))


def naive_margin(scores: list[list[float | None]], i: int, j: int) -> float | None:
    """As the specification reads: of different methods, each with a spread of its own, over seeds alone."""
    m = len(scores[0])
    d = {
        (a, b): [row[a] - row[b] for row in scores if row[a] is not None and row[b] is not None]
        for a, b in combinations(range(m), 2)
    }
    s2 = {pair: variance(values) for pair, values in d.items() if len(values) > 1}
    n = len(d[i, j])
    if n < 2:
        return None
    up = s2[i, j]
    if m >= 3:
        pool = fmean(s2.values()) if n <= 4 else median(s2.values()) * (n - 1) / scipy.stats.chi2.median(n - 1)
        up = max(up, (up + pool) / 2)
    return float(critical_value("seeds", m, n)) * (up / n) ** 0.5


@given(st.integers(2, 6), st.integers(2, 8), st.integers(0, 10_000))
def test_margins_are_those_of_a_naive_second_implementation(m: int, n: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    scores = random.normal(size=(n, m)) * random.uniform(0.1, 3, m)
    scores[1:, random.integers(m)] = np.nan if seed % 3 == 0 else 0.1  # a row with a single seed
    scores += np.where(np.isnan(scores), 0, 1e-3 * random.normal(size=scores.shape))
    pairs = compare_all(scores)
    listed = [[None if np.isnan(v) else v for v in row] for row in scores.tolist()]
    for at, (i, j) in enumerate(combinations(range(m), 2)):
        wanted = naive_margin(listed, i, j)
        assert np.isnan(pairs.margin[at]) if wanted is None else pairs.margin[at] == pytest.approx(wanted)


@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 10_000), st.booleans())
def test_an_interval_excludes_0_exactly_where_methods_are_apart(m: int, n: int, seed: int, samples: bool) -> None:
    random = np.random.default_rng(seed)
    scores = random.normal(size=(n, m)) * 0.1 + random.normal(size=m)
    parts = [scores[:, :, None] + 0.1 * random.normal(size=(n, m, 20))] if samples else []
    found = standings(scores, parts)
    for i, j in combinations(range(m), 2):
        one, other = found.pairs.between(i, j), found.pairs.between(j, i)
        assert (one.low > 0 or one.high < 0) is one.separated is other.separated
        assert (one.mean, one.low, one.high) == pytest.approx((-other.mean, -other.high, -other.low))
        assert one.mean == pytest.approx(scores[:, i].mean() - scores[:, j].mean())
        if one.separated:
            above, below = (i, j) if one.mean > 0 else (j, i)
            assert found.rows[above].high < m and found.rows[below].low > 1
            assert found.rows[above].tier != found.rows[below].tier


@given(st.integers(2, 8), st.floats(-3, 3), st.floats(0.01, 2), st.integers(0, 10_000))
def test_p_and_the_interval_of_two_methods_alone_never_contradict(n: int, mean: float, std: float, seed: int) -> None:
    draws = np.random.default_rng(seed).normal(mean, std, n)
    for found in (
        paired_difference(draws.tolist(), [0.0] * n),
        unpaired_difference(Summary(mean, std, n), Summary(0.0, 1.0, n)),
    ):
        assert found.separated is (found.low > 0 or found.high < 0)
        assert found.separated is (found.p < 0.05)


def test_critical_values_of_two_methods_are_students() -> None:
    for n in (2, 3, 4, 5, 6, 8, 10, 15, 20):
        assert critical_value("seeds", 2, n) == pytest.approx(scipy.stats.t.isf(0.025, n - 1), abs=0.006)
    for groups in (2, 3, 5, 10, 20, 100):
        assert critical_value("samples", 2, groups) == pytest.approx(scipy.stats.t.isf(0.025, groups - 1), abs=0.006)


def test_with_many_groups_they_are_near_those_of_tukeys_range() -> None:
    """Of the samples each pair goes by its own variance, which is wider than one that all share."""
    for m in (3, 8, 20, 50):
        tukey = scipy.stats.studentized_range.ppf(0.95, m, 10_000) / np.sqrt(2)
        assert tukey <= critical_value("samples", m, 100) <= 1.12 * tukey


def test_critical_values_are_linear_between_entries_and_end_at_twenty_seeds() -> None:
    between = critical_value("seeds", 7, 9)
    corners = [float(critical_value("seeds", m, n)) for m in (6, 8) for n in (8, 10)]
    assert between == pytest.approx(np.mean(corners))
    assert critical_value("seeds", 4, 50) == critical_value("seeds", 4, 20)
    assert np.isnan(critical_value("seeds", 4, 1))


def test_more_methods_never_need_less_where_they_are_compared_with_the_best_alone() -> None:
    of_many = [float(critical_value("samples", m, 100, "best")) for m in (51, 100, 300, 1000, 3000)]
    assert of_many == sorted(of_many)
    assert of_many[0] <= 1.02 * critical_value("samples", 50, 100)


def test_margins_of_seeds_and_samples_add_up_in_squares() -> None:
    random = np.random.default_rng(2)
    scores, parts = random.normal(size=(5, 2)), random.normal(size=(5, 2, 20))
    found = compare_all(scores, [parts]).between(0, 1)
    one = scipy.stats.sem(scores[:, 0] - scores[:, 1]) * 2.78
    other = scipy.stats.sem((parts[:, 0] - parts[:, 1]).mean(axis=0)) * 2.09
    assert found.high - found.mean == pytest.approx(np.hypot(one, other))
    here = compare_all(scores, [parts], fixed_test_set=True).between(0, 1)
    assert here.high - here.mean == pytest.approx(one)


def test_the_samples_of_several_exams_add_up_over_their_number_squared() -> None:
    random = np.random.default_rng(3)
    scores, first, second = random.normal(size=(3, 2)), random.normal(size=(3, 2, 20)), random.normal(size=(3, 2, 30))
    variances = [np.var((one[:, 0] - one[:, 1]).mean(axis=0), ddof=1) / one.shape[2] for one in (first, second)]
    assert compare_all(scores, [first, second]).samples == pytest.approx(sum(variances) / 4)


def test_methods_that_answer_the_same_are_a_tie_and_count_once() -> None:
    scores = np.array([[0.5, 0.5, 0.1], [0.6, 0.6, 0.3], [0.7, 0.7, 0.2]])
    pairs = compare_all(scores)
    assert pairs.distinct == 2
    assert (pairs.between(0, 1).mean, pairs.between(0, 1).low, pairs.between(0, 1).separated) == (0, None, False)
    alone = compare_all(scores[:, 1:]).between(0, 1)
    assert pairs.between(1, 2).high == pytest.approx(alone.high)
    parts = np.zeros((3, 3, 4))
    parts[:, 1, 0] = 1  # the same scores of other answers
    assert compare_all(scores, [parts]).distinct == 3


def test_two_deterministic_methods_that_differ_are_apart_on_this_test_set() -> None:
    pair = compare_all(np.array([[0.9, 0.8]] * 3)).between(0, 1)
    assert (pair.low, pair.high, pair.separated) == (pytest.approx(0.1), pytest.approx(0.1), True)
    parts = np.zeros((3, 2, 20)) + np.linspace(-1, 1, 20) * np.array([[1.0], [-1.0]])
    assert not compare_all(np.array([[0.9, 0.8]] * 3), [parts]).between(0, 1).separated


def test_a_row_with_fewer_seeds_leaves_the_margins_of_others_with_their_number_of_seeds() -> None:
    random = np.random.default_rng(4)
    scores = random.normal(size=(4, 3))
    scores[2:, 2] = np.nan
    pairs = compare_all(scores)
    assert pairs.seeds.tolist() == [4, 2, 2]
    assert pairs.margin[0] == pytest.approx(
        naive_margin([[*row[:2], None if np.isnan(row[2]) else row[2]] for row in scores.tolist()], 0, 1)
    )


@pytest.mark.slow
def test_with_many_seeds_the_bootstrap_has_to_agree_and_widens_the_interval_up_to_0() -> None:
    random = np.random.default_rng(3)
    scores = np.column_stack([random.normal(2, 1, ENOUGH_FOR_BOOTSTRAP), random.normal(0, 1, ENOUGH_FOR_BOOTSTRAP)])
    assert compare_all(scores).apart[0]
    skewed = 0
    for seed in range(300):
        difference = 1 - np.random.default_rng(seed).exponential(size=ENOUGH_FOR_BOOTSTRAP)
        scores = np.column_stack([difference, 1e-9 * np.arange(ENOUGH_FOR_BOOTSTRAP)])
        pair = compare_all(scores).between(0, 1)
        by_t = scipy.stats.ttest_1samp(difference - scores[:, 1], 0).pvalue < 0.05
        assert pair.separated is (pair.low > 0 or pair.high < 0)
        assert by_t or not pair.separated
        skewed += by_t and not pair.separated
    assert skewed, "of so many skewed samples the bootstrap takes one back"


def test_very_many_methods_are_compared_with_the_best_alone() -> None:
    m = MOST_COMPARED + 10
    scores = 0.01 * np.random.default_rng(5).normal(size=(3, m))
    scores[:, 7] += 1
    found = standings(scores)
    assert found.pairs.family == "best"
    assert len(found.pairs.margin) == m - 1
    assert found.pairs.between(0, 1) is None
    assert (found.rows[7].low, found.rows[7].high, found.rows[7].tier) == (1, 1, "A")
    assert {(row.low, row.high, row.tier) for i, row in enumerate(found.rows) if i != 7} == {(2, m, "B")}


@given(st.integers(2, 8), st.integers(3, 6), st.integers(0, 10_000))
def test_bars_overlap_exactly_where_methods_are_not_apart_or_there_are_none(m: int, n: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    scores = random.normal(size=(n, m)) * random.uniform(0.01, 0.1, m) + random.normal(size=m)
    scores[:, -1] = scores[:, 0]
    pairs = compare_all(scores)
    halves = comparison_bars(pairs)
    if halves is None:
        return
    means = scores.mean(axis=0)
    for at, (i, j) in enumerate(combinations(range(m), 2)):
        overlap = bool(abs(means[i] - means[j]) <= halves[i] + halves[j] + 1e-9)
        assert overlap is not bool(pairs.apart[at])


def test_bars_of_methods_with_like_spreads_are_found() -> None:
    random = np.random.default_rng(0)
    found = [comparison_bars(compare_all(random.normal(size=(5, 8)) * 0.1 + np.arange(8) / 4)) for _ in range(20)]
    assert sum(one is not None for one in found) >= 15


def test_one_seed_gives_no_verdict() -> None:
    found = standings(np.array([[0.9, 0.1, 0.5]]))
    assert [(row.low, row.high, row.tier) for row in found.rows] == [(1, 3, None)] * 3
    assert found.pairs.between(0, 1).low is None
