"""Intervals of ranks, tiers and paired differences: by hand, against scipy, against a naive second implementation."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.stats

from ianvs.results.stats import (
    ENOUGH_FOR_BOOTSTRAP,
    Source,
    compare_all,
    holm,
    mean_interval,
    paired_difference,
    pareto_front,
    seeds_to_separate,
    standings,
)
from tests.documents import DOCUMENTS, python_of


def seeds(*columns: list[float]) -> list[Source]:
    return [Source("seeds", np.array(columns, dtype=float).T)]


def of(*columns: list[float]):
    sources = seeds(*columns)
    return standings(sources[0].draws.mean(axis=0), sources)


def drawn(n: int, m: int, gap: float, random: np.random.Generator) -> np.ndarray:
    """(n, m) scores of methods whose spread differs, and which seeds move together."""
    return (
        -gap * np.arange(m)
        + 0.5 * random.normal(size=(n, 1))
        + random.normal(size=(n, m)) * random.uniform(0.5, 1.5, m)
    )


def naive(scores: np.ndarray) -> list[tuple[int, int]]:
    """Rank intervals as the definition reads: t tests of all pairs, from the smallest p, until one fails."""
    m = scores.shape[1]
    p = {(i, j): scipy.stats.ttest_rel(scores[:, i], scores[:, j]).pvalue for i, j in combinations(range(m), 2)}
    apart = set()
    for step, pair in enumerate(sorted(p, key=p.get)):
        if p[pair] > 0.05 / (len(p) - step):
            break
        apart.add(pair)
    mean = scores.mean(axis=0)
    found = []
    for i in range(m):
        rivals = [j for j in range(m) if (min(i, j), max(i, j)) in apart]
        found.append((1 + sum(mean[j] > mean[i] for j in rivals), m - sum(mean[j] < mean[i] for j in rivals)))
    return found


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


def test_a_pair_reads_the_same_from_both_ends() -> None:
    scores = drawn(5, 4, 1.0, np.random.default_rng(0))
    pairs = compare_all(scores.mean(axis=0), [Source("seeds", scores)])
    for i, j in combinations(range(4), 2):
        one, other = pairs.between(i, j), pairs.between(j, i)
        assert (one.mean, one.low, one.high) == pytest.approx((-other.mean, -other.high, -other.low))
        assert one.mean == pytest.approx(scores[:, i].mean() - scores[:, j].mean())
        assert one.p == other.p


def test_seven_methods_and_three_seeds_need_a_t_of_twenty() -> None:
    """Holm's first step over 21 pairs with two degrees of freedom: the critical t is 20.5."""
    differences = np.array([-1.0, 0.5, 0.5])
    error = differences.std(ddof=1) / np.sqrt(3)
    for t, apart in ((20.0, False), (21.0, True)):
        scores = np.zeros((3, 7))
        scores[:, 0] = differences + t * error
        pairs = compare_all(scores.mean(axis=0), [Source("seeds", scores)])
        assert bool(pairs.separated[0, 1]) is apart


def test_two_methods_that_answer_the_same_are_a_tie() -> None:
    found = of([0.5, 0.6, 0.7], [0.5, 0.6, 0.7])
    assert [(row.low, row.high, row.tier) for row in found.rows] == [(1, 2, "A"), (1, 2, "A")]
    assert [row.p_best for row in found.rows] == pytest.approx([0.5, 0.5])
    assert found.pairs.p.tolist() == [1.0]


def test_differences_that_are_all_equal_tell_no_spread() -> None:
    found = of([0.1, 0.2, 0.3], [0.2, 0.3, 0.4])  # the same .1 each time, but for rounding
    assert found.pairs.p.tolist() == [1.0]
    pair = paired_difference([0.1, 0.2, 0.3], [0.2, 0.3, 0.4])
    assert (pair.low, pair.high, pair.p) == (None, None, 1.0)
    assert not paired_difference([0.5], [0.1]).separated


def test_margins_of_seeds_and_samples_add_up_in_squares() -> None:
    random = np.random.default_rng(2)
    scores, parts = random.normal(size=(5, 2)), random.normal(size=(20, 2))
    pairs = compare_all(np.array([1.0, 0.0]), [Source("seeds", scores), Source("samples", parts)])
    one = scipy.stats.sem(scores[:, 0] - scores[:, 1]) * scipy.stats.t.ppf(0.975, 4)
    other = scipy.stats.sem(parts[:, 0] - parts[:, 1]) * scipy.stats.t.ppf(0.975, 19)
    found = pairs.between(0, 1)
    assert found.high - found.mean == pytest.approx(np.hypot(one, other))
    errors = [scipy.stats.sem(draws[:, 0] - draws[:, 1]) for draws in (scores, parts)]
    margin = np.hypot(*(e * scipy.stats.t.isf(found.p / 2, df) for e, df in zip(errors, (4, 19), strict=True)))
    assert margin == pytest.approx(1.0, rel=1e-6), "p is the level at which the margin reaches the difference"


