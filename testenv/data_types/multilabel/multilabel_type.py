"""The data type of samples with several labels each, or none: labels (N, C) of 0 and 1, answers (N, C) scores."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import InvalidValue, PluginError, closest, one_line
from ianvs.base.types import Predictions
from ianvs.exam.data.arrays import plain_array
from ianvs.exam.data.cells import CLASS_INDEX
from ianvs.exam.data.dataset import Samples
from ianvs.exam.data.label_cells import split_labels
from ianvs.exam.data.parts import Part
from ianvs.exam.data_types import DataType, one_for_each
from ianvs.exam.metrics.metric import EvaluationRecord

MultiHot = NDArray[np.uint8]
_FORMS = (
    "expected an array (N, C) of 0 and 1, or for each sample a list of names or of class indices, or a text with ';' "
    "or the like between the names"
)


class Multilabel(DataType):
    """Samples with several labels each: uint8 (N, C) of 0 and 1.

    True labels are stored a bit each. A sample with -inf is never answered with the class.
    """

    name: ClassVar[str] = "multilabel"
    several_labels: ClassVar[bool] = True

    def read(self, given: Any, classes: tuple[str, ...] | None) -> tuple[MultiHot, tuple[str, ...]]:
        given = plain_array(given) if hasattr(given, "detach") else given
        if isinstance(given, str) or not hasattr(given, "__len__"):
            raise InvalidValue(f"the labels are {given!r:.60}; {_FORMS}.", "invalid-record")
        if getattr(given, "ndim", 1) != 1 and given.dtype.kind in "biuf":
            return _of_rows(given, classes)
        if any(isinstance(label, str) for label in given):
            given = split_labels(given, None, classes).labels
        sets = [_set_of(label, n) for n, label in enumerate(given)]
        width = len(sets[0] if classes is None else classes) if sets else 0
        if width and all(len(labels) == width and all(map(_is_bit, labels)) for labels in sets):
            if width > 2:  # a list can't have so many different indices
                return _of_rows(np.array(sets), classes)
            raise InvalidValue(
                f"the labels are lists of {width} numbers 0 or 1, which could be rows for {width} classes or class "
                "indices. Write names, or for rows np.array(y, dtype=np.uint8).",
                "invalid-record",
            )
        names = classes or _names_in(sets)
        position = {name: c for c, name in enumerate(names)}
        matrix = np.zeros((len(sets), len(names)), dtype=np.uint8)
        for n, labels in enumerate(sets):
            matrix[n, [_index(label, position, n) for label in labels]] = 1
        return matrix, names

    def membership(self, labels: NDArray[Any], classes: int) -> NDArray[np.bool_]:
        return labels.astype(bool)

    def limited(self, labels: NDArray[Any], classes: tuple[int, ...], background: int | None = None) -> NDArray[Any]:
        return labels * np.isin(np.arange(labels.shape[1]), classes).astype(np.uint8)

    def checker(self, part: Part, classes: int, *, unseen: bool = False) -> Callable[[object, str], Any]:
        count = len(part.positions)
        return lambda answers, where: checked_scores(answers, count, classes, where)

    def perfect(self, labels: NDArray[Any]) -> NDArray[np.float32]:
        return (0.25 + 0.5 * labels).astype(np.float32)  # not class indices, so scores over them are refused

    def truth(self, samples: Samples, positions: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return labels (N, ceil(C / 8)): eight classes in a byte."""
        return np.packbits(samples.y[positions], axis=1)

    def record(self, about: EvaluationRecord, truth: Any, predictions: Predictions) -> EvaluationRecord:
        """Return the record; classes that were not taught by then count as never answered."""
        scores = predictions.labels
        if about.seen is not None:
            scores = np.where(np.isin(np.arange(len(about.classes)), about.seen), scores, -np.inf)
        return replace(about, y_true=np.unpackbits(truth, axis=1, count=len(about.classes)), y_pred=scores)

    def misfit(self, metric: str, error: Exception) -> str:
        advice = "For samples with several labels there are mAP, CF1, OF1, example_f1 and others: `ianvs metrics`."
        return f"{super().misfit(metric, error)} {advice}"


