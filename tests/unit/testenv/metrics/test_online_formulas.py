"""Measures over a curve: worked values, what they mean in special cases, and a second implementation in plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.base.types import Curve, ScoreMatrix
from ianvs.exam.metrics import find, matrix_report
from tests.errors import errors_of

NAN = math.nan
SERIES = ("AAA", "min_ACC", "WC_ACC")
FINAL = ("WF10", "WF100", "WP10", "WP100", "LCA10")


def curve_of(*examinations):
    """(samples, begun, ended, scores) of each."""
    samples, begun, ended, scores = zip(*examinations, strict=True)
    return Curve(np.array(samples), np.array(begun), np.array(ended), np.array(scores, dtype=float))


def inputs_of(curve, rounds, untrained=None):
    """Inputs whose matrix is the curve at the ends of rounds; nan where there is no examination."""
    R = np.full((rounds, curve.scores.shape[1]), NAN)
    for e in range(len(curve.samples)):
        if curve.begun[e] == curve.ended[e] > 0:
            R[curve.ended[e] - 1] = curve.scores[e]
    return ScoreMatrix.from_rounds(
        R, untrained=None if untrained is None else np.array(untrained, dtype=float), curve=curve
    )


def value(name, curve, rounds, **references):
    return find(name).function(inputs_of(curve, rounds, **references))


# --- worked values ---------------------------------------------------------------------------------------------------

TWO_ROUNDS = curve_of(
    (10, 1, 0, [0.5, 0.1]),
    (20, 1, 1, [0.9, 0.1]),
    (30, 2, 1, [0.3, 0.4]),
    (50, 2, 2, [0.7, 0.8]),
)


def test_anytime_accuracy_weighs_each_examination_by_the_samples_since_the_one_before():
    # over the rounds begun: .5 and .9 of the first test set alone, then (.3 + .4) / 2 and (.7 + .8) / 2
    first = (0.5 * 10 + 0.9 * 10) / 20
    both = (0.5 * 10 + 0.9 * 10 + 0.35 * 10 + 0.75 * 20) / 50
    assert find("AAA").series(inputs_of(TWO_ROUNDS, 2)) == pytest.approx([first, both])
    assert value("A_AUC", TWO_ROUNDS, 2) == pytest.approx(0.65)


def test_minimum_and_worst_case_see_the_gap_between_the_ends_of_rounds():
    inputs = inputs_of(TWO_ROUNDS, 2)
    # test set 1 falls from .9 to .3 and recovers to .7; its .5 of before its round ended does not count
    assert find("min_ACC").series(inputs) == pytest.approx([NAN, 0.3], nan_ok=True)
    assert find("WC_ACC").series(inputs) == pytest.approx([0.9, (0.8 + 0.3) / 2])
    assert matrix_report(ScoreMatrix.from_rounds(inputs.R))["min_ACC"] == 0.7  # from the ends of rounds alone


def test_windows_measure_the_largest_drop_and_rise_of_each_test_set_since_its_round_began():
    # test set 1: .5 .9 .3 .7, drop .9 - .3, rise .9 - .5 or .7 - .3; test set 2: .4 .8, no drop, rise .4
    assert value("WF10", TWO_ROUNDS, 2) == pytest.approx((0.6 + 0) / 2)
    assert value("WP10", TWO_ROUNDS, 2) == pytest.approx((0.4 + 0.4) / 2)


def test_a_window_of_ten_does_not_see_a_drop_that_takes_longer():
    slow = np.linspace(0.9, 0.4, 51)  # .01 from one examination to the next
    curve = curve_of(*((n + 1, 1, int(n == 50), [score]) for n, score in enumerate(slow)))
    assert value("WF10", curve, 1) == pytest.approx(0.09)
    assert value("WF100", curve, 1) == pytest.approx(0.5)
    assert value("WP10", curve, 1) == 0


def batches(rounds, count=10, size=5):
    """`count` batches in each round; test set k scores b / 100 after b batches of its round, else .5."""
    examinations = []
    for k in range(rounds):
        for b in range(1, count + 1):
            scores = [b / 100 if j == k else 0.5 for j in range(rounds)]
            examinations.append((size * (k * count + b), k + 1, k + int(b == count), scores))
    return curve_of(*examinations)


def test_learning_curve_area_averages_eleven_shots_of_every_round():
    # round 1 begins at the untrained .2, round 2 at the .5 of the end of round 1; then .01, .02, ... .10
    shots = sum(b / 100 for b in range(1, 11))
    expected = ((0.2 + shots) / 11 + (0.5 + shots) / 11) / 2
    assert value("LCA10", batches(2), 2, untrained=[0.2, 0.7]) == pytest.approx(expected)
    assert value("LCA10", batches(2, count=12), 2, untrained=[0.2, 0.7]) == pytest.approx(expected)


def test_learning_curve_area_is_undefined_where_not_every_batch_was_examined():
    undefined = [
        value("LCA10", batches(2, count=9), 2, untrained=[0.2, 0.7]),
        value("LCA10", batches(2), 2),  # without the untrained model
        find("LCA10").function(ScoreMatrix.from_rounds(np.eye(12), untrained=np.zeros(12))),  # without a curve
    ]
    curve = batches(2)
    gap = np.arange(len(curve.samples)) != 4  # one examination is missing
    longer = batches(2, count=12)
    keep = np.arange(len(longer.samples)) != 4
    for whole, kept in ((curve, gap), (longer, keep)):
        holed = Curve(whole.samples[kept], whole.begun[kept], whole.ended[kept], whole.scores[kept])
        undefined.append(value("LCA10", holed, 2, untrained=[0.2, 0.7]))
    assert all(map(math.isnan, undefined))


# --- special cases ---------------------------------------------------------------------------------------------------

SCORE = st.floats(0, 1)
SOMETIMES_MISSING = st.one_of(SCORE, SCORE, SCORE, SCORE, SCORE, SCORE, st.just(NAN))


@st.composite
def curves(draw, score=SCORE, shared=False, complete=True):
    """(curve, rounds): up to three examinations within each round, and one at its end."""
    rounds = draw(st.integers(1, 4))
    tests = 1 if shared else rounds
    examinations, samples = [], 0
    for k in range(rounds):
        between = draw(st.integers(0, 3))
        ends = complete or draw(st.integers(0, 9)) > 0
        for e in range(between + ends):
            samples += draw(st.integers(0, 5))
            row = draw(st.lists(score, min_size=tests, max_size=tests))
            examinations.append((samples, k + 1, k + int(ends and e == between), row))
    if not examinations:
        examinations.append((0, 1, 0, [0.5] * tests))
    return curve_of(*examinations), rounds


@given(st.integers(1, 6).flatmap(lambda T: st.lists(st.lists(SCORE, min_size=T, max_size=T), min_size=T, max_size=T)))
def test_from_the_matrix_alone_anytime_accuracy_is_average_incremental_accuracy(R):
    report = matrix_report(ScoreMatrix.from_rounds(np.array(R)))
    assert report["by_round"]["AAA"] == pytest.approx(report["by_round"]["AIA"], abs=1e-12)


@given(curves())
def test_a_curve_of_nothing_but_round_ends_says_what_the_matrix_says(case):
    curve, rounds = case
    ends = curve.begun == curve.ended
    sparse = Curve(curve.samples[ends], curve.begun[ends], curve.ended[ends], curve.scores[ends])
    with_curve = inputs_of(sparse, rounds)
    ours, alone = matrix_report(with_curve), matrix_report(ScoreMatrix.from_rounds(with_curve.R))
    for name in ("min_ACC", "WC_ACC", "WF10", "WP100"):
        assert ours[name] == alone[name]


@given(curves(), SCORE)
def test_the_area_under_a_constant_curve_is_the_constant(case, constant):
    curve, rounds = case
    flat = Curve(curve.samples, curve.begun, curve.ended, np.full_like(curve.scores, constant))
    for area, end in zip(find("AAA").series(inputs_of(flat, rounds)), np.unique(curve.begun), strict=True):
        samples = curve.samples[np.flatnonzero(curve.ended == end)[0]]
        assert math.isnan(area) if samples == 0 else area == pytest.approx(constant)


@given(curves())
def test_at_equal_distances_the_area_is_the_plain_mean_that_the_authors_code_takes(case):
    curve, rounds = case
    even = Curve(7 * np.arange(1, len(curve.samples) + 1), curve.begun, curve.ended, curve.scores)
    seen = [row[:begun].mean() for row, begun in zip(even.scores, even.begun, strict=True)]
    assert value("AAA", even, rounds) == pytest.approx(np.mean(seen))


@given(curves())
def test_worst_case_is_the_newest_and_the_minima_and_no_average_is_below_it(case):
    curve, rounds = case
    inputs = inputs_of(curve, rounds)
    report = matrix_report(inputs)
    for k, (worst, lowest, average) in enumerate(
        zip(*(report["by_round"][name] for name in ("WC_ACC", "min_ACC", "AA")), strict=True)
    ):
        newest = inputs.R[k, k]
        assert worst == pytest.approx(newest if k == 0 else newest / (k + 1) + (1 - 1 / (k + 1)) * lowest, abs=1e-12)
        assert worst <= average + 1e-12
    from_rows = matrix_report(ScoreMatrix.from_rounds(inputs.R))
    if rounds > 1:
        assert report["min_ACC"] <= from_rows["min_ACC"]  # looking more often never finds a higher minimum
    assert (report["WF10"] or 0) >= (from_rows["WF10"] or 0)


@given(st.lists(SCORE, min_size=2, max_size=30))
def test_a_drop_seen_backwards_is_a_rise(scores):
    there = curve_of(*((n, 1, 0, [score]) for n, score in enumerate(scores)))
    back = Curve(there.samples, there.begun, there.ended, there.scores[::-1])
    for window in (10, 100):
        assert value(f"WF{window}", there, 1) == value(f"WP{window}", back, 1)
    assert value("WF100", there, 1) >= value("WF10", there, 1) >= 0


def test_one_examination_shows_no_drop_rather_than_a_drop_of_zero():
    assert math.isnan(value("WF10", curve_of((5, 1, 1, [0.7])), 1))


def test_with_a_shared_test_set_there_is_an_area_and_no_minimum():
    curve = curve_of((10, 1, 1, [0.2]), (15, 2, 1, [0.4]), (20, 2, 2, [0.8]))
    report = matrix_report(inputs_of(curve, 2))
    assert report["AAA"] == pytest.approx((0.2 * 10 + 0.4 * 5 + 0.8 * 5) / 20)
    assert [report[name] for name in ("min_ACC", "WC_ACC", *FINAL)] == [None] * 7


def test_a_round_that_was_not_examined_at_its_end_has_no_values():
    report = matrix_report(inputs_of(curve_of((10, 1, 0, [0.5, 0.1]), (30, 2, 2, [0.6, 0.8])), 2))
    assert report["by_round"]["WC_ACC"] == [None, pytest.approx(0.7)]
    assert report["by_round"]["AAA"] == [None, pytest.approx((0.5 * 10 + 0.7 * 20) / 30)]


def test_an_unknown_score_makes_unknown_what_reads_it_and_nothing_else():
    curve = curve_of((10, 1, 1, [0.9, NAN]), (20, 2, 1, [NAN, 0.4]), (30, 2, 2, [0.7, 0.8]))
    report = matrix_report(inputs_of(curve, 2))
    assert report["by_round"]["AAA"] == [0.9, None]
    assert report["by_round"]["WC_ACC"] == [0.9, None]
    assert report["min_ACC"] is None


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"scores": np.zeros((4, 3))}, "invalid-value"),
        ({"samples": np.arange(3)}, "invalid-value"),
        ({"samples": np.array([10, 30, 20, 50])}, "invalid-value"),
        ({"ended": np.array([2, 2, 2, 2])}, "invalid-value"),
    ],
)
def test_a_curve_that_does_not_fit_is_refused(change, code):
    parts = {name: getattr(TWO_ROUNDS, name) for name in ("samples", "begun", "ended", "scores")}
    assert errors_of(
        lambda: find("AAA").function(ScoreMatrix.from_rounds(np.eye(2), curve=Curve(**(parts | change))))
    ) == [(code, "")]


# --- a second implementation: plain loops, sample by sample and pair by pair -----------------------------------------


def average(numbers):
    return sum(numbers) / len(numbers) if numbers else NAN


def naive(inputs):
    """{name: value} after the last round, and {name: T values}."""
    rounds, tests = inputs.R.shape
    curve = inputs.curve
    parts = (curve.samples, curve.begun, curve.ended, curve.scores)
    seen = list(zip(*(part.tolist() for part in parts), strict=True))

    def until(k):
        """Examinations up to the end of round k, which the last of them is; [] where it is not."""
        found = [examination for examination in seen if examination[1] <= k]
        return found if found and found[-1][2] == k else []

    def area(k):
        """Average, over every sample, of the first score after it."""
        found = until(k)
        total = []
        for sample in range(1, (found[-1][0] if found else 0) + 1):
            _, begun, _, scores = next(examination for examination in found if examination[0] >= sample)
            total.append(average(scores[:begun] if rounds == tests else scores))
        return average(total)

    series = {"AAA": [area(k) for k in range(1, rounds + 1)]}
    if rounds != tests:
        nothing = dict.fromkeys(("min_ACC", "WC_ACC"), [NAN] * rounds)
        return dict.fromkeys(FINAL, NAN), series | nothing

    def lowest(k):
        minima = []
        for j in range(1, k):
            later = [scores[j - 1] for _, begun, _, scores in until(k) if begun > j]
            minima.append(NAN if any(map(math.isnan, later)) or not later else min(later))
        return average(minima)

    def worst(k):
        found = until(k)
        if not found:
            return NAN
        newest = found[-1][3][k - 1]
        return newest if k == 1 else newest / k + (1 - 1 / k) * lowest(k)

    def window(size, sign):
        changes, most = [], 0
        for j in range(rounds):
            scores = [row[j] for _, begun, _, row in seen if begun > j]
            most = max(most, len(scores))
            pairs = [(m, n) for m in range(len(scores)) for n in range(m, len(scores)) if n - m < size]
            found = [sign * (scores[m] - scores[n]) for m, n in pairs]
            changes.append(NAN if not found or any(map(math.isnan, found)) else max(found))
        return average(changes) if most > 1 else NAN

    series |= {
        "min_ACC": [lowest(k) for k in range(1, rounds + 1)],
        "WC_ACC": [worst(k) for k in range(1, rounds + 1)],
    }
    final = {f"{name}{size}": window(size, sign) for name, sign in (("WF", 1), ("WP", -1)) for size in (10, 100)}
    return final | {"LCA10": NAN}, series  # no round of these curves has ten batches


def same(ours, other):
    return math.isnan(other) if ours is None else ours == pytest.approx(other, abs=1e-12)


@given(st.one_of(curves(), curves(score=SOMETIMES_MISSING, complete=False), curves(shared=True)))
def test_every_online_measure_equals_a_second_implementation(case):
    inputs = inputs_of(*case)
    report = matrix_report(inputs)
    final, series = naive(inputs)
    assert {*final, *series} == {*SERIES, *FINAL}
    for name, expected in final.items():
        assert same(report[name], expected), name
    for name, expected in series.items():
        assert same(report[name], expected[-1]), name
        assert all(map(same, report["by_round"][name], expected)), name
