"""The errors of numbers as metrics."""

from collections.abc import Callable

import numpy as np

from ianvs.exam.metrics.metric import EvaluationRecord, Metric
from ianvs.testenv.data_types.regression import number_errors as errors


def _metric(name: str, formula: str) -> Metric:
    score: Callable[..., float] = getattr(errors, name)

    def function(record: EvaluationRecord) -> float:
        truth, said = record.y_true, record.y_pred
        if not (isinstance(truth, np.ndarray) and isinstance(said, np.ndarray) and truth.dtype.kind == "f"):
            raise ValueError("this metric is for numbers to be estimated (`data_type: regression`)")
        return score(truth, said)

    function.__doc__ = score.__doc__
    summary = (score.__doc__ or "").partition("\n")[0]
    return Metric(
        name, "score", summary, errors.HIGHER_IS_BETTER[name], source="scikit-learn", formula=formula, function=function
    )


REGRESSION = (
    _metric("MSE", "mean_d mean_n (y_nd - a_nd)^2"),
    _metric("RMSE", "mean_d sqrt(mean_n (y_nd - a_nd)^2)"),
    _metric("MAE", "mean_d mean_n |y_nd - a_nd|"),
    _metric("R2", "mean_d (1 - sum_n (y_nd - a_nd)^2 / sum_n (y_nd - mean y_d)^2)"),
)
