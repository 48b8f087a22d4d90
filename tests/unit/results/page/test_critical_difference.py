"""The picture of mean ranks over exams."""

import re
from itertools import combinations

import numpy as np
import pytest

from ianvs.results.report.charts.critical_difference import critical_difference, groups_not_apart
from ianvs.results.report.ranking import MethodsOverExams
from ianvs.results.stats import over_exams


def found(scores: np.ndarray) -> MethodsOverExams:
    exams, m = scores.shape
    names = tuple(f"method {i} (rate=0.1)" for i in range(m))
    together = over_exams(scores)
    of = tuple(map(str, range(exams)))
    return MethodsOverExams("accuracy", True, of, names, scores, together, (None,) * m, samples=False)


def separated(exams: int) -> np.ndarray:
    """Methods 0 and 1 alike, 2 far below in every exam."""
    draw = np.random.default_rng(0)
    level = draw.normal(size=exams)
    noise = 0.01 * draw.normal(size=(exams, 3))
    return np.stack([level, level, level - 5], axis=1) + noise


def test_a_bar_joins_those_that_are_not_told_apart() -> None:
    svg = str(critical_difference("ranks", found(separated(10))))
    assert svg.count('class="not-apart"') == 1
    names = re.findall(r">(?:\d\.\d\d )?(method \d)(?: \d\.\d\d)?</text>", svg)
    assert sorted(names) == ["method 0", "method 1", "method 2"]
    assert re.search(r": (method 0 and method 1|method 1 and method 0)\.", svg)
    assert "method 2 3.00" in svg or "3.00 method 2" in svg


@pytest.mark.parametrize("exams", [2, 6])
def test_there_is_none_below_the_exams_that_the_tests_need(exams: int) -> None:
    assert critical_difference("ranks", found(separated(exams))) == ""
    assert critical_difference("ranks", None) == ""


@pytest.mark.parametrize("seed", range(40))
def test_groups_are_all_runs_that_cannot_grow(seed: int) -> None:
    draw = np.random.default_rng(seed)
    m = int(draw.integers(2, 7))
    p = np.full((m, m), np.nan)
    for i, j in combinations(range(m), 2):
        p[i, j] = p[j, i] = draw.choice([0.01, 0.5])
    order = draw.permutation(m).tolist()
    runs = [
        (a, b)
        for a, b in combinations(range(m), 2)
        if all(p[order[i], order[j]] > 0.05 for i, j in combinations(range(a, b + 1), 2))
    ]
    longest = [(a, b) for a, b in runs if not any((c, d) != (a, b) and c <= a and b <= d for c, d in runs)]
    assert groups_not_apart(order, p <= 0.05) == longest
