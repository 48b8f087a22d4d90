"""Means make no secret of what is missing; ranks are those of a competition."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.results.stats import Summary, rank, summarise

values = st.floats(-1e6, 1e6)
keys = st.one_of(st.none(), st.integers(0, 3).map(float))


def test_the_mean_and_sample_deviation_of_a_worked_example() -> None:
    assert summarise([2, 4, 4, 4, 5, 5, 7, 9]) == Summary(5.0, pytest.approx(math.sqrt(32 / 7)), 8)


@given(st.lists(values, min_size=2, max_size=8))
def test_mean_and_deviation_agree_with_the_standard_library(numbers: list[float]) -> None:
    summary = summarise(numbers)
    assert summary.mean == pytest.approx(statistics.fmean(numbers), rel=1e-9, abs=1e-6)
    assert summary.std == pytest.approx(statistics.stdev(numbers), rel=1e-9, abs=1e-6)


def test_a_single_value_has_no_deviation() -> None:
    assert summarise([0.25]) == Summary(0.25, None, 1)


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_missing_value_makes_no_mean_but_is_counted_out(missing: float | None) -> None:
    assert summarise([0.5, missing, 0.7]) == Summary(None, None, 2)


def test_nothing_has_no_mean() -> None:
    assert summarise([]) == Summary(None, None, 0)


def test_equal_values_have_exactly_their_own_mean_and_no_spread() -> None:
    assert summarise([0.1] * 3) == Summary(0.1, 0.0, 3)


def test_an_infinite_value_has_a_mean_and_no_spread() -> None:
    assert summarise([1.0, math.inf]) == Summary(math.inf, None, 2)
    assert summarise([-math.inf, math.inf]) == Summary(None, None, 2)


def test_the_order_of_seeds_does_not_change_a_bit_of_the_mean() -> None:
    numbers = [random.Random(0).random() for _ in range(9)]
    assert len({summarise(random.Random(k).sample(numbers, 9)) for k in range(50)}) == 1


def test_equal_rows_share_a_rank_and_the_next_is_skipped() -> None:
    ranking = rank([[0.5], [0.9], [0.7], [0.7]], [True])
    assert ranking.ranks == (4, 1, 2, 2)
    assert ranking.order == (1, 2, 3, 0)


def test_a_later_key_decides_among_equals_in_its_own_direction() -> None:
    rows = [[0.9, 3.0], [0.9, 1.0], [0.8, 0.0]]
    assert rank(rows, [True, False]).ranks == (2, 1, 3)
    assert rank(rows, [True, True]).ranks == (1, 2, 3)


@pytest.mark.parametrize("descending", [True, False])
def test_a_missing_value_is_last_in_either_direction(descending: bool) -> None:
    assert rank([[None], [1.0], [math.nan], [-1.0]], [descending]).order[2:] == (0, 2)


def test_no_rows_have_no_ranks() -> None:
    assert rank([], [True]).ranks == ()
    assert rank([[], []], []).ranks == (1, 1)


@given(st.lists(st.tuples(keys, keys), max_size=8), st.tuples(st.booleans(), st.booleans()))
def test_a_rank_is_one_more_than_the_number_of_better_rows(
    rows: list[tuple[float | None, float | None]], descending: tuple[bool, bool]
) -> None:
    def better(a: tuple[float | None, ...], b: tuple[float | None, ...]) -> bool:
        for x, y, falls in zip(a, b, descending, strict=True):
            if x == y:
                continue
            if x is None or y is None:
                return y is None
            return x > y if falls else x < y
        return False

    ranking = rank(rows, descending)
    assert list(ranking.ranks) == [1 + sum(better(other, row) for other in rows) for row in rows]
    assert [ranking.ranks[i] for i in ranking.order] == sorted(ranking.ranks)
    assert sorted(ranking.order) == list(range(len(rows)))
