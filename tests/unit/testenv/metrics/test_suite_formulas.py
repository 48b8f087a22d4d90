"""Omega, the measures of Diaz-Rodriguez et al. and learning accuracy: worked values, properties, plain loops."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.base.types import ScoreMatrix
from ianvs.exam.metrics import matrix_report
from ianvs.testenv.metrics import suites
from ianvs.testenv.metrics.all_metrics import defined_in

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "metrics.json").read_text())["cases"]


def report_of(R, **references):
    arrays = {key: np.array(row, dtype=float) for key, row in references.items() if row is not None}
    return matrix_report(ScoreMatrix.from_rounds(np.array(R, dtype=float), **arrays))


WORKED = [[0.9, 0.3, 0.2], [0.6, 0.8, 0.4], [0.3, 0.6, 0.7]]


def test_omega_of_a_worked_matrix():
    report = report_of(WORKED, joint=[0.75, 0.7, 0.6])  # alpha_ideal is .75
    assert report["by_round"]["Omega_base"] == [None, pytest.approx(0.6 / 0.75), pytest.approx((0.6 + 0.3) / 2 / 0.75)]
    assert report["by_round"]["Omega_new"] == [None, 0.8, pytest.approx((0.8 + 0.7) / 2)]
    after_two, after_three = (0.6 + 0.8) / 2, (0.3 + 0.6 + 0.7) / 3
    assert report["Omega_all"] == pytest.approx((after_two + after_three) / 2 / 0.75)


def test_the_measures_of_diaz_rodriguez_of_a_worked_matrix():
    report = report_of(WORKED)
    assert report["DR_A"] == pytest.approx((0.9 + 0.6 + 0.8 + 0.3 + 0.6 + 0.7) / 6)
    backward = ((0.6 - 0.9) + (0.3 - 0.9) + (0.6 - 0.8)) / 3
    assert report["DR_BWT"] == pytest.approx(backward)
    assert report["BWT"] == pytest.approx(((0.3 - 0.9) + (0.6 - 0.8)) / 2)  # the last row alone
    assert report["DR_BWT_plus"] == report["DR_BWT+"] == 0
    assert report["DR_REM"] == pytest.approx(1 + backward)
    assert report["DR_FWT"] == pytest.approx((0.3 + 0.2 + 0.4) / 3)


def test_a_learner_that_improves_what_it_knew_remembers_all():
    report = report_of([[0.5, 0.1], [0.7, 0.6]])
    assert (report["DR_BWT_plus"], report["DR_REM"]) == (pytest.approx(0.2), 1)


def test_learning_accuracy_does_not_see_forgetting():
    report = report_of(WORKED)
    assert report["by_round"]["LA"] == pytest.approx([0.9, (0.9 + 0.8) / 2, (0.9 + 0.8 + 0.7) / 3])


@pytest.mark.parametrize("ideal", [0.2, 0.75, 1.0])
def test_a_learner_as_good_as_the_ideal_has_an_omega_of_one(ideal):
    report = report_of(np.full((4, 4), ideal), joint=[ideal, 0.1, 0.1, 0.1])
    assert report["Omega_base"] == pytest.approx(1)
    assert report["Omega_all"] == pytest.approx(1)
    assert report["Omega_new"] == pytest.approx(ideal)


@pytest.mark.parametrize("case", GOLDEN)
def test_equal_definitions_of_other_papers_have_equal_values(case):
    expected, report = GOLDEN[case]["expected"], report_of(GOLDEN[case]["input"]["R"])
    assert report["DR_A"] == pytest.approx(expected["CLEAR_accuracy_seen"], abs=1e-12)
    assert report["DR_FWT"] == pytest.approx(expected["CLEAR_forward_transfer"], abs=1e-12)
    assert report["learning_accuracy"] == pytest.approx(expected["CLEAR_in_domain"], abs=1e-12)


def test_after_one_round_what_needs_two_is_undefined():
    report = report_of([[0.7]], joint=[0.8])
    assert report["learning_accuracy"] == report["DR_A"] == 0.7
    undefined = ("Omega_base", "Omega_new", "Omega_all", "DR_BWT", "DR_BWT_plus", "DR_REM", "DR_FWT")
    assert [report[name] for name in undefined] == [None] * 7


def test_omega_is_undefined_without_the_ideal_and_where_the_ideal_is_zero():
    for joint in (None, [0.0, 0.5, 0.5], [math.nan, 0.5, 0.5]):
        report = report_of(WORKED, joint=joint)
        assert [report["Omega_base"], report["Omega_all"]] == [None, None]
        assert report["Omega_new"] is not None


# --- a second implementation: indices from 1, plain loops ------------------------------------------------------------


def average(numbers):
    return sum(numbers) / len(numbers) if numbers else math.nan


def naive(R, joint):
    """{name: value} after the last round, and {name: T values}."""
    T = len(R)

    def a(i, j):
        return R[i - 1][j - 1]

    def relative(number):
        quotient = number / joint[0] if joint and joint[0] else math.nan
        return quotient if math.isfinite(quotient) else math.nan

    every = range(1, T + 1)
    later = {k: range(2, k + 1) for k in every}
    series = {
        "Omega_base": [relative(average([a(i, 1) for i in later[k]])) for k in every],
        "Omega_new": [average([a(i, i) for i in later[k]]) for k in every],
        "Omega_all": [
            relative(average([average([a(i, j) for j in range(1, i + 1)]) for i in later[k]])) for k in every
        ],
        "learning_accuracy": [average([a(i, i) for i in range(1, k + 1)]) for k in every],
    }
    pairs = T * (T - 1) / 2
    backward = sum(a(i, j) - a(j, j) for i in every for j in every if i > j) / pairs if pairs else math.nan
    final = {
        "DR_A": sum(a(i, j) for i in every for j in every if i >= j) / (T * (T + 1) / 2),
        "DR_BWT": backward,
        "DR_BWT_plus": math.nan if math.isnan(backward) else max(0, backward),
        "DR_REM": math.nan if math.isnan(backward) else 1 - abs(min(0, backward)),
        "DR_FWT": sum(a(i, j) for i in every for j in every if i < j) / pairs if pairs else math.nan,
    }
    return final, series


def same(ours, other):
    return math.isnan(other) if ours is None else ours == pytest.approx(other, rel=1e-9, abs=1e-12)


@st.composite
def cases(draw):
    rounds = draw(st.integers(1, 5))
    score = draw(st.sampled_from([st.floats(0, 1), st.one_of(*[st.floats(0, 1)] * 5, st.just(math.nan))]))
    row = st.lists(score, min_size=rounds, max_size=rounds)
    return draw(st.lists(row, min_size=rounds, max_size=rounds)), draw(st.one_of(row, row, st.none()))


@given(cases())
def test_every_measure_equals_a_second_implementation(case):
    R, joint = case
    report = report_of(R, joint=joint)
    final, series = naive(R, joint)
    assert {*final, *series} == {metric.name for metric in defined_in(suites)}
    for name, expected in final.items():
        assert same(report[name], expected), name
    for name, expected in series.items():
        assert same(report[name], expected[-1]), name
        assert all(map(same, report["by_round"][name], expected)), name
