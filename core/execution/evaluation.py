"""Has a learner answer the test sets, and keeps what metrics and reports will want of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.data.dataset import Samples
from core.execution import measure
from core.execution.learner import LearnerCalls
from core.metrics.base import Evidence
from core.metrics.overlap import picture_confusion
from core.scenarios.exam import Exam, Transform
from core.scenarios.handed import HandedTest

__all__ = ["SHOWN", "Evaluation"]

AT_ONCE = 64  # pictures with label pictures that are predicted in one call, which bounds the memory it takes
SHOWN = 3  # samples of each test set whose predicted label pictures are kept for reports


class Evaluation:
    """A learner before the test sets of an exam."""

    def __init__(self, exam: Exam, learner: LearnerCalls) -> None:
        self._exam, self._learner = exam, learner

    def answers(self, context: Mapping[str, Any]) -> tuple[dict[str, NDArray[Any]], float]:
        """(what is kept of the answers to all test sets, seconds that predicting took).

        Under "<j>", of test set j, the (N,) predicted labels. Of label pictures the (C, C+1) counts of
        core.metrics.overlap.picture_confusion, and under "pictures_<j>" the first few predicted, (n, height, width).
        context: of the round; the task is told as far as the rules show it.
        """
        found: dict[str, NDArray[Any]] = {}
        seconds = 0.0
        for j, test in enumerate(self._exam.tests):
            asked = _Asked(self._exam.dataset.test, test.test, test.transform, f"test set {test.name}")
            kept, shown, taken = self._answer(asked, self._told(context, j))
            found[str(j)] = kept
            if shown is not None:
                found[f"pictures_{j}"] = shown
            seconds += taken
        return found, seconds

    def held_out(self, index: int, positions: NDArray[np.int64], context: Mapping[str, Any]) -> Evidence:
        """What the learner answers to the part at `positions` that is held out of the training of round `index`."""
        dataset, round_ = self._exam.dataset, self._exam.rounds[index - 1]
        asked = _Asked(dataset.train, positions, round_.transform, f"the held-out part of round {index}")
        kept, _, _ = self._answer(asked, self._told(context, index - 1))
        earlier = tuple(sorted({label for before in self._exam.rounds[: index - 1] for label in before.classes}))
        if dataset.kind == "segmentation":
            return Evidence(dataset.classes, counts=kept, labels=round_.classes, earlier=earlier)
        truth = asked.labels(slice(None))
        return Evidence(dataset.classes, y_true=truth, y_pred=kept, labels=round_.classes, earlier=earlier)

    def _told(self, context: Mapping[str, Any], task: int) -> dict[str, Any]:
        given = {name: value for name, value in context.items() if name != "task"}
        return {**given, "task": task} if self._exam.rules.task_in_testing else given

    def _answer(
        self, asked: _Asked, context: Mapping[str, Any]
    ) -> tuple[NDArray[Any], NDArray[np.uint8] | None, float]:
        """(what is kept, label pictures to show, seconds)."""
        dataset = self._exam.dataset
        classes = len(dataset.classes)
        if dataset.kind != "segmentation":
            data = asked.handed(slice(None))
            with measure.stopwatch() as watch:
                predictions = self._learner.predict(data, context, None if dataset.kind == "text" else classes)
            data.close()
            return predictions, None, watch.seconds
        counts = np.zeros((classes, classes + 1), dtype=np.int64)
        shown: NDArray[np.uint8] | None = None
        seconds = 0.0
        for start in range(0, len(asked.positions), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            data, truth = asked.handed(part), asked.labels(part)
            with measure.stopwatch() as watch:
                said = self._learner.predict_pictures(data, context, classes, truth.shape[1:])
            data.close()
            seconds += watch.seconds
            counts += picture_confusion(truth, said, classes)
            if shown is None:
                first = said[:SHOWN]
                shown = first.copy() if isinstance(first, np.ndarray) else first.cpu().numpy()
        return counts, shown, seconds


@dataclass(frozen=True)
class _Asked:
    """Samples to be predicted, `positions` in `samples`."""

    samples: Samples
    positions: NDArray[np.int64]
    transform: Transform | None
    name: str

    def handed(self, part: slice) -> HandedTest:
        return HandedTest(self.samples, self.positions[part], transform=self.transform, name=self.name)

    def labels(self, part: slice) -> NDArray[Any]:
        return np.asarray(self.samples.y[self.positions[part]])
