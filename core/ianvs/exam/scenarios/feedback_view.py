"""The view of a prequential exam: feedback to a learner's own predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import HiddenError
from ianvs.base.former_names import former_module_names
from ianvs.exam.data.parts import Column
from ianvs.exam.scenarios.views import View, class_indices_of

if not TYPE_CHECKING:
    __getattr__ = former_module_names(__name__, Told="FeedbackView")

_IN_WORDS = {
    "label": "the right answer (`.labels`)",
    "correctness": "whether an answer was right (`.correct`)",
    "score": "what an answer is worth (`.scores`)",
    "text": "a text about an answer (`.texts`)",
}


class FeedbackView(View):
    """Feedback to a learner's own predictions in a prequential exam.

    One of `labels`, `correct`, `scores` and `texts` is available, as `kind` says.

    Attributes:
        kind: "label", "correctness", "score" or "text".
        episodes: (N,) numbers of the samples in the stream, from 0.
        delay: Chunks between a prediction and its feedback.
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
        """columns: "x", "answers", and "told" with the feedback."""
        super().__init__(f"the feedback to {name} is not available after the call; keep what you need.", columns)
        self.kind, self.episodes, self.delay = kind, episodes, delay
        self.whole = self

    @property
    def passes(self) -> int:
        """1: a stream is read once."""
        return 1

    @property
    def answers(self) -> NDArray[Any]:
        """(N,) the predictions."""
        return self._column("answers")

    @property
    def labels(self) -> NDArray[Any]:
        """(N,) the true labels, as `y` of training data has them."""
        return self._feedback("label")

    @property
    def correct(self) -> NDArray[np.bool_]:
        """(N,) whether each prediction was right."""
        return self._feedback("correctness")

    @property
    def scores(self) -> NDArray[np.float64]:
        """(N,) the score of each prediction."""
        return self._feedback("score")

    @property
    def texts(self) -> NDArray[Any]:
        """(N,) feedback to each prediction in words."""
        return self._feedback("text")

    @property
    def classes(self) -> tuple[int, ...] | None:
        """Class indices among the labels; None if `kind` is another one."""
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