def test_seeds_of_several_exams_add_up_with_satterthwaites_freedom() -> None:
    random = np.random.default_rng(6)
    first, second = random.normal(size=(5, 2)), random.normal(size=(4, 2))
    found = compare_all(np.array([1.0, 0.0]), [Source("seeds", first), Source("seeds", second)])
    one, other = np.var(first[:, 0] - first[:, 1], ddof=1) / 5, np.var(second[:, 0] - second[:, 1], ddof=1) / 4
    freedom = (one + other) ** 2 / (one**2 / 4 + other**2 / 3)
    assert found.p == pytest.approx([2 * scipy.stats.t.sf(1 / np.sqrt(one + other), freedom)])


@pytest.mark.parametrize("seeds_n", [2, 3, 5])
@pytest.mark.parametrize("ratio", [0.03, 0.3, 3.0])
def test_two_sources_of_chance_call_equal_methods_apart_at_most_one_time_in_twenty(seeds_n: int, ratio: float) -> None:
    """The sum of variances with one t would do so two times too often, and seven times in Holm's first steps."""
    random, jobs = np.random.default_rng(7), 4000
    errors = random.normal(size=jobs) + np.sqrt(ratio) * random.normal(size=jobs)
    draws = random.normal(size=(seeds_n, jobs)) * np.sqrt(seeds_n), random.normal(size=(20, jobs)) * np.sqrt(20 * ratio)
    sources = [np.stack([one, np.zeros_like(one)], axis=2) for one in draws]
    apart = 0
    for k in range(0, jobs, 8):
        found = compare_all(
            np.array([errors[k], 0.0]), [Source("seeds", sources[0][:, k]), Source("samples", sources[1][:, k])]
        )
        apart += bool(found.p[0] <= 0.05)
    assert apart / (jobs / 8) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / (jobs / 8))


# --- ranks and tiers -----------------------------------------------------------------------------------------------


def test_ranks_and_tiers_worked_out_by_hand() -> None:
    """c is far below; a and b, with differences .01, -.01, .02, are not separated: t = .76."""
    found = of([0.90, 0.91, 0.92], [0.89, 0.92, 0.90], [0.10, 0.12, 0.11])
    assert [(row.low, row.high, row.tier) for row in found.rows] == [(1, 2, "A"), (1, 2, "A"), (3, 3, "B")]
    assert found.rows[2].p_best == pytest.approx(0, abs=1e-3)
    assert sum(row.p_best for row in found.rows) == pytest.approx(1)


def test_a_tier_ends_where_a_method_is_apart_from_any_of_its_members() -> None:
    """Neighbours overlap all the way down; the first and the third don't."""
    base = np.array([0.00, 0.02, -0.02, 0.01, -0.01])
    found = of(
        (0.90 + base).tolist(),
        (0.87 + 2 * base[::-1]).tolist(),
        (0.84 + base + [0.001, 0, 0, 0, -0.001]).tolist(),
    )
    assert found.pairs.separated.tolist() == [[False, False, True], [False, False, False], [True, False, False]]
    assert [row.tier for row in found.rows] == ["A", "A", "B"]
    assert [(row.low, row.high) for row in found.rows] == [(1, 2), (1, 3), (2, 3)]


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("gap", [0.0, 1.0, 8.0])
def test_rank_intervals_are_those_of_a_naive_second_implementation(n: int, gap: float) -> None:
    random = np.random.default_rng(n)
    for m in (2, 3, 6):
        scores = drawn(n, m, gap, random)
        found = standings(scores.mean(axis=0), [Source("seeds", scores)])
        assert [(row.low, row.high) for row in found.rows] == naive(scores)


def test_the_27th_tier_has_two_letters() -> None:
    scores = np.array([[100.0 * i, 100.0 * i + 0.1 * (i % 3), 100.0 * i - 0.1] for i in range(28)]).T
    found = standings(scores.mean(axis=0), [Source("seeds", scores)], level=0.05)
    assert [found.rows[i].tier for i in (27, 2, 1, 0)] == ["A", "Z", "AA", "AB"]


def test_with_many_seeds_the_bootstrap_has_a_say() -> None:
    """One wild seed in twenty: Student's t calls the methods apart or not by that seed; a clear difference stays."""
    random = np.random.default_rng(3)
    n = ENOUGH_FOR_BOOTSTRAP
    scores = np.column_stack([random.normal(2, 1, n), random.normal(0, 1, n)])
    assert standings(scores.mean(axis=0), [Source("seeds", scores)]).pairs.separated[0, 1]
    even = random.normal(0, 1, (n, 2))
    assert not standings(even.mean(axis=0), [Source("seeds", even)]).pairs.separated[0, 1]


def test_the_same_numbers_give_the_same_table() -> None:
    scores = drawn(25, 5, 0.3, np.random.default_rng(4))
    one, other = (standings(scores.mean(axis=0), [Source("seeds", scores)]) for _ in range(2))
    assert one.rows == other.rows


