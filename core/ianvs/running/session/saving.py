"""Whether what a learner saves is what is examined: tried once, on samples that it knows."""

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import IanvsError, PluginError
from ianvs.base.types import Predictions
from ianvs.processes.sealing.peer import RemoteError
from ianvs.running.session.checked_answers import alike
from ianvs.running.session.examination import Examination
from ianvs.running.session.remote import Answering, Ended, Learner, Model, SealedLearner, error_kind

_ROUNDING = 1e-3  # of the largest number; of the labels of one sample, such as the pixels at a border


class SavingTrial:
    """Of one round. Both the learner and a copy that loads what it saved are asked for a few training samples of that
    round with the same random numbers.

    Asked is a fork, after the first round; where there can be none (several threads, a card, no processes of its own)
    the learner itself after the last one, when being asked can change nothing any more.
    """

    def __init__(self, examination: Examination, learner: Learner, index: int, *, last: bool) -> None:
        self._examination, self._learner, self._index, self._last = examination, learner, index, last
        self._examined: Predictions | None = None

    def ask_examined(self, copy: Answering) -> None:
        """Let a fork that was examined answer, too, so that one less is taken."""
        if self._index == 1 and self._learner.asked == {"forks"}:
            with suppress(IanvsError, RemoteError):
                [self._examined] = self._examination.taught(1, copy)

    def lost(self, model: Model, *, strict: bool) -> str:
        """What a reader has to know if a copy that loads `model` answers otherwise than the learner; "" where it
        doesn't. Raises PluginError for a loss where `strict`.
        """
        learner, examination, index = self._learner, self._examination, self._index
        forks = isinstance(learner, SealedLearner) and learner.can_be_compared
        if not (index == 1 if forks else self._last and not learner.adapts):
            return ""

        def now(times: int = 1) -> list[Predictions]:
            asked = learner.forked() if isinstance(learner, SealedLearner) and forks else learner.itself()
            return examination.taught(index, asked, times)

        def loaded() -> list[Predictions]:
            if isinstance(learner, SealedLearner) and forks:
                return examination.taught(index, learner.fresh(model))
            learner.restore(model, anew=True)
            return now()

        try:
            [was] = [self._examined] if self._examined else now()
        except (IanvsError, RemoteError):
            return ""  # it can't answer to these: nothing is known
        try:
            [back] = loaded()
            others = _others(was, back)
            if others and self._examined:  # which may have changed what it answers
                [was] = now()
                others = _others(was, back)
            if not others:
                return ""
            count = len(back.labels)
            print(f"a copy that loaded what save() wrote answers {others} of {count} training samples otherwise")
            lost = "a copy that loaded it answers otherwise"
            if _others(*now(2)):
                return "can't be resumed: predict() draws random numbers that save() does not keep"
        except (IanvsError, RemoteError) as error:
            lost = f"{error_kind(error)}: {error}"
        except Ended as ended:
            lost = f"the process that loads it ends with {ended.code}"
        said = f"can't be resumed: what is saved is not what was examined ({lost})"
        if strict:
            raise PluginError(
                f"{said}. Under `sealing: strict` save() and load() have to bring back the model.",
                code="broken-contract",
            )
        return said


def _others(now: Predictions, back: Predictions) -> int:
    """How many samples are answered otherwise, or have other extras, beyond rounding."""
    pairs = [(now.labels, back.labels)]
    pairs += [(values, back.extras[name]) for name, values in now.extras.items() if name in back.extras]
    return int(np.any([_differ(*pair) for pair in pairs], axis=0).sum())


def _differ(now: Any, back: Any) -> NDArray[np.bool_]:
    """(N,) which of two lists or arrays of N answers are not the same."""
    if len(now) != len(back):
        return np.ones(len(now), bool)
    if isinstance(now, np.ndarray) and isinstance(back, np.ndarray) and now.shape == back.shape and now.dtype != object:
        flat = now.reshape(len(now), -1), back.reshape(len(now), -1)
        if np.issubdtype(now.dtype, np.inexact):
            scale = np.abs(flat[0][np.isfinite(flat[0])]).max(initial=0.0)
            return np.asarray(~np.isclose(*flat, rtol=_ROUNDING, atol=_ROUNDING * scale, equal_nan=True).all(axis=1))
        return np.asarray((flat[0] != flat[1]).mean(axis=1) > _ROUNDING)
    return np.array([not alike(a, b) for a, b in zip(now, back, strict=True)], bool)
