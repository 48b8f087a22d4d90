"""Samples with a text each."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.data.dataset import Samples
from ianvs.exam.kinds.kind import LONGEST_ANSWER, Kind
from ianvs.exam.scenarios.parts import Part


class TextKind(Kind):
    """Labels and answers are kept as texts, whatever a file or a learner gave: 3 and "3" are one answer."""

    name: ClassVar[str] = "text"

    def checker(self, asked: Part, classes: int, *, unseen: bool = False) -> Callable[[object, str], Any]:
        check = super().checker(asked, classes, unseen=unseen)
        return lambda found, where: _texts(check(found, where))

    def shortened(self, answers: NDArray[np.str_]) -> tuple[NDArray[np.str_], int]:
        cut = int(np.count_nonzero(np.char.str_len(answers) > LONGEST_ANSWER))
        return answers.astype(f"<U{LONGEST_ANSWER}") if cut else answers, cut

    def truth(self, samples: Samples, positions: NDArray[np.int64]) -> NDArray[Any]:
        return _texts(samples.y[positions])


def _texts(values: NDArray[Any]) -> NDArray[np.str_]:
    """(N,) numpy's own texts, which are stored without pickles."""
    return np.array([str(value) for value in values.tolist()], dtype=str)
