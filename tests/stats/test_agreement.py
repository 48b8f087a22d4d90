"""What agrees with a published number."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ttest_ind_from_stats

from ianvs.stats import compare

# Two-sided 95 % points of Student's t by degrees of freedom, from a printed table.
STUDENT = {1: 12.706, 2: 4.303, 4: 2.776, 9: 2.262, 29: 2.045}


@pytest.mark.parametrize("freedom", STUDENT)
@pytest.mark.parametrize("seeds", [1, 5])
def test_the_border_is_that_of_the_table(freedom: int, seeds: int) -> None:
    n, std = freedom + 1, 0.02
    border = STUDENT[freedom] * std * math.sqrt(1 / n + 1 / seeds)
    assert compare(0.5 + 0.999 * border, seeds, 0.5, std, n).agrees
    assert compare(0.5 - 0.999 * border, seeds, 0.5, std, n).agrees
    assert not compare(0.5 + 1.001 * border, seeds, 0.5, std, n).agrees


@pytest.mark.parametrize("difference", [0.01, 0.03, 0.05, 0.08])
def test_a_single_run_agrees_where_scipys_t_test_finds_no_difference(difference: float) -> None:
    """With one value on our side, the pooled variance of the t test is theirs alone."""
    found = ttest_ind_from_stats(0.8 + difference, 0.0, 1, 0.8, 0.0189, 10, equal_var=True)
    assert compare(0.8 + difference, 1, 0.8, 0.0189, 10).agrees == bool(found.pvalue >= 0.05)


def test_nineteen_of_twenty_repetitions_agree() -> None:
    draw = np.random.default_rng(0)
    theirs, ours = draw.normal(0.8, 0.02, (4000, 5)), draw.normal(0.8, 0.02, (4000, 3)).mean(axis=1)
    agreed = [
        compare(mean, 3, published.mean(), published.std(ddof=1), 5).agrees
        for mean, published in zip(ours, theirs, strict=True)
    ]
    assert np.mean(agreed) == pytest.approx(0.95, abs=0.015)


def test_without_the_number_of_runs_two_standard_deviations_are_allowed() -> None:
    assert compare(0.839, 5, 0.8, 0.02, None).agrees
    far = compare(0.7, 5, 0.8, 0.02, None)
    assert (far.agrees, far.runs_known) == (False, False)
    assert far.in_stds == pytest.approx(-5)


def test_without_a_spread_only_the_difference_is_told() -> None:
    found = compare(0.9, 5, 0.8, None, 10)
    assert (found.agrees, found.in_stds) == (None, None)
    assert found.difference == pytest.approx(0.1)
