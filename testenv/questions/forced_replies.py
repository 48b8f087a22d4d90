"""Token-level predictions of a language model on the true replies (teacher forcing).

The learner reports them itself.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import PluginError
from ianvs.exam.questions import EvaluationTask, TaskContext, on_host


class TeacherForced(EvaluationTask):
    name: ClassVar[str] = "teacher_forced"
    method: ClassVar[str] = "teacher_forced"
    extras: ClassVar[tuple[str, ...]] = ("right_tokens", "tokens", "log_likelihood")
    wanted: ClassVar[str] = (
        "what it makes of the true replies: (N, 3), for each conversation right tokens, tokens, log-likelihood"
    )
    shows_labels: ClassVar[bool] = True
    of_type: ClassVar[str] = "conversation"

    def checked(self, answers: object, samples: int, classes: int, caller: str) -> NDArray[np.float64]:
        wanted = f"return ({samples}, 3) numbers: for each conversation right tokens, tokens, log-likelihood"
        answers = on_host(answers)
        try:
            array = np.asarray(answers, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise PluginError(
                f"{caller} returned {type(answers).__name__} ({error}): {wanted}.", code="invalid-result"
            ) from None
        if array.shape != (samples, len(self.extras)):
            raise PluginError(f"{caller} returned shape {array.shape}: {wanted}.", code="invalid-result")
        right, tokens, likelihood = array.T
        counts = array[:, :2]
        wrong = (
            ~np.isfinite(counts).all(axis=1) | (counts != np.floor(counts)).any(axis=1) | (right < 0) | (right > tokens)
        )
        wrong |= np.isnan(likelihood) | (likelihood > 0)
        if wrong.any():
            row = [float(value) for value in array[int(np.flatnonzero(wrong)[0])]]
            form = "whole numbers, the first not the larger, and the natural log of a probability, at most 0"
            raise PluginError(f"{caller} returned {row} for a conversation: {wanted}; {form}.", code="invalid-result")
        return array

    def stored_answers(self, sums: NDArray[Any], about: TaskContext) -> dict[str, NDArray[Any]]:
        right, tokens, likelihood = sums.T
        counts = (right.astype(np.int64), tokens.astype(np.int64), likelihood.copy())
        return dict(zip(self.extras, counts, strict=True))
