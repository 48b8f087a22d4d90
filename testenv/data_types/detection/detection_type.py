"""The data type of images with boxes."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import InvalidValue
from ianvs.base.types import Predictions
from ianvs.exam.data.dataset import Samples
from ianvs.exam.data.listing import column
from ianvs.exam.data.parts import Part
from ianvs.exam.data_types import DataType
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.metrics.ragged import Ragged, packed_ragged
from ianvs.testenv.data_types.detection.box_checks import by_picture, checked_answers, checked_labels
from ianvs.testenv.data_types.detection.box_overlaps import ANSWER, TRUTH, Boxes, box_areas
from ianvs.testenv.data_types.detection.box_places import box_warnings
from ianvs.testenv.data_types.detection.box_scenes import with_boxes

SHOWN = 3  # images of each test set in reports


class Detection(DataType):
    """Pictures with boxes: mappings of `boxes`, `labels` and more.

    boxes: (n, 4), x1 y1 x2 y2 in pixels. labels: (n,) class indices. A label may have `iscrowd`, `difficult` and `area`
    (n,); an answer has `scores` in place of these.
    """

    name: ClassVar[str] = "detection"
    batch_limit: ClassVar[int | None] = 16
    shows: ClassVar[str] = "boxes"

    def read(self, given: Any, classes: tuple[str, ...] | None) -> tuple[NDArray[Any], tuple[str, ...]]:
        if isinstance(given, str) or not hasattr(given, "__len__"):
            raise InvalidValue(
                f"it is {type(given).__name__}; expected a list with a mapping of boxes and labels of each",
                "invalid-record",
            )
        labels = checked_labels(given, None if classes is None else len(classes))
        if classes is None:
            highest = max((index for label in labels for index in label["labels"]), default=None)
            if highest is None:
                raise InvalidValue(
                    "there is no box in any image. Name the `classes`, or look for the boxes.", "invalid-record"
                )
            classes = tuple(map(str, range(highest + 1)))
        return column(labels), classes

    def membership(self, labels: NDArray[Any], classes: int) -> NDArray[np.bool_]:
        members = np.zeros((len(labels), classes), dtype=bool)
        for row, label in zip(members, labels, strict=True):
            row[label["labels"]] = True
        return members

    def limited(self, labels: NDArray[Any], classes: tuple[int, ...], background: int | None = None) -> NDArray[Any]:
        offsets, columns = _flat(labels)
        taught = np.isin(columns["labels"], classes)
        offsets = np.concatenate([[0], np.cumsum(taught)])[offsets]
        return column(by_picture(offsets, {key: values[taught] for key, values in columns.items()}))

    def training_labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        return column(by_picture(*_flat(labels)))

    def resized(self, labels: NDArray[Any], factors: NDArray[np.float64]) -> NDArray[Any]:
        moved = []
        for label, (down, across) in zip(labels, factors.tolist(), strict=True):
            boxes = [[x1 * across, y1 * down, x2 * across, y2 * down] for x1, y1, x2, y2 in label["boxes"]]
            areas = {"area": [area * down * across for area in label["area"]]} if "area" in label else {}
            moved.append({**label, "boxes": boxes, **areas})
        return column(moved)

    def warnings(self, labels: NDArray[Any], sizes: NDArray[np.int64]) -> Iterable[tuple[int, str]]:
        # The message names the sample: values returned by a function have no line numbers.
        return [(0, warning.message) for warning in box_warnings(labels, sizes, lambda picture, box: None)]

    def perfect(self, labels: NDArray[Any]) -> Any:
        return [
            {"boxes": label["boxes"], "labels": label["labels"], "scores": [1.0] * len(label["labels"])}
            for label in labels
        ]

    def checker(self, part: Part, classes: int, *, unseen: bool = False) -> Callable[[object, str], Any]:
        count = len(part.positions)
        return lambda answers, where: checked_answers(answers, count, classes, where)

    def stored_predictions(self, answers: Iterable[tuple[Part, Any]], classes: int) -> Predictions:
        return Predictions(packed_ragged([boxes for _, piece in answers for boxes in piece], ANSWER))

    def truth(self, samples: Samples, positions: NDArray[np.int64]) -> NDArray[Any]:
        labels = [_arrays(label) for label in samples.y[positions]]
        return packed_ragged([{"area": box_areas(label["boxes"]), **label} for label in labels], TRUTH)

    def shown(self, part: Part) -> NDArray[Any] | None:
        first = part.samples.x[part.positions[:SHOWN]]
        if first.ndim != 4 or first.dtype != np.uint8:
            return None
        return first if part.transform is None else part.transform(first)

    def drawn(self, picture: NDArray[np.uint8], label: Any, palette: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return with_boxes(picture, label, palette)

    def record(self, about: EvaluationRecord, truth: Any, predictions: Predictions) -> EvaluationRecord:
        return replace(about, y_true=Ragged(truth), y_pred=Ragged(predictions.labels))

    def misfit(self, metric: str, error: Exception) -> str:
        if not any(text in str(error) for text in ("not class indices", "one label or text a sample")):
            return super().misfit(metric, error)
        return (
            f"metric '{metric}' is for samples with a class each; boxes are scored by AP, VOC_AP, f1_at_iou and others."
        )


def _flat(labels: NDArray[Any]) -> tuple[NDArray[np.int64], Boxes]:
    """Return (offsets (N+1,), the columns of all images)."""
    arrays = [_arrays(label) for label in labels]
    offsets = np.cumsum([0, *(len(boxes["labels"]) for boxes in arrays)], dtype=np.int64)
    keys = arrays[0] if arrays else ("boxes", "labels")
    return offsets, {key: np.concatenate([TRUTH[key], *(boxes[key] for boxes in arrays)]) for key in keys}


def _arrays(label: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the existing entries as arrays with the types of TRUTH and ANSWER."""
    fields = TRUTH | ANSWER
    return {
        key: np.asarray(values, fields[key].dtype).reshape(-1, *fields[key].shape[1:]) for key, values in label.items()
    }
