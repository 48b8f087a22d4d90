"""Validates and compares the predictions that a paradigm returns in one call."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ianvs.base.errors import PluginError
from ianvs.exam.data.dataset import Samples
from ianvs.exam.data.parts import Column, Part
from ianvs.exam.data_types import DataType
from ianvs.exam.paradigms import Predictions
from ianvs.exam.scenarios.views import TestView

Asking = Callable[[TestView], object]
"""A method of a paradigm, bound to all arguments but the data."""


def validated_predictions(
    kind: DataType,
    classes: int,
    x: Column,
    name: str,
    label_shape: tuple[int, ...],
    ask: Asking,
    caller: Callable[[], str],
    method: str,
    *,
    unseen: bool,
) -> Predictions:
    """Return the validated predictions that `ask` returns for `x`. Raises PluginError.

    Args:
        kind: The data type.
        classes: Number of classes of the exam.
        x: The samples.
        name: Their name in errors.
        label_shape: Shape of a label.
        ask: The paradigm's method, bound to its other arguments.
        caller: Returns the module's method after the call, for errors.
        method: The paradigm's method, for errors.
        unseen: Whether -1 is valid.
    """
    count = len(x)
    # Zeros that are never written take no memory.
    samples = np.zeros(count, np.uint8) if x.lazy else x.gather()
    asked_for = Samples(samples, np.zeros((count, *label_shape), np.uint8), np.empty(0, str))
    check = kind.checker(Part(asked_for, np.arange(count)), classes, unseen=unseen)
    data = TestView(x, name=name)
    output = ask(data)
    data.close()
    if not isinstance(output, Predictions):
        raise PluginError(
            f"{method} returned {type(output).__name__}: return Predictions(labels).", code="invalid-result"
        )
    extras = {extra: np.asarray(values) for extra, values in output.extras.items()}
    for extra, array in extras.items():
        if not extra.isidentifier() or array.dtype == object or array.shape[:1] != (count,):
            form = f"{array.dtype} {array.shape}"
            raise PluginError(
                f"the extra '{extra}' of predict() is {form}: return a number for each sample.", code="invalid-result"
            )
        if array.dtype.kind in "fc" and np.isnan(array).any():
            raise PluginError(
                f"the extra '{extra}' of predict() has NaN in it, which can't be compared: return numbers.",
                code="invalid-result",
            )
    checked: Any = check(output.labels, caller())
    return Predictions(checked.cpu().numpy() if hasattr(checked, "cpu") else checked, extras)


def is_equal(value: Any, other: Any) -> bool:
    """Return whether two predictions, or two collections of them, are equal: numbers, strings, or containers
    of these.
    """
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(is_equal(value[name], other[name]) for name in value)
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(map(is_equal, value, other))
    return bool(np.array_equal(value, other))


def select_rows(answers: Any, rows: Any) -> Any:
    """Return the validated predictions at `rows`, (n,) positions."""
    return answers[np.asarray(rows)] if isinstance(answers, np.ndarray) else [answers[row] for row in rows]
