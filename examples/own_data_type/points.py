"""A data type: points in images, as many as there are. One class says what its labels and answers are."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import PluginError
from ianvs.base.types import Predictions
from ianvs.exam.data.dataset import Samples
from ianvs.exam.data.parts import Part
from ianvs.exam.data_types import DataType
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.metrics.ragged import Ragged, packed_ragged

FIELDS = {"labels": np.empty(0, np.int64), "xy": np.empty((0, 2))}


class Points(DataType):
    """A label is {"xy": (n, 2) pixels, "labels": (n,) class indices}; so is an answer. n may be 0."""

    name: ClassVar[str] = "Points"

    def read(self, given: Any, classes: tuple[str, ...] | None) -> tuple[NDArray[Any], tuple[str, ...]]:
        if classes is None:
            raise ValueError("name the classes: return them as `classes`")
        return column([checked(one, len(classes), f"sample {n}") for n, one in enumerate(given)]), classes

    def membership(self, labels: NDArray[Any], classes: int) -> NDArray[np.bool_]:
        found = np.zeros((len(labels), classes), bool)
        for n, one in enumerate(labels):
            found[n, one["labels"]] = True
        return found

    def limited(self, labels: NDArray[Any], classes: tuple[int, ...]) -> NDArray[Any]:
        return column([of_classes(one, classes) for one in labels])

    def training_labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        return column([{name: as_in(one[name], FIELDS[name]) for name in FIELDS} for one in labels])

    def checker(self, asked: Part, classes: int, *, unseen: bool = False) -> Callable[[object, str], Any]:
        count = len(asked.positions)

        def check(found: Any, where: str) -> list[dict[str, Any]]:
            if not hasattr(found, "__len__") or len(found) != count:
                raise PluginError(f"{where} returned no list of {count} mappings, one for each picture.")
            try:
                return [checked(one, classes, f"sample {n}") for n, one in enumerate(found)]
            except ValueError as error:
                raise PluginError(f"{where}: {error}.") from None

        return check

    def stored_predictions(self, answers: Iterable[tuple[Part, Any]], classes: int) -> Predictions:
        return Predictions(packed_ragged([one for _, said in answers for one in said], FIELDS))

    def truth(self, samples: Samples, positions: NDArray[np.int64]) -> NDArray[Any]:
        return packed_ragged(list(samples.y[positions]), FIELDS)

    def record(self, about: EvaluationRecord, truth: Any, said: Predictions) -> EvaluationRecord:
        return replace(about, y_true=Ragged(truth), y_pred=Ragged(said.labels))


def checked(one: Any, classes: int, where: str) -> dict[str, Any]:
    """As lists, which JSON can hold. Raises ValueError in words that name the sample."""
    if not isinstance(one, dict) or set(one) != set(FIELDS):
        raise ValueError(f"{where} is no mapping with 'xy' and 'labels'")
    xy, labels = np.asarray(one["xy"], float).reshape(-1, 2), np.asarray(one["labels"], int).reshape(-1)
    if len(xy) != len(labels) or not np.isfinite(xy).all():
        raise ValueError(f"{where} has {len(labels)} labels and {len(xy)} finite points")
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise ValueError(f"{where} has a label that is none of 0 to {classes - 1}")
    return {"xy": xy.tolist(), "labels": labels.tolist()}


def as_in(values: Any, field: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(values, field.dtype).reshape(-1, *field.shape[1:])


def of_classes(one: dict[str, Any], classes: tuple[int, ...]) -> dict[str, Any]:
    kept = np.isin(one["labels"], classes)
    return {name: one[name][kept] for name in FIELDS}


def column(values: list[Any]) -> NDArray[Any]:
    found = np.empty(len(values), object)
    found[:] = values
    return found