def checked_scores(answers: object, samples: int, classes: int, where: str) -> NDArray[np.floating[Any]]:
    """Return scores (N, C), in float32 or float64 as given; 0 and 1 are valid scores.

    Raises PluginError for another shape, and for nan and +inf.
    """
    expected = f"expected ({samples}, {classes}) scores, higher being likelier, in the order of samples and classes"
    scores = one_for_each(answers, samples, where, expected)
    if scores.shape != (samples, classes) or scores.dtype.kind not in "biuf":
        raise PluginError(
            f"{where} returned {scores.dtype} of shape {scores.shape}; {expected}.", code="invalid-result"
        )
    exact = np.result_type(scores.dtype, np.float32) == np.float32
    scores = scores.astype(np.float32 if exact else np.float64, copy=False)
    wrong = np.argwhere(np.isnan(scores) | (scores == np.inf))
    if len(wrong):
        n, c = wrong[0].tolist()
        raise PluginError(
            f"{where} returned {scores[n, c]} for class {c} of sample {n}; scores are finite, or -inf for what is "
            "never answered.",
            code="invalid-result",
        )
    return scores


def _of_rows(labels: NDArray[Any], classes: Sequence[str] | None) -> tuple[MultiHot, tuple[str, ...]]:
    if labels.ndim != 2:
        raise InvalidValue(f"the labels have the shape {labels.shape}; {_FORMS}.", "invalid-record")
    names = tuple(map(str, range(labels.shape[1]))) if classes is None else tuple(classes)
    if labels.shape[1] != len(names):
        message = f"the labels have {labels.shape[1]} columns for {len(names)} classes ({one_line(names)})"
        raise InvalidValue(f"{message}; expected a column for each class, in the order of `classes`.", "invalid-record")
    if np.isin(labels, (-1, 1)).all():  # as in CelebA
        labels = labels > 0
    wrong = np.argwhere((labels != 0) & (labels != 1))
    if len(wrong):
        n, c = wrong[0].tolist()
        message = f"sample {n} has {labels[n, c]} for '{names[c]}'"
        raise InvalidValue(f"{message}; expected 1 where the sample has the label, else 0.", "invalid-record")
    return labels.astype(np.uint8), names


def _set_of(label: Any, n: int) -> list[Any]:
    if not isinstance(label, Iterable) or getattr(label, "ndim", 1) == 0:
        shown = label.item() if hasattr(label, "item") else label
        raise InvalidValue(
            f"sample {n} has {shown!r:.60}; expected a list: [{shown!r:.60}], or [] for no label.", "invalid-record"
        )
    return plain_array(label).tolist() if hasattr(label, "ndim") else list(label)


def _is_bit(label: Any) -> bool:
    return isinstance(label, Integral | np.bool_) and label in (0, 1)


def _names_in(sets: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    """Return the names, sorted; for class indices, all from 0 to the highest."""
    distinct = {label for labels in sets for label in labels}
    if any(isinstance(label, str) for label in distinct):
        names = {str(label) for label in distinct}
        return tuple(sorted(names, key=int if all(map(CLASS_INDEX.fullmatch, names)) else None))
    return tuple(
        map(str, range(max((int(label) for label in distinct if isinstance(label, Integral)), default=-1) + 1))
    )


def _index(label: Any, position: dict[str, int], n: int) -> int:
    """Return the class index of a name, or of an index, which may be text in a file."""
    if isinstance(label, str) and label in position:
        return position[label]
    index = int(label) if isinstance(label, str) and CLASS_INDEX.fullmatch(label) else label
    if isinstance(index, str):
        choices = f"There are: {one_line(list(position))}."
        raise InvalidValue(
            f"sample {n} has '{label}', which is no class.{closest(label, position)} {choices}", "invalid-record"
        )
    if isinstance(index, bool) or not isinstance(index, Integral) or not 0 <= int(index) < len(position):
        message = f"sample {n} has {label!r:.60}; expected names, or class indices from 0 to {len(position) - 1}"
        raise InvalidValue(f"{message}: {one_line(list(position))}.", "invalid-record")
    return int(index)