def test_the_chance_of_being_best_is_that_of_the_t_distribution() -> None:
    """Of two methods it is the share of a t distribution on one side of their difference."""
    scores = np.array([[0.0, 0.1], [0.2, 0.1], [0.4, 0.2], [0.1, 0.3]])
    difference = scores[:, 0] - scores[:, 1]
    t = difference.mean() / (difference.std(ddof=1) / 2)
    found = standings(scores.mean(axis=0), [Source("seeds", scores)])
    assert found.rows[0].p_best == pytest.approx(scipy.stats.t.cdf(t, 3), abs=0.015)


def test_so_many_seeds_do_separate_them() -> None:
    for difference, std, pairs in ((1.0, 1.0, 1), (0.3, 1.0, 21)):
        n = seeds_to_separate(difference, std, pairs)
        assert n is not None
        critical = [scipy.stats.t.ppf(1 - 0.025 / pairs, k - 1) * std / np.sqrt(k) for k in (n - 1, n)]
        assert critical[0] > difference >= critical[1]
    assert seeds_to_separate(0.0, 1.0, 1) is None
    assert seeds_to_separate(0.1, 0.01, 1, floor=0.01) is None, "no seed takes the chance of the samples away"


# --- intervals -----------------------------------------------------------------------------------------------------


def test_the_interval_of_a_mean_is_scipys() -> None:
    values = [0.91, 0.93, 0.90, 0.95]
    found = mean_interval(values)
    wanted = scipy.stats.t.interval(0.95, 3, np.mean(values), scipy.stats.sem(values))
    assert (found.low, found.high) == pytest.approx(wanted)


def test_from_twenty_values_on_the_interval_is_a_bootstrap_and_follows_the_skew() -> None:
    values = np.random.default_rng(5).exponential(size=40)
    found, mean = mean_interval(values.tolist()), values.mean()
    assert found.high - mean > mean - found.low
    plain = scipy.stats.bootstrap((values,), np.mean, method="BCa", rng=0).confidence_interval
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high), rel=0.12)


def test_no_spread_no_interval() -> None:
    assert mean_interval([0.5]) is None
    assert mean_interval([0.5, None]) is None
    assert mean_interval([0.5, float("nan")]) is None
    assert mean_interval([0.5, 0.5]).low == mean_interval([0.5, 0.5]).high == 0.5


def test_the_pareto_front_worked_out_by_hand() -> None:
    assert pareto_front([(1, 4), (2, 2), (4, 1), (3, 3), (1, 4)]) == [0, 1, 2, 4]
    assert pareto_front([]) == []


# --- how often they are right --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 5, 10, 30])
@pytest.mark.parametrize("m", [3, 7, 20])
def test_all_true_ranks_lie_in_their_intervals_at_once_in_95_of_100_jobs(n: int, m: int) -> None:
    """Equal methods are the hard case: every separation is an error. Far ones are separated."""
    random, jobs = np.random.default_rng(100 * n + m), 2000 if n < ENOUGH_FOR_BOOTSTRAP else 500
    right, shares = {0.0: 0, 0.3: 0}, []
    for gap in right:
        true = -gap * np.arange(m)
        low = 1 + (true[None, :] > true[:, None]).sum(axis=1)
        high = m - (true[None, :] < true[:, None]).sum(axis=1)
        for _ in range(jobs):
            scores = drawn(n, m, gap, random)
            rows = standings(scores.mean(axis=0), [Source("seeds", scores)]).rows
            right[gap] += all(r.low <= a and b <= r.high for r, a, b in zip(rows, low, high, strict=True))
    for _ in range(50):
        scores = drawn(n, m, 40.0, random)
        shares.append(standings(scores.mean(axis=0), [Source("seeds", scores)]).pairs.separated.sum() / (m * m - m))
    assert min(right.values()) / jobs >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / jobs)
    assert np.mean(shares) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 5, 10, 30])
def test_intervals_of_means_cover_19_of_20_times(n: int) -> None:
    random = np.random.default_rng(n)
    found = [mean_interval(random.normal(size=n).tolist()) for _ in range(2000 if n < ENOUGH_FOR_BOOTSTRAP else 1000)]
    assert np.mean([one.low <= 0 <= one.high for one in found]) == pytest.approx(0.95, abs=0.02)


def test_the_page_on_statistics_shows_what_its_code_gives() -> None:
    page = (DOCUMENTS / "statistics.md").read_text(encoding="utf-8")
    code = python_of("statistics.md")
    names: dict[str, object] = {}
    exec(code, names)
    value, said = code.strip().splitlines()[-1].split("  # ")
    assert str(eval(value, names)) == said
    pairs = names["found"].pairs
    for i, j, told in ((0, 1, "p = .53"), (0, 2, "p = .00005"), (1, 2, "p = .00002")):
        single = scipy.stats.ttest_rel(names["scores"][:, i], names["scores"][:, j]).pvalue
        assert float(told.removeprefix("p = ")) == pytest.approx(single, rel=0.15)
        assert told in page
        assert bool(pairs.separated[i, j]) is bool(single < 0.01)
