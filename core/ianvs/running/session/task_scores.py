"""Answers under the mask of a task, of a learner that is not told the task.

It gives scores of all classes, to samples in an order that tells nothing; the keeper looks among the classes of the
test set that each sample is of.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import PluginError

__all__ = ["TASK_LABELS", "checked_scores", "labels_within", "why_unscored"]

TASK_LABELS = "task_labels"
"""The extra that they are stored under."""


def why_unscored(plugin: object) -> str:
    """Why a base model has no scores that its answers are made from; "" where it has.

    Scores that it inherits beside a predict() of its own are another model's.
    """
    kind = type(plugin)
    if not callable(getattr(plugin, "scores", None)):
        return f"{kind.__name__} has no scores(data, **context)"
    places = {name: next((i for i, one in enumerate(kind.__mro__) if name in vars(one)), -1) for name in _METHODS}
    if places["predict"] < places["scores"]:
        return f"{kind.__name__} has a predict() of its own, and the scores() of another class"
    return ""


_METHODS = ("predict", "scores")


def checked_scores(found: object, samples: int, classes: int, who: str) -> NDArray[np.float32]:
    """(samples, classes) what a learner gave. Raises PluginError."""
    if hasattr(found, "detach"):
        found = found.detach().cpu().numpy()
    array = np.asarray(found)
    if array.shape != (samples, classes) or array.dtype.kind not in "iuf":
        form = f"{array.dtype} {array.shape}"
        raise PluginError(f"{who} returned {form}: return ({samples}, {classes}) numbers, one for each class.")
    scores = array.astype(np.float32)
    if np.isnan(scores).any() or np.isposinf(scores).any():
        raise PluginError(f"{who} returned nan or infinity: the higher a score the likelier, -inf for never.")
    return scores


def labels_within(scores: NDArray[np.float32], classes: Sequence[int]) -> NDArray[np.int64]:
    """(N,) the likeliest of `classes`, of equal ones the first by index; -1 where all of them are ruled out."""
    among = np.sort(np.asarray(classes, dtype=np.int64))
    chosen = scores[:, among]
    return np.where(np.isneginf(chosen).all(axis=1), -1, among[chosen.argmax(axis=1)])
