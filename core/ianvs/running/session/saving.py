"""Whether what a learner saves is what is examined: tried once, after the last round, on samples that it knows."""

import traceback
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import ReplyServerError
from ianvs.base.types import Predictions
from ianvs.processes.interpreters.wire import error_kind, error_text
from ianvs.running.loop import Model
from ianvs.running.session.case_learner import CaseLearner
from ianvs.running.session.checked_answers import alike
from ianvs.running.session.examination import Examination

_ROUNDING = 1e-3  # of the largest number; of the labels of one sample, such as the pixels at a border


def lost_by_saving(examination: Examination, learner: CaseLearner, model: Model, taught: int) -> str:
    """What a reader has to know if objects that load `model` answer otherwise than the learner; "" where they don't.

    Both are asked for a few training samples of each round with the same random numbers. The learner's own objects are
    gone afterwards.
    """
    if learner.is_apart or not model.modules:
        return ""  # who was examined had loaded it
    try:
        was = examination.probe_answers(model, taught)
    except ReplyServerError:
        raise
    except Exception:
        return ""  # it can't answer to these: nothing is known
    try:
        learner.restore(model, fresh=True)
        back = examination.probe_answers(model, taught)
    except Exception as error:
        traceback.print_exc()
        return f"load() does not bring back the model ({error_kind(error)}: {error_text(error)})"
    others, count = _others(was, back), sum(len(answers.labels) for answers in was)
    if not others:
        return ""
    with suppress(Exception):
        if _others(back, examination.probe_answers(model, taught)):
            return "predict() draws random numbers that save() does not keep"
    return f"new objects that loaded what save() wrote answer {others} of {count} training samples otherwise"


def _others(now: list[Predictions], back: list[Predictions]) -> int:
    """How many samples are answered otherwise, or have other extras, beyond rounding."""
    return sum(_others_of(*pair) for pair in zip(now, back, strict=True))


def _others_of(now: Predictions, back: Predictions) -> int:
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
