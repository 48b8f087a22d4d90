"""Scores of single predictions in a stream, and numbers for equal answers, topics and facts."""

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
from ianvs.running.session.validate_predictions import select_rows

NO_FACT = -1


class StreamScores:
    """flow: (N,) positions in the training part, in the order of the stream."""

    def __init__(self, dataset: Dataset, kind: DataType, spec: PrequentialSpec, flow: NDArray[np.int64]) -> None:
        self._dataset, self._kind, self._spec, self._flow = dataset, kind, spec, flow

    def scores_of_answers(
        self, positions: NDArray[np.int64], answers: Any, labels: NDArray[Any] | None = None
    ) -> NDArray[np.float64]:
        """Return (n,) scores of `answers` to the samples at `positions`.

        labels: true labels in place of the dataset's own.
        """
        train = self._dataset.train
        truth = train.y[positions] if labels is None else labels
        if self._spec.score is None:
            return np.asarray(self._kind.sample_scores(truth, answers), np.float64)
        metric, classes = resolve(MetricSpec(self._spec.score)), self._dataset.classes
        scores = np.zeros(len(positions))
        for i, position in enumerate(positions[:, None]):
            part = Part(train, position, labels=truth[i : i + 1])
            stored = self._kind.stored_predictions([(part, self._kind.packed(select_rows(answers, [i])))], len(classes))
            seen = self._kind.record(EvaluationRecord(classes), self._kind.truth(train, position), stored)
            value = metric.function(seen) if metric.function else 0.0
            scores[i] = value.get(metric.name, 0.0) if isinstance(value, Mapping) else value
        return scores

    def feedback_text(self, position: int, label: Any, score: float) -> str:
        """Return the data's feedback for a sample, else whether the prediction was right, and the correct answer."""
        feedback = self._dataset.train.feedback
        if feedback is not None and (text := str(feedback[position] or "")):
            return text
        if score >= self._spec.r_max:
            return "right"
        return f"wrong; right is: {self._kind.in_words(label, self._dataset.classes)}"

    def answer_numbers(self, answers: Any) -> NDArray[np.int64]:
        """Return (n,) the index of each answer among the stream's correct answers; -1: it is never correct."""
        names = self._kind.answer_names(answers)
        return np.array(
            [-1] * len(answers) if names is None else [self._names.get(name, -1) for name in names], np.int64
        )

    @cached_property
    def truth(self) -> NDArray[np.int64]:
        """(N,) the index of the correct answer, by first occurrence; -1 where answers have no name."""
        return np.array([self._names[name] for name in self._correct_answers] or [-1] * len(self._flow), np.int64)

    @cached_property
    def topics(self) -> NDArray[np.int64] | None:
        """(N,) indices of the samples' subjects, else of their topics, else of their domains."""
        train = self._dataset.train
        groups = next((column for column in (train.subjects, train.topics, train.domains) if column is not None), None)
        return None if groups is None else np.array(_numbered(groups[self._flow].tolist()), np.int64)

    @cached_property
    def facts(self) -> NDArray[np.int64] | None:
        """(N,) indices of the facts that are asked for, by the question's text if the data name no facts;
        NO_FACT for an empty name."""
        train = self._dataset.train
        if train.facts is not None:
            names = train.facts[self._flow].tolist()
        elif train.x.dtype == object:
            names = [_text(question) for question in train.x[self._flow]]
        else:
            return None
        return np.array([number if name else NO_FACT for name, number in zip(names, _numbered(names), strict=True)])

    @cached_property
    def _correct_answers(self) -> list[Any]:
        return list(self._kind.answer_names(self._dataset.train.y[self._flow]) or ())

    @cached_property
    def _names(self) -> dict[Any, int]:
        return {name: number for number, name in enumerate(dict.fromkeys(self._correct_answers))}


def _numbered(names: list[Any]) -> list[int]:
    """Return indices of names by first occurrence."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return [numbers[name] for name in names]


def _text(question: Any) -> str:
    return "\n".join(question["user"]) if isinstance(question, dict) else str(question)
