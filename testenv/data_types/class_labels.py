"""Samples with one class each."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import PluginError
from ianvs.exam.data.parts import Part
from ianvs.exam.data_types import DataType, one_for_each


class Classification(DataType):
    name: ClassVar[str] = "classification"
    probes: ClassVar[bool] = True

    def checker(self, part: Part, classes: int, *, unseen: bool = False) -> Callable[[object, str], Any]:
        count = len(part.positions)
        lowest = -1 if unseen else 0
        return lambda answers, where: _class_indices(one_for_each(answers, count, where), classes, lowest, where)

    def sample_scores(self, labels: NDArray[Any], answers: Any) -> NDArray[np.float64]:
        """Accuracy: 1 for the right class."""
        return np.asarray(np.asarray(labels) == np.asarray(answers), dtype=np.float64)

    def answer_names(self, answers: Any) -> list[Any] | None:
        named: list[Any] = np.asarray(answers).tolist()
        return named

    def in_words(self, label: Any, classes: tuple[str, ...]) -> str:
        return classes[int(label)]


def _class_indices(array: NDArray[Any], classes: int, lowest: int, where: str) -> NDArray[Any]:
    """Return the class indices after a check. lowest: 0, or -1 if -1 is a valid answer."""
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 2:
        raise PluginError(
            f"{where} returned scores {array.shape}: return class indices, scores.argmax(axis=1).",
            code="invalid-result",
        )
    if array.dtype.kind == "b" and classes > 2:  # booleans: the author probably returned a comparison by mistake
        raise PluginError(
            f"{where} returned booleans, and the exam has {classes} classes: return class indices.",
            code="invalid-result",
        )
    if array.dtype.kind not in "iub":
        whole = array.dtype.kind == "f" and bool(np.all(np.isfinite(array)) and np.all(array == np.round(array)))
        if not whole:
            described = f"{array.dtype} values such as {array.ravel()[:1].tolist()[0]!r}"
            raise PluginError(
                f"{where} returned {described}: return class indices, 0 to {classes - 1}.", code="invalid-result"
            )
    array = array.astype(np.int64)
    if array.size and (array.min() < lowest or array.max() >= classes):
        wrong = array.min() if array.min() < lowest else array.max()
        hint = " -1 is an answer in open-world exams alone." if wrong == -1 else ""
        raise PluginError(
            f"{where} returned class index {wrong}; the exam has classes 0 to {classes - 1}.{hint}",
            code="invalid-result",
        )
    if lowest < 0:
        return array.astype(np.min_scalar_type(-max(classes, 1)))
    return array.astype(np.min_scalar_type(classes - 1) if classes > 1 else np.uint8)
