"""Metrics over a score matrix against worked values, published numbers and a second implementation in plain loops."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ianvs.base.types import ScoreMatrix
from ianvs.exam.metrics import find, matrix_report
from ianvs.testenv.metrics import benchmarks, survey
from ianvs.testenv.metrics.all_metrics import defined_in
from tests.errors import errors_of

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "metrics.json").read_text())["cases"]
NAN = math.nan


def value(name, R, **references):
    arrays = {key: np.array(row, dtype=float) for key, row in references.items() if row is not None}
    return find(name).function(ScoreMatrix.from_rounds(np.array(R, dtype=float), **arrays))


def report_of(R, **references):
    arrays = {key: np.array(row, dtype=float) for key, row in references.items() if row is not None}
    return matrix_report(ScoreMatrix.from_rounds(np.array(R, dtype=float), **arrays))


# --- worked values ---------------------------------------------------------------------------------------------------

OUR_NAME = {"FM": "FM_literal"}  # the worked values call the survey's literal form FM; ours means the restricted one
SERIES = ("AA", "AIA", "FM", "FM_from_j", "BWT", "IM", "FWT_survey")


@pytest.mark.parametrize("case", GOLDEN)
def test_the_worked_values_are_met(case):
    given_, expected = GOLDEN[case]["input"], dict(GOLDEN[case]["expected"])
    del expected["f_last_literal"]  # parts of the literal FM, which is checked as a whole
    references = {"joint": given_["joint"], "single_task": given_["solo"]}
    report = report_of(given_["R"], untrained=given_["b"], **references)
    ianvs = report_of(given_["R"], untrained=given_["R0"])
    for name, worked in expected.items():
        ours = OUR_NAME.get(name, name)
        if name in SERIES:
            assert report["by_round"][ours] == pytest.approx(worked, abs=1e-12), name
            assert report[ours] == pytest.approx(worked[-1], abs=1e-12), name
        else:
            source = ianvs if name.startswith("IANVS") else report
            assert source[ours] == pytest.approx(worked, abs=1e-12), name


def test_the_matrix_of_mdil_ss_has_its_published_forgetting():
    """Garg et al. 2022, CS -> BDD -> IDD, val mIoU in percent; only the lower triangle is known."""
    R = [[71.82, None, None], [65.21, 55.73, None], [59.19, 49.66, 59.16]]
    report = report_of(R)
    assert report["BWT"] == pytest.approx(-9.35, abs=1e-9)
    assert report["AA"] == pytest.approx(56.00, abs=0.005)
    assert report["CLEAR_forward_transfer"] is None


# final scores | Avg.ACC, Forgetting, New.ACC as printed
PUBLISHED = {
    "LoRA, InternLM2.5": ([64.25, 58.94, 71.53, 100], 73.68, 34.41, 99.49),
    "Replay, InternLM2.5": ([78.04, 69.19, 83.71, 99.84], 82.70, 22.18, 99.33),
    "EWC, Qwen2.5": ([66.6, 61.96, 73.92, 100], 75.62, 32.5, 100),
    "CIA, Qwen2.5": ([66.92, 62.88, 74.62, 100], 76.11, 31.86, 100),
    "CIA, LLaVA-7B": ([83.38, 59.96, 97.07, 60.31, 48.11, 39.61, 65.85, 62.80], 64.64, 1.93, 66.33),
    "LoRA, LLaVA-7B": ([21.26, 28.74, 10.25, 36.78, 32.45, 0.83, 42.50, 57.08], 28.74, 37.29, 61.36),
}


@pytest.mark.parametrize("row", PUBLISHED)
def test_published_forgetting_follows_from_published_new_and_final_scores(row):
    """The diagonal is not published, but only its mean (New.ACC) matters where the best past score is on it."""
    final, average, forgetting, new = PUBLISHED[row]
    rounds = len(final)
    R = np.full((rounds, rounds), NAN)
    R[np.tril_indices(rounds)] = 0.0
    np.fill_diagonal(R, (rounds * new - final[-1]) / (rounds - 1))
    R[-1] = final
    report = report_of(R)
    assert report["CN_Avg_ACC"] == pytest.approx(average, abs=0.02)
    assert report["CN_New_ACC"] == pytest.approx(new, abs=1e-9)
    assert report["CN_Forgetting"] == pytest.approx(forgetting, abs=0.03)
    assert report["CIA_forgetting_diag"] == pytest.approx(forgetting, abs=0.03)


# after three rounds; .1 is chance, .9 is learned, .6 is what helps before its round
LEARNERS = {
    "forgets": ([[0.9, 0.1, 0.1], [0.1, 0.9, 0.1], [0.1, 0.1, 0.9]], (0.8 / 9, 0.0), (-0.8, 0.0)),
    "keeps": ([[0.9, 0.1, 0.1], [0.9, 0.9, 0.1], [0.9, 0.9, 0.9]], (0.8 / 3, 0.0), (0.0, 0.0)),
    "transfers": ([[0.9, 0.6, 0.1], [0.9, 0.9, 0.6], [0.9, 0.9, 0.9]], (0.8 / 3, 1 / 3), (0.0, 0.5)),
}


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_two_of_ianvs_and_of_gem_tell_learners_apart_as_documented(learner):
    R, ianvs, gem = LEARNERS[learner]
    report = report_of(R, untrained=[0.1, 0.1, 0.1])
    assert (report["Ianvs_BWT"], report["Ianvs_FWT"]) == pytest.approx(ianvs, abs=1e-12)
    assert (report["BWT"], report["FWT"]) == pytest.approx(gem, abs=1e-12)


# --- a second implementation: the formulas with indices from 1, in plain loops ----------------------------------------


def average(numbers):
    return sum(numbers) / len(numbers) if numbers else NAN


def highest(numbers):
    return NAN if any(map(math.isnan, numbers)) else max(numbers)


def naive(R, untrained, joint, single_task):
    """{name: value} after the last round and {name: T values}."""
    T, J = len(R), len(R[0])

    def a(k, j):
        return R[k - 1][j - 1]

    def row_average(k):
        return average([a(k, j) for j in range(1, (k if T == J else J) + 1)])

    series = {
        "AA": [row_average(k) for k in range(1, T + 1)],
        "AIA": [average([row_average(i) for i in range(1, k + 1)]) for k in range(1, T + 1)],
    }
    last_row = average([a(T, j) for j in range(1, J + 1)])
    final = {"CN_Avg_ACC": last_row, "task_avg_acc": last_row}
    names = [metric.name for metric in defined_in(survey, benchmarks)]
    if J == T + 1:
        final["CLEAR_next_domain"] = average([a(i, i + 1) for i in range(1, T + 1)])
        final["CLEAR_forward_transfer"] = average([a(i, j) for i in range(1, T + 1) for j in range(i + 1, J + 1)])
    if T != J:
        undefined = {name: NAN for name in names if name not in (*series, *final)}
        with_series = ("FM_literal", "FM_restricted", "BWT", "IM", "FWT_survey")
        return {**undefined, **final}, {**series, **{name: [NAN] * T for name in with_series}}

    def b(j):
        return NAN if untrained is None else untrained[j - 1]

    def with_row_zero(k, j):
        return b(j) if k == 0 else a(k, j)

    def literal(k):
        return average([highest([a(i, j) - a(k, j) for i in range(1, k)]) for j in range(1, k)])

    def restricted(k):
        return average([highest([a(i, j) - a(k, j) for i in range(j, k)]) for j in range(1, k)])

    def intransigence(k):
        return NAN if joint is None else joint[k - 1] - a(k, k)

    def survey_forward(k):
        return NAN if single_task is None else average([a(j, j) - single_task[j - 1] for j in range(2, k + 1)])

    def forgotten(k):
        """Of each test set taught so far what is lost of its best score; of the newest nothing, if it has a score."""
        lost = [max(0.0, highest([a(i, j) for i in range(j, k)]) - a(k, j)) for j in range(1, k)]
        return average([*lost, 0 * a(k, k)])

    every = range(1, T + 1)
    series |= {
        "FM_literal": [literal(k) for k in every],
        "FM_restricted": [restricted(k) for k in every],
        "BWT": [average([a(k, j) - a(j, j) for j in range(1, k)]) for k in every],
        "IM": [intransigence(k) for k in every],
        "FWT_survey": [survey_forward(k) for k in every],
    }

    def relative(j):
        single = NAN if single_task is None else single_task[j - 1]
        change = NAN if single == 0 else 100 * (a(T, j) - single) / single
        return change if math.isfinite(change) else NAN

    lower_is_missing = any(math.isnan(a(k, j)) for k in every for j in range(1, k + 1))
    in_domain = average([a(i, i) for i in every])
    next_domain = average([a(i, i + 1) for i in range(1, T)])
    backward = average([a(i, j) for i in every for j in every if i > j])
    forward = average([a(i, j) for i in every for j in every if i < j])
    final |= {
        "FWT": average([a(j - 1, j) - b(j) for j in range(2, T + 1)]),
        "CLEAR_in_domain": in_domain,
        "CLEAR_next_domain": next_domain,
        "CLEAR_backward_transfer": backward,
        "CLEAR_forward_transfer": forward,
        "CLEAR_accuracy_seen": average([a(i, j) for i in every for j in every if i >= j]),
        "CLEAR_challenge_score": (in_domain + next_domain + backward + forward) / 4,
        "CN_Forgetting": average([highest([a(j, i) for j in range(i, T)]) - a(T, i) for i in range(1, T)]),
        "CN_FOR_signed": average([a(T, i) - highest([a(j, i) for j in range(i, T)]) for i in range(1, T)]),
        "CN_New_ACC": in_domain,
        "CIA_forgetting_diag": average([a(i, i) - a(T, i) for i in range(1, T)]),
        "forget_rate": NAN if lower_is_missing else average([forgotten(k) for k in every]),
        "delta_m": average([relative(j) for j in every]),
        "Ianvs_BWT": average([a(T, j) - b(j) for j in every]) / T,
        "Ianvs_FWT": sum(with_row_zero(i - 1, i) - b(i) for i in every) / T,
    }
    return final, series


def same(ours, other):
    """None stands for nan."""
    return math.isnan(other) if ours is None else ours == pytest.approx(other, abs=1e-12)


SCORE = st.floats(0, 1)
SOMETIMES_MISSING = st.one_of(SCORE, SCORE, SCORE, SCORE, st.just(NAN))


@st.composite
def cases(draw, score=SOMETIMES_MISSING, square=False, references=True):
    rounds = draw(st.integers(1, 5))
    tests = rounds if square else draw(st.one_of(st.just(rounds), st.just(rounds + 1), st.integers(1, 5)))
    row = st.lists(score, min_size=tests, max_size=tests)
    R = draw(st.lists(row, min_size=rounds, max_size=rounds))
    if not references:
        return R
    reference = st.one_of(row, row, st.none()) if rounds == tests else st.none()
    return R, draw(reference), draw(reference), draw(reference)


@given(cases())
def test_every_metric_equals_a_second_implementation_with_nulls_in_all_shapes(case):
    compare_with_naive(case)


@given(cases(score=SCORE))
def test_every_metric_equals_a_second_implementation_without_nulls(case):
    compare_with_naive(case)


def compare_with_naive(case):
    R, untrained, joint, single_task = case
    report = report_of(R, untrained=untrained, joint=joint, single_task=single_task)
    final, series = naive(R, untrained, joint, single_task)
    final |= {name: values[-1] for name, values in series.items()}
    assert set(final) == {metric.name for metric in defined_in(survey, benchmarks)}
    for name, expected in final.items():
        assert same(report[name], expected), name
    for name, expected in series.items():
        assert all(map(same, report["by_round"][name], expected)), name
        assert len(report["by_round"][name]) == len(R)


# --- properties ------------------------------------------------------------------------------------------------------


@given(cases(score=SCORE, square=True, references=False))
def test_forgetting_is_never_below_minus_bwt_and_literal_never_below_restricted(R):
    assume(len(R) > 1)
    report = report_of(R)
    assert report["FM_restricted"] >= -report["BWT"] - 1e-12
    assert report["FM_literal"] >= report["FM_restricted"] - 1e-12
    assert report["CIA_forgetting_diag"] == pytest.approx(-report["BWT"], abs=1e-12)
    assert report["CN_FOR_signed"] == pytest.approx(-report["CN_Forgetting"], abs=1e-12)


@given(cases(score=SCORE, square=True, references=False))
def test_new_minus_average_is_forgetting_times_t_minus_1_over_t_if_the_best_past_score_is_on_the_diagonal(R):
    assume(len(R) > 1)
    T = len(R)
    R = np.array(R)
    R[:-1] /= 2  # at most 0.5, so that the diagonal is the best before the last round
    R[range(T - 1), range(T - 1)] = 0.5 + np.arange(T - 1) / 10
    report = report_of(R)
    lost = report["CN_Forgetting"] * (T - 1) / T
    assert report["CN_New_ACC"] - report["CN_Avg_ACC"] == pytest.approx(lost, abs=1e-12)


@given(cases(score=SCORE, square=True, references=False))
def test_the_challenge_score_is_the_mean_of_clears_four(R):
    assume(len(R) > 1)
    report = report_of(R)
    four = ("in_domain", "next_domain", "backward_transfer", "forward_transfer")
    assert report["CLEAR_challenge_score"] == pytest.approx(
        sum(report[f"CLEAR_{name}"] for name in four) / 4, abs=1e-12
    )


def test_what_needs_two_rounds_is_undefined_after_one_and_never_zero():
    report = report_of([[0.7]], untrained=[0.1], joint=[0.8], single_task=[0.6])
    undefined = {name for name, number in report.items() if number is None}
    assert {"BWT", "GEM_BWT", "FM", "FM_literal", "FWT", "FWT_survey", "CN_Forgetting"} <= undefined
    assert {"CIA_forgetting_diag", "CLEAR_next_domain", "CLEAR_challenge_score", "CN_FOR_signed"} <= undefined
    assert (report["AA"], report["AIA"], report["CLEAR_in_domain"]) == (0.7, 0.7, 0.7)
    assert report["IM"] == pytest.approx(0.1)


def test_a_metric_without_its_reference_run_is_undefined():
    report = report_of([[0.9, 0.3], [0.8, 0.88]])
    assert [report[name] for name in ("FWT", "IM", "FWT_survey", "Ianvs_BWT", "Ianvs_FWT")] == [None] * 5
    assert report["BWT"] == pytest.approx(-0.1)


def test_bwt_does_not_read_what_comes_before_a_test_sets_round():
    R = [[0.9, NAN, NAN], [NAN, 0.88, NAN], [0.7, 0.82, 0.86]]
    assert value("BWT", R) == pytest.approx((0.7 - 0.9 + 0.82 - 0.88) / 2)
    assert math.isnan(value("FM_restricted", R))  # reads the missing score of round 2


def test_streaming_clear_needs_only_what_is_above_the_diagonal():
    report = report_of([[NAN, 0.3, 0.2], [NAN, NAN, 0.4], [NAN, NAN, NAN]])
    assert report["CLEAR_next_domain"] == pytest.approx(0.35)
    assert report["CLEAR_forward_transfer"] == pytest.approx(0.3)
    assert report["CLEAR_in_domain"] is None


def test_streaming_clear_may_have_a_test_set_of_what_comes_after_the_last_round():
    report = report_of([[NAN, 0.3, 0.2, 0.1], [NAN, NAN, 0.4, 0.2], [NAN, NAN, NAN, 0.6]])
    assert report["CLEAR_next_domain"] == pytest.approx((0.3 + 0.4 + 0.6) / 3)
    assert report["CLEAR_forward_transfer"] == pytest.approx((0.3 + 0.2 + 0.1 + 0.4 + 0.2 + 0.6) / 6)
    undefined = ("CLEAR_in_domain", "CLEAR_backward_transfer", "CLEAR_challenge_score", "AA", "BWT", "DR_FWT")
    assert [report[name] for name in undefined] == [None] * 6
    assert report_of([[0.1, 0.2, 0.3]])["CLEAR_next_domain"] is None  # two test sets too many belong to no round


def test_with_one_shared_test_set_average_accuracy_is_the_curve_and_transfer_is_undefined():
    report = report_of([[0.2], [0.4], [0.9]], untrained=[0.1])
    assert report["by_round"]["AA"] == [0.2, 0.4, 0.9]
    assert report["by_round"]["AIA"] == pytest.approx([0.2, 0.3, 0.5])
    assert (report["AA"], report["BWT"], report["FWT"], report["FM"], report["CN_New_ACC"]) == (0.9, *[None] * 4)
    assert report["by_round"]["BWT"] == [None] * 3


def test_a_reference_of_another_length_is_refused_instead_of_broadcast():
    assert errors_of(value, "FWT", [[0.9, 0.3], [0.8, 0.88]], untrained=[0.1]) == [("invalid-value", "")]


def test_a_report_can_be_written_as_strict_json():
    json.dumps(report_of([[0.9, NAN], [0.8, 0.88]]), allow_nan=False)
