"""Errors of numeric answers, over N samples with D numbers each.

Each of the D numbers is scored separately, and the mean of the scores is reported (scikit-learn's `uniform_average`).
Without a sample every score is nan.
"""

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import InvalidValue
from ianvs.exam.metrics.definition import mean, score_metric
from ianvs.exam.metrics.metric import EvaluationRecord

Numbers = NDArray[np.float64]


@score_metric("MSE", formula="mean_d mean_n (y_nd - a_nd)^2", source="scikit-learn", higher_is_better=False)
def mean_squared_error(record: EvaluationRecord) -> float:
    """Mean squared error, in the square of the label's unit."""
    return mean(_by_column(_off(record) ** 2))


@score_metric("RMSE", formula="mean_d sqrt(mean_n (y_nd - a_nd)^2)", source="scikit-learn", higher_is_better=False)
def root_mean_squared_error(record: EvaluationRecord) -> float:
    """Root of the mean squared error, in the label's unit; of several numbers the mean of their roots."""
    return mean(np.sqrt(_by_column(_off(record) ** 2)))


@score_metric("MAE", formula="mean_d mean_n |y_nd - a_nd|", source="scikit-learn", higher_is_better=False)
def mean_absolute_error(record: EvaluationRecord) -> float:
    """Mean absolute error, in the label's unit."""
    return mean(_by_column(np.abs(_off(record))))


@score_metric("R2", formula="mean_d (1 - sum_n (y_nd - a_nd)^2 / sum_n (y_nd - mean y_d)^2)", source="scikit-learn")
def coefficient_of_determination(record: EvaluationRecord) -> float:
    """Coefficient of determination, 1 - (mean squared error) / (variance of the truth); 1 is perfect, 0 its mean.

    nan with fewer than two samples, and where one of the D is the same in all samples: there is nothing to explain.
    """
    squares, truth = _by_column(_off(record) ** 2), _columns(record.y_true)
    if len(truth) < 2 or (np.ptp(truth, axis=0) == 0).any():
        return float("nan")
    return mean(1 - squares / truth.var(axis=0))


def _off(record: EvaluationRecord) -> Numbers:
    """Return answers minus labels, (N, D). Raises ValueError unless both are numbers of one shape."""
    truth, answers = record.y_true, record.y_pred
    if not (isinstance(truth, np.ndarray) and isinstance(answers, np.ndarray) and truth.dtype.kind == "f"):
        raise InvalidValue("this metric is for numbers to be estimated (`data_type: regression`)", "unfit-metric")
    if truth.shape != answers.shape or truth.ndim not in (1, 2):
        message = f"answers are {answers.shape}, the truth is {truth.shape}; expected (N,) or (N, D) of both."
        raise InvalidValue(message, "unfit-metric")
    return _columns(answers) - _columns(truth)


def _columns(values: object) -> Numbers:
    """Return the values as (N, D)."""
    held = np.asarray(values, np.float64)
    return held[:, None] if held.ndim == 1 else held


def _by_column(values: Numbers) -> Numbers:
    """Return means over samples, (D,)."""
    return values.mean(axis=0) if len(values) else np.full(values.shape[1], np.nan)
