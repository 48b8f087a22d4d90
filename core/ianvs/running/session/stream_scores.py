"""What single answers of a stream are worth, and what they and the right ones are called."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.config.spec import MetricSpec, PrequentialSpec
from ianvs.exam.data.dataset import Dataset
from ianvs.exam.data.parts import Part
from ianvs.exam.data_types import DataType
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.metrics.registry import resolve
from ianvs.running.session.checked_answers import picked

NO_FACT = -1


class StreamScores:
    """flow: (N,) positions in the training part, in the order of the stream."""

    def __init__(self, dataset: Dataset, kind: DataType, spec: PrequentialSpec, flow: NDArray[np.int64]) -> None:
        self._dataset, self._kind, self._spec, self._flow = dataset, kind, spec, flow

    def of(self, positions: NDArray[np.int64], answers: Any, labels: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """(n,) what `answers` to the samples at `positions` are worth. labels: to hold them against, in place of the
        dataset's own."""
        train = self._dataset.train
        truth = train.y[positions] if labels is None else labels
        if self._spec.score is None:
            return np.asarray(self._kind.sample_scores(truth, answers), np.float64)
        metric, classes = resolve(MetricSpec(self._spec.score)), self._dataset.classes
        found = np.zeros(len(positions))
        for i, one in enumerate(positions[:, None]):
            part = Part(train, one, labels=truth[i : i + 1])
            kept = self._kind.kept([(part, self._kind.packed(picked(answers, [i])))], len(classes))
            seen = self._kind.record(EvaluationRecord(classes), self._kind.truth(train, one), kept)
            value = metric.function(seen) if metric.function else 0.0
            found[i] = value.get(metric.name, 0.0) if isinstance(value, Mapping) else value
        return found

    def in_words(self, position: int, label: Any, score: float) -> str:
        """The data's own feedback to the question at `position`, else whether its answer was right, and what is."""
        own = self._dataset.train.feedback
        if own is not None and (text := str(own[position] or "")):
            return text
        if score >= self._spec.r_max:
            return "right"
        return f"wrong; right is: {self._kind.in_words(label, self._dataset.classes)}"

    def said(self, answers: Any) -> NDArray[np.int64]:
        """(n,) the number of each among the right answers of the stream; -1: it is right nowhere."""
        names = self._kind.answer_names(answers)
        return np.array([-1] * len(answers) if names is None else [self._names.get(one, -1) for one in names], np.int64)

    @cached_property
    def truth(self) -> NDArray[np.int64]:
        """(N,) the number of the right answer, in the order in which they come first; -1 where answers have no name."""
        return np.array([self._names[one] for one in self._right] or [-1] * len(self._flow), np.int64)

    @cached_property
    def topics(self) -> NDArray[np.int64] | None:
        """(N,) numbers of the samples' subjects, else of their topics, else of their domains."""
        train = self._dataset.train
        known = next((one for one in (train.subjects, train.topics, train.domains) if one is not None), None)
        return None if known is None else np.array(_numbered(known[self._flow].tolist()), np.int64)

    @cached_property
    def facts(self) -> NDArray[np.int64] | None:
        """(N,) numbers of what is asked for, by the text of a question where the data name no facts. NO_FACT where a
        name is empty: what is asked for is no fact."""
        train = self._dataset.train
        if train.facts is not None:
            names = train.facts[self._flow].tolist()
        elif train.x.dtype == object:
            names = [_text(one) for one in train.x[self._flow]]
        else:
            return None
        return np.array([number if name else NO_FACT for name, number in zip(names, _numbered(names), strict=True)])

    @cached_property
    def _right(self) -> list[Any]:
        return list(self._kind.answer_names(self._dataset.train.y[self._flow]) or ())

    @cached_property
    def _names(self) -> dict[Any, int]:
        return {name: number for number, name in enumerate(dict.fromkeys(self._right))}


def _numbered(names: list[Any]) -> list[int]:
    """In the order in which they come first."""
    known = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return [known[name] for name in names]


def _text(question: Any) -> str:
    return "\n".join(question["user"]) if isinstance(question, dict) else str(question)
