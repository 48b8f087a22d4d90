"""The view of an exam that asks before it tells (`prequential`): what a learner is told of its own answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import HiddenError
from ianvs.exam.data.parts import Column
from ianvs.exam.scenarios.views import View, class_indices_of

_IN_WORDS = {
    "label": "the right answer (`.labels`)",
    "correctness": "whether an answer was right (`.correct`)",
    "score": "what an answer is worth (`.scores`)",
    "text": "what is said of an answer (`.texts`)",
}


class Told(View):
    """What a learner is told of its own answers in an exam that asks before it tells (`prequential`).

    x: (N, ...) the questions as they were asked. answers: (N,) what was said to them. kind: of the feedback, which is
    (N,) in one of: labels, of the data's form; correct, bool; scores, float; texts, str. episodes: (N,) numbers of the
    questions in the stream, from 0. delay: chunks between an answer and this.
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        *,
        kind: str,
        name: str,
        episodes: NDArray[np.int64],
        delay: int = 0,
    ) -> None:
        """columns: "x", "answers", and "told", what the feedback is."""
        super().__init__(f"what was told of {name} is not available after the call; keep what you need.", columns)
        self.kind, self.episodes, self.delay = kind, episodes, delay
        self.whole = self

    @property
    def passes(self) -> int:
        return 1

    @property
    def answers(self) -> NDArray[Any]:
        """(N,) what was answered, of the form of predictions."""
        return self._column("answers")

    @property
    def labels(self) -> NDArray[Any]:
        """(N,) the right answers, as `y` of training data has them."""
        return self._feedback("label")

    @property
    def correct(self) -> NDArray[np.bool_]:
        """(N,) whether each answer was right."""
        return self._feedback("correctness")

    @property
    def scores(self) -> NDArray[np.float64]:
        """(N,) what each answer is worth."""
        return self._feedback("score")

    @property
    def texts(self) -> NDArray[Any]:
        """(N,) what is said of each answer."""
        return self._feedback("text")

    @property
    def classes(self) -> tuple[int, ...] | None:
        """Class indices among the labels; None where none are told."""
        return class_indices_of(self.labels) if self.kind == "label" else None

    def _feedback(self, kind: str) -> NDArray[Any]:
        self._require_open()
        if kind != self.kind:
            raise HiddenError(
                f"this exam tells {_IN_WORDS[self.kind]}, not {_IN_WORDS[kind]}: `feedback: {self.kind}` in the "
                "testenv's `prequential`. `.kind` says which.",
                code="broken-rule",
            )
        return self._column("told")
