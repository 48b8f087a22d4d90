"""The data type of texts.

In memory they are objects, in the store compressed: numpy's own text arrays would make every text as long as the
longest.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import Predictions
from ianvs.exam.data.dataset import Samples
from ianvs.exam.data.parts import Part
from ianvs.exam.data_types import LONGEST_ANSWER, DataType
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.metrics.packed_replies import Replies, pack_replies


class Texts(DataType):
    """Labels and answers are kept as texts, whatever a file or a learner gave: 3 and "3" are one answer."""

    name: ClassVar[str] = "text"

    def checker(self, part: Part, classes: int, *, unseen: bool = False) -> Callable[[object, str], Any]:
        check = super().checker(part, classes, unseen=unseen)

        def checked(answers: object, where: str) -> NDArray[np.object_]:
            only_texts = isinstance(answers, list | tuple) and all(isinstance(answer, str) for answer in answers)
            return _texts(check(np.array(answers, dtype=object) if only_texts else answers, where))

        return checked

    def shortened(self, answers: NDArray[np.object_]) -> tuple[NDArray[np.object_], int]:
        cut = sum(len(answer) > LONGEST_ANSWER for answer in answers)
        return _objects([answer[:LONGEST_ANSWER] for answer in answers]) if cut else answers, cut

    def stored_predictions(self, answers: Iterable[tuple[Part, Any]], classes: int) -> Predictions:
        return Predictions(_packed(text for _, piece in answers for text in piece))

    def truth(self, samples: Samples, positions: NDArray[np.int64]) -> NDArray[Any]:
        return _packed(samples.y[positions])

    def sample_scores(self, labels: NDArray[Any], answers: Any) -> NDArray[np.float64]:
        """Return the exact match of each sample: 1 for the same text."""
        both = zip(labels.tolist(), answers, strict=True)
        return np.array([float(str(label) == str(answer)) for label, answer in both])

    def answer_names(self, answers: Any) -> list[Any] | None:
        return [str(answer) for answer in answers]

    def record(self, about: EvaluationRecord, truth: Any, predictions: Predictions) -> EvaluationRecord:
        return replace(about, y_true=_unpacked(truth), y_pred=_unpacked(predictions.labels))


def _packed(texts: Iterable[object]) -> NDArray[np.uint8]:
    return pack_replies([str(text)] for text in texts)


def _unpacked(stored: NDArray[Any]) -> NDArray[np.object_]:
    """Return texts (N,). stored: the result of `_packed`, or the texts themselves, as in ianvs up to 0.2."""
    if stored.dtype.kind == "U":
        return stored.astype(object)
    return _objects([text for [text] in Replies(stored)])


def _texts(values: NDArray[Any]) -> NDArray[np.object_]:
    return _objects([str(value) for value in values.tolist()])


def _objects(texts: list[str | None]) -> NDArray[np.object_]:
    return np.array(texts, dtype=object)
