"""Checks once, after the last round, whether the learner predicts the same after save() and load()."""

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
from ianvs.running.session.examination import Examination
from ianvs.running.session.validate_predictions import is_equal

_ROUNDING = 1e-3  # tolerance: of the largest number, or share of a sample's labels


def save_load_difference(examination: Examination, learner: CaseLearner, model: Model, taught: int) -> str:
    """Return a message if objects that load `model` predict differently from the learner, else "".

    Both predict a few training samples of each round with the same random numbers. The learner's own objects are
    replaced.
    """
    if learner.uses_copies or not model.modules:
        return ""  # evaluations have used loaded objects
    try:
        was = examination.probe_predictions(model, taught)
    except ReplyServerError:
        raise
    except Exception:
        return ""  # it can't predict these samples
    try:
        learner.restore(model, fresh=True)
        back = examination.probe_predictions(model, taught)
    except Exception as error:
        traceback.print_exc()
        return f"load() does not bring back the model ({error_kind(error)}: {error_text(error)})"
    others, count = _count_differing(was, back), sum(len(answers.labels) for answers in was)
    if not others:
        return ""
    with suppress(Exception):
        if _count_differing(back, examination.probe_predictions(model, taught)):
            return "predict() draws random numbers that save() does not keep"
    return f"new objects that loaded what save() wrote answer {others} of {count} training samples otherwise"


def _count_differing(now: list[Predictions], back: list[Predictions]) -> int:
    """Count samples whose predictions or extras differ beyond rounding."""
    return sum(_count_differing_in(*pair) for pair in zip(now, back, strict=True))


def _count_differing_in(now: Predictions, back: Predictions) -> int:
    pairs = [(now.labels, back.labels)]
    pairs += [(values, back.extras[name]) for name, values in now.extras.items() if name in back.extras]
    return int(np.any([_is_different(*pair) for pair in pairs], axis=0).sum())


def _is_different(now: Any, back: Any) -> NDArray[np.bool_]:
    """Return (N,) whether two lists or arrays of N predictions differ."""
    if len(now) != len(back):
        return np.ones(len(now), bool)
    if isinstance(now, np.ndarray) and isinstance(back, np.ndarray) and now.shape == back.shape and now.dtype != object:
        flat = now.reshape(len(now), -1), back.reshape(len(now), -1)
        if np.issubdtype(now.dtype, np.inexact):
            scale = np.abs(flat[0][np.isfinite(flat[0])]).max(initial=0.0)
            return np.asarray(~np.isclose(*flat, rtol=_ROUNDING, atol=_ROUNDING * scale, equal_nan=True).all(axis=1))
        return np.asarray((flat[0] != flat[1]).mean(axis=1) > _ROUNDING)
    return np.array([not is_equal(a, b) for a, b in zip(now, back, strict=True)], bool)
