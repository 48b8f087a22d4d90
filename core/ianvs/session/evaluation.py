"""Has a learner answer the test sets, and keeps what metrics and reports will want of its predictions."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.metrics.label_pictures import PackedPictures, PictureRows, compressed, packed_pictures
from ianvs.metrics.metric import EvaluationRecord
from ianvs.metrics.overlap import picture_confusion
from ianvs.scenarios.exam import Exam, TestSet
from ianvs.scenarios.parts import Part
from ianvs.scenarios.views import TestView
from ianvs.scoring.replies import packed, unpacked
from ianvs.session import measure
from ianvs.session.feed import DataFeed
from ianvs.session.learner_calls import LearnerCalls
from ianvs.session.measure import NOTHING_SPENT, Spent

__all__ = ["ALL", "SHOWN", "Evaluation"]

AT_ONCE = 64  # pictures with label pictures that are predicted in one call, which bounds the memory it takes
ALL = "all_pictures"
SHOWN = 3  # samples of each test set whose predicted label pictures are kept for reports


class Evaluation:
    """A learner before the test sets of an exam."""

    def __init__(
        self,
        exam: Exam,
        feed: DataFeed,
        learner: LearnerCalls,
        seed: Callable[[str], None],
        *,
        probe: bool = False,
        pictures: bool = False,
    ) -> None:
        """seed: starts the global random streams anew for a purpose. probe: whether features are examined too.

        pictures: whether all predicted label pictures are kept, not only how often each class was taken for another.
        """
        self._exam, self._feed, self._learner = exam, feed, learner
        self._seed, self._probe, self._pictures = seed, probe, pictures

    def predictions(self, index: int, context: Mapping[str, Any]) -> tuple[dict[str, NDArray[Any]], Spent]:
        """(what is kept of the predictions on the test sets, what predicting took), after round `index`.

        Under "<j>", of test set j, the (N,) predicted labels; of conversations the replies, as bytes. Of label
        pictures the (C, C+1) counts of ianvs.metrics.overlap.picture_confusion, and under "pictures_<j>" the first few
        predicted, (n, height, width); where all are kept, these under "all_pictures_<j>", packed_pictures.
        Under "probe_<j>", where features are examined, the (N,) labels that a linear probe on them predicts.
        context: of the round; the task is in it as far as the rules show it.
        """
        found, spent = self._predictions(index, context)
        if self._probe:
            from ianvs.session.probe import probe_predictions

            found |= probe_predictions(self._learner, self._exam, self._feed, lambda j: self._context(context, j))
        return found, spent

    def predictions_between(self, index: int, context: Mapping[str, Any]) -> tuple[dict[str, NDArray[Any]], Spent]:
        """As `predictions`, in the midst of round `index` of a stream: labels alone."""
        return self._predictions(index - 1, context)

    def held_out(
        self, index: int, positions: NDArray[np.int64], context: Mapping[str, Any], pictures: bool = False
    ) -> EvaluationRecord:
        """What the learner answers to the part at `positions` that is held out of the training of round `index`.

        pictures: whether all label pictures are asked for.
        """
        dataset, round_ = self._exam.dataset, self._exam.rounds[index - 1]
        asked = Part(dataset.train, positions, round_.transform)
        shown_context = self._context(context, index - 1, round_.classes)
        name = f"the held-out part of round {index}"
        kept, more, _ = self._predict(self._learner, asked, name, shown_context, pictures)
        earlier = tuple(sorted({label for before in self._exam.rounds[: index - 1] for label in before.classes}))
        if dataset.kind == "segmentation":
            true = PictureRows(dataset.train.y, positions) if pictures else None
            said = PackedPictures(more[ALL]) if pictures else None
            return EvaluationRecord(dataset.classes, true, said, counts=kept, labels=round_.classes, earlier=earlier)
        truth = np.asarray(dataset.train.y[positions])
        if dataset.kind == "conversation":
            kept = unpacked(kept)[0]
        return EvaluationRecord(dataset.classes, y_true=truth, y_pred=kept, labels=round_.classes, earlier=earlier)

    def _predictions(self, index: int, context: Mapping[str, Any]) -> tuple[dict[str, NDArray[Any]], Spent]:
        found: dict[str, NDArray[Any]] = {}
        spent = NOTHING_SPENT
        only_future = self._exam.rules.asked == "future"
        with tempfile.TemporaryDirectory(prefix="ianvs-") as folder:
            copied = any(test.adapt is not None for test in self._exam.tests)
            saved = self._saved(Path(folder)) if copied and index else None  # a new learner has nothing to save
            for j, test in enumerate(self._exam.tests):
                if only_future and j < index:
                    continue  # the model has been taught these very samples
                shown_context = self._context(context, j)
                learner = self._learner
                if test.adapt is not None:
                    learner = self._adapted(test, saved, shown_context)
                part = Part(self._exam.dataset.test, test.test, test.transform)
                name = f"test set {test.name}"
                kept, more, taken = self._predict(learner, part, name, shown_context, self._pictures)
                found[str(j)] = kept
                found |= {f"{what}_{j}": pictures for what, pictures in more.items()}
                spent += taken
        return found, spent

    def _saved(self, folder: Path) -> Path:
        """Where the present model was saved, for copies of it."""
        return folder / self._learner.save(folder / "model")

    def _adapted(self, test: TestSet, saved: Path | None, context: Mapping[str, Any]) -> LearnerCalls:
        """A copy of the learner that has learned from the labelled samples of `test`; the learner itself has not."""
        self._seed(f"adapt to {test.name}")
        copy = self._learner.fresh() if saved is None else self._learner.copy_at(saved)
        data = self._feed.adaptation(test)
        context = {**context, "pretraining": False, "new_classes": test.classes, "train_rounds": (data,)}
        copy.train(data, None, context)
        data.close()
        return copy

    def _context(self, context: Mapping[str, Any], j: int, classes: tuple[int, ...] | None = None) -> dict[str, Any]:
        """What is shown_context with test set j: the task's identity and its classes where the rules show them."""
        rules = self._exam.rules
        given = {name: value for name, value in context.items() if name not in ("task", "task_classes")}
        if not rules.task_in_testing:
            return given
        given["task"] = j
        if rules.output_space == "task":
            given["task_classes"] = self._exam.tests[j].classes if classes is None else classes
        return given

    def _predict(
        self, learner: LearnerCalls, asked: Part, name: str, context: Mapping[str, Any], pictures: bool
    ) -> tuple[NDArray[Any], dict[str, NDArray[np.uint8]], Spent]:
        """(what is kept, label pictures: the first few under "pictures" and all under ALL, what predicting took)."""
        dataset = self._exam.dataset
        classes = len(dataset.classes)
        if dataset.kind != "segmentation":
            data = TestView(asked, name=name)
            with measure.stopwatch() as watch:
                if dataset.kind == "conversation":
                    predictions: NDArray[Any] = packed(learner.predict_replies(data, context))
                else:
                    predictions = learner.predict(data, context, classes if dataset.kind == "classification" else None)
            data.close()
            return predictions, {}, watch.spent
        counts = np.zeros((classes, classes + 1), dtype=np.int64)
        every: list[bytes] = []
        more: dict[str, NDArray[np.uint8]] = {}
        spent = NOTHING_SPENT
        for start in range(0, len(asked.positions), AT_ONCE):
            part = Part(asked.samples, asked.positions[start : start + AT_ONCE], asked.transform)
            data, truth = TestView(part, name=name), np.asarray(asked.samples.y[part.positions])
            with measure.stopwatch() as watch:
                said = learner.predict_pictures(data, context, classes, truth.shape[1:])
            data.close()
            spent += watch.spent
            counts += picture_confusion(truth, said, classes)
            if not more or pictures:
                here = said if pictures else said[:SHOWN]
                here = here if isinstance(here, np.ndarray) else here.cpu().numpy()
                more.setdefault("pictures", here[:SHOWN].copy())
                every += [compressed(picture) for picture in here] if pictures else []
        if pictures:
            more[ALL] = packed_pictures(every, asked.samples.y.shape[1:])
        return counts, more, spent
