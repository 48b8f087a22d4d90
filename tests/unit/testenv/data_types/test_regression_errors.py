"""Errors of answers in numbers are scikit-learn's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.testenv.data_types.regression import regression_metrics
from ianvs.testenv.metrics.all_metrics import defined_in
from tests.errors import errors_of

BY_NAME = {metric.name: metric for metric in defined_in(regression_metrics)}

ORACLES = {
    "MSE": metrics.mean_squared_error,
    "RMSE": metrics.root_mean_squared_error,
    "MAE": metrics.mean_absolute_error,
    "R2": metrics.r2_score,
}


def score(name, truth, answered):
    return BY_NAME[name].function(EvaluationRecord(classes=(), y_true=truth, y_pred=answered))


@pytest.mark.parametrize("name", ORACLES)
@given(st.integers(2, 30), st.sampled_from([None, 1, 3]), st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 1.0, 1e6]))
def test_random_answers_score_as_those_of_scikit_learn(name, count, width, seed, scale):
    draws = np.random.default_rng(seed)
    shape = (count,) if width is None else (count, width)
    truth, answered = draws.normal(size=shape) * scale, draws.normal(size=shape) * scale
    found = score(name, truth, answered)
    assert found == pytest.approx(ORACLES[name](truth, answered), rel=1e-9)


def test_values_by_hand():
    truth, answered = np.array([[0.0, 10.0], [2.0, 30.0]]), np.array([[1.0, 10.0], [2.0, 26.0]])
    assert score("MSE", truth, answered) == pytest.approx((0.5 + 8) / 2)
    assert score("RMSE", truth, answered) == pytest.approx((math.sqrt(0.5) + math.sqrt(8)) / 2)
    assert score("MAE", truth, answered) == pytest.approx((0.5 + 2) / 2)
    assert score("R2", truth, answered) == pytest.approx(((1 - 0.5 / 1) + (1 - 8 / 100)) / 2)


def test_a_better_answer_moves_each_score_in_its_direction():
    truth = np.arange(5.0)
    for name, metric in BY_NAME.items():
        near, far = score(name, truth, truth + 0.1), score(name, truth, truth + 1)
        assert (near > far) is metric.higher_is_better


@pytest.mark.parametrize("truth", [[1.0], [2.0, 2.0, 2.0], [[1.0, 5.0], [2.0, 5.0]]])
def test_r2_is_unknown_where_there_is_nothing_to_explain(truth):
    assert math.isnan(score("R2", np.array(truth), np.array(truth)))
    assert score("MSE", np.array(truth), np.array(truth)) == 0


@pytest.mark.parametrize("name", ORACLES)
def test_no_sample_has_no_score(name):
    assert math.isnan(score(name, np.zeros(0), np.zeros(0)))
    assert math.isnan(score(name, np.zeros((0, 2)), np.zeros((0, 2))))


@pytest.mark.parametrize(("truth", "answered"), [((3,), (3, 1)), ((3,), (2,)), ((2, 2, 2), (2, 2, 2))])
def test_answers_of_another_shape_are_refused(truth, answered):
    assert errors_of(score, "MAE", np.zeros(truth), np.zeros(answered)) == [("unfit-metric", "")]
