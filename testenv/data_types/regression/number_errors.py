"""How far answers in numbers are off, over N samples with D numbers each.

truth, answered: (N,) or (N, D) finite floats of one shape. Each of the D is scored on its own, and their mean counts
(scikit-learn's `uniform_average`). Without a sample every score is nan. Raises ValueError for other shapes.
"""

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.floating]
HIGHER_IS_BETTER = {"MSE": False, "RMSE": False, "MAE": False, "R2": True}


def MSE(truth: Numbers, answered: Numbers) -> float:  # noqa: N802 - as the field writes it
    """Mean squared error, in the square of the label's unit."""
    return _mean(_squares(truth, answered))


def RMSE(truth: Numbers, answered: Numbers) -> float:  # noqa: N802
    """Root of the mean squared error, in the label's unit; of several numbers the mean of their roots."""
    return _mean(np.sqrt(_squares(truth, answered)))


def MAE(truth: Numbers, answered: Numbers) -> float:  # noqa: N802
    """Mean absolute error, in the label's unit."""
    return _mean(_mean_of_samples(np.abs(_off(truth, answered))))


def R2(truth: Numbers, answered: Numbers) -> float:  # noqa: N802
    """Coefficient of determination, 1 - (mean squared error) / (variance of the truth); 1 is perfect, 0 its mean.

    nan with fewer than two samples, and where one of the D is the same in all samples: there is nothing to explain.
    """
    squares = _squares(truth, answered)
    if len(truth) < 2 or (np.ptp(_columns(truth), axis=0) == 0).any():
        return float("nan")
    return _mean(1 - squares / _mean_of_samples((_columns(truth) - _mean_of_samples(_columns(truth))) ** 2))


def _columns(values: Numbers) -> NDArray[np.float64]:
    """(N, D)"""
    held = np.asarray(values, np.float64)
    return held[:, None] if held.ndim == 1 else held


def _off(truth: Numbers, answered: Numbers) -> NDArray[np.float64]:
    if np.shape(truth) != np.shape(answered) or np.ndim(truth) not in (1, 2):
        message = f"answers are {np.shape(answered)}, the truth is {np.shape(truth)}; expected (N,) or (N, D) of both."
        raise ValueError(message)
    return _columns(answered) - _columns(truth)


def _squares(truth: Numbers, answered: Numbers) -> NDArray[np.float64]:
    """(D,) mean squared errors."""
    return _mean_of_samples(_off(truth, answered) ** 2)


def _mean_of_samples(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values.mean(axis=0) if len(values) else np.full(values.shape[1], np.nan)


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if values.size else float("nan")
