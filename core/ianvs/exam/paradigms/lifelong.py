"""Ianvs's lifelonglearning for native plugins: the model trains on samples that it recognises as unseen."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from ianvs.base.types import Measure, Predictions
from ianvs.exam.data.options import Options
from ianvs.exam.paradigms.paradigm import (
    Context,
    Module,
    Paradigm,
    Recogniser,
    Session,
    open_world_predictions,
    unseen_samples,
)
from ianvs.exam.scenarios.views import TestView
from ianvs.plugins.contract import Learner

RECOGNITION = "unseen_sample_recognition"


class LifelongOptions(Options):
    """Options of lifelong learning in an algorithm's yaml.

    Attributes:
        train_on: Samples of a round to train on: those that the model recognises as unseen, or all.
    """

    train_on: Literal["unseen", "all"] = "unseen"


class LifelongLearning(Paradigm):
    """One base model learns all tasks.

    Without a method `detect_unseen` (DetectsUnseen) it trains on everything. In the first round everything is unseen.
    """

    name: ClassVar[str] = "lifelonglearning"
    options: ClassVar[type[Options]] = LifelongOptions
    modules: ClassVar[Mapping[str, Any]] = {"basemodel": Learner, RECOGNITION: Recogniser | None}
    measures: ClassVar[Mapping[str, Measure]] = {
        "inferred_samples": Measure("Samples that arrived and were looked at."),
        "transferred_samples": Measure("Samples that were sent on for training."),
    }
    pictures: ClassVar[tuple[str, ...]] = ("matrices", *(kind for kind in Paradigm.pictures if kind != "matrices"))

    def train(self, step: int, session: Session) -> None:
        """Train the base model on the round's unseen samples."""
        model, recogniser = session.module("basemodel"), self._recogniser(session)
        for data in session.feed(step):
            detected = None
            if step > 1 and session.options.train_on == "unseen":
                detected = unseen_samples(session, model, data.unlabelled(), {}, recogniser)
            unseen = np.ones(len(data), bool) if detected is None else detected[1]
            session.measure("inferred_samples", len(data))
            session.measure("transferred_samples", int(unseen.sum()))
            if unseen.any():
                session.call(model, "train", data if unseen.all() else data.part(unseen))

    def predict(self, data: TestView, context: Context, session: Session) -> Predictions:
        """Predict by the base model."""
        model, recogniser = session.module("basemodel"), self._recogniser(session)
        if session.rules.unseen == "none":
            return Predictions(session.call(model, "predict", data, **context))
        return open_world_predictions(session, model, data, context, recogniser)

    def _recogniser(self, session: Session) -> Module | None:
        return session.module(RECOGNITION) if session.has(RECOGNITION) else None
