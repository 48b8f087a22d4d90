"""Scores of all classes, to find the most likely class of a sample's own task, which the learner is not told."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import PluginError
from ianvs.exam.questions import EvaluationTask, TaskContext, on_host


class TaskScores(EvaluationTask):
    name: ClassVar[str] = "task_scores"
    method: ClassVar[str] = "scores"
    extras: ClassVar[tuple[str, ...]] = ("task_labels",)
    wanted: ClassVar[str] = "(N, num_classes) numbers, one for each class"
    may_lack: ClassVar[str] = "task scores"
    of_classes: ClassVar[bool] = True

    def lacks(self, plugin: object) -> str:
        """Return why the plugin can't answer.

        Inherited scores do not count if predict() is overridden, as they belong to another model.
        """
        if why := super().lacks(plugin):
            return why
        kind = type(plugin)
        places = {name: next((i for i, base in enumerate(kind.__mro__) if name in vars(base)), -1) for name in _METHODS}
        if places["predict"] < places["scores"]:
            return f"{kind.__name__} has a predict() of its own, and the scores() of another class"
        return ""

    def checked(self, answers: object, samples: int, classes: int, caller: str) -> NDArray[np.float32]:
        array = np.asarray(on_host(answers))
        if array.shape != (samples, classes) or array.dtype.kind not in "iuf":
            form = f"{array.dtype} {array.shape}"
            raise PluginError(
                f"{caller} returned {form}: return ({samples}, {classes}) numbers, one for each class.",
                code="invalid-result",
            )
        scores = array.astype(np.float32)
        if np.isnan(scores).any() or np.isposinf(scores).any():
            raise PluginError(
                f"{caller} returned nan or infinity: the higher a score the likelier, -inf for never.",
                code="invalid-result",
            )
        return scores

    def stored_answers(self, scores: NDArray[Any], about: TaskContext) -> dict[str, NDArray[Any]]:
        return {"task_labels": labels_within(scores, about.classes)}


_METHODS = ("predict", "scores")


def labels_within(scores: NDArray[np.float32], classes: Sequence[int]) -> NDArray[np.int64]:
    """Return the most likely of `classes` (N,); of equal scores the first by index; -1 if all are excluded."""
    among = np.sort(np.asarray(classes, dtype=np.int64))
    chosen = scores[:, among]
    return np.where(np.isneginf(chosen).all(axis=1), -1, among[chosen.argmax(axis=1)])
