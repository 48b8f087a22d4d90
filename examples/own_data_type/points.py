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
        return column([checked(points, len(classes), f"sample {n}") for n, points in enumerate(given)]), classes

    def membership(self, labels: NDArray[Any], classes: int) -> NDArray[np.bool_]:
        present = np.zeros((len(labels), classes), bool)
        for n, points in enumerate(labels):
            present[n, points["labels"]] = True
        return present

    def limited(self, labels: NDArray[Any], classes: tuple[int, ...]) -> NDArray[Any]:
        return column([of_classes(points, classes) for points in labels])

    def training_labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        return column([{name: as_in(points[name], FIELDS[name]) for name in FIELDS} for points in labels])

    def checker(self, part: Part, classes: int, *, unseen: bool = False) -> Callable[[object, str], Any]:
        count = len(part.positions)

        def check(predictions: Any, where: str) -> list[dict[str, Any]]:
            if not hasattr(predictions, "__len__") or len(predictions) != count:
                raise PluginError(f"{where} returned no list of {count} mappings, one for each image.")
            try:
                return [checked(points, classes, f"sample {n}") for n, points in enumerate(predictions)]
            except ValueError as error:
                raise PluginError(f"{where}: {error}.") from None

        return check

    def stored_predictions(self, answers: Iterable[tuple[Part, Any]], classes: int) -> Predictions:
        return Predictions(packed_ragged([points for _, predictions in answers for points in predictions], FIELDS))

    def truth(self, samples: Samples, positions: NDArray[np.int64]) -> NDArray[Any]:
        return packed_ragged(list(samples.y[positions]), FIELDS)

    def record(self, about: EvaluationRecord, truth: Any, predictions: Predictions) -> EvaluationRecord:
        return replace(about, y_true=Ragged(truth), y_pred=Ragged(predictions.labels))


def checked(points: Any, classes: int, where: str) -> dict[str, Any]:
    """As lists, which JSON can hold. Raises ValueError in words that name the sample."""
    if not isinstance(points, dict) or set(points) != set(FIELDS):
        raise ValueError(f"{where} is no mapping with 'xy' and 'labels'")
    xy, labels = np.asarray(points["xy"], float).reshape(-1, 2), np.asarray(points["labels"], int).reshape(-1)
    if len(xy) != len(labels) or not np.isfinite(xy).all():
        raise ValueError(f"{where} has {len(labels)} labels and {len(xy)} finite points")
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise ValueError(f"{where} has a label that is none of 0 to {classes - 1}")
    return {"xy": xy.tolist(), "labels": labels.tolist()}


def as_in(values: Any, field: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(values, field.dtype).reshape(-1, *field.shape[1:])


def of_classes(points: dict[str, Any], classes: tuple[int, ...]) -> dict[str, Any]:
    rows = np.isin(points["labels"], classes)
    return {name: points[name][rows] for name in FIELDS}


def column(values: list[Any]) -> NDArray[Any]:
    objects = np.empty(len(values), object)
    objects[:] = values
    return objects
