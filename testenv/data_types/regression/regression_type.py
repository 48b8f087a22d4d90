"""The data type of numbers to be estimated: labels and answers are floats (N,) or (N, D)."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import InvalidValue, PluginError
from ianvs.exam.data.cells import number_of
from ianvs.exam.data.parts import Part
from ianvs.exam.data_types import DataType, one_for_each

Numbers = NDArray[np.float64]


class Regression(DataType):
    """Numbers to be estimated: labels are float64, (N,) or (N, D), without classes."""

    name: ClassVar[str] = "regression"

    def read(self, given: Any, classes: tuple[str, ...] | None) -> tuple[Numbers, tuple[str, ...]]:
        if classes:
            raise InvalidValue(
                "numbers to be estimated have no classes. Take the names of classes out.", "invalid-record"
            )
        try:
            array = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
            if array.dtype == object:  # a column of numbers or of lists of them
                array = np.array([number_of(item) if isinstance(item, str) else item for item in array.tolist()])
            elif array.dtype.kind == "U":
                array = np.vectorize(number_of, otypes=[np.float64])(array)
            numbers = array.astype(np.float64)
        except (ValueError, TypeError):
            raise InvalidValue(_first_odd(given), "invalid-record") from None
        if numbers.ndim == 2 and numbers.shape[1] == 1:
            numbers = numbers[:, 0]
        if numbers.ndim not in (1, 2):
            raise InvalidValue(
                f"the labels have the shape {numbers.shape}; expected numbers (N,) or (N, D).", "invalid-record"
            )
        if (wrong := _first_not_finite(numbers)) is not None:
            n, value = wrong
            raise InvalidValue(
                f"sample {n} has {value}; expected finite numbers. Take the sample out, or fill the gap.",
                "invalid-record",
            )
        return numbers, ()

    def checker(self, part: Part, classes: int, *, unseen: bool = False) -> Callable[[object, str], Any]:
        shape = (len(part.positions), *part.samples.y.shape[1:])
        return lambda answers, where: _checked(answers, shape, where)

    def misfit(self, metric: str, error: Exception) -> str:
        return f"{super().misfit(metric, error)} For numbers there are MSE, RMSE, MAE and R2."


def _checked(answers: object, shape: tuple[int, ...], where: str) -> Numbers:
    array = one_for_each(answers, shape[0], where)
    if array.shape == (*shape, 1):
        array = array[..., 0]
    if array.shape != shape or array.dtype.kind not in "biuf":
        raise PluginError(
            f"{where} returned {array.dtype} of shape {array.shape}; expected numbers of shape {shape}.",
            code="invalid-result",
        )
    numbers = array.astype(np.float64)
    if (wrong := _first_not_finite(numbers)) is not None:
        raise PluginError(
            f"{where} returned {wrong[1]} for sample {wrong[0]}; expected finite numbers.", code="invalid-result"
        )
    return numbers


def _first_not_finite(numbers: Numbers) -> tuple[int, float] | None:
    """Return (sample, value) of the first number that is not finite; None if there is none."""
    wrong = np.argwhere(~np.isfinite(numbers))
    return (int(wrong[0, 0]), float(numbers[tuple(wrong[0])])) if len(wrong) else None


def _first_odd(given: Any) -> str:
    """Return the reason why labels are not an array of numbers."""
    shapes = set()
    for n, label in enumerate(given if hasattr(given, "__iter__") else [given]):
        try:
            shapes.add(np.asarray(number_of(label) if isinstance(label, str) else label, dtype=np.float64).shape)
        except (ValueError, TypeError):
            return f"sample {n} has {label!r:.60}; expected a number, or a list of numbers."
        if len(shapes) > 1:
            return f"sample {n} has {label!r:.60}, another count of numbers than the samples before it."
    return "the labels are no array of numbers"
