"""Paradigms with one base model that trains on rounds."""

from typing import ClassVar

from ianvs.exam.paradigms.paradigm import Paradigm, Session


class IncrementalLearning(Paradigm):
    """Ianvs's incrementallearning: one model trains on one round after the other."""

    name: ClassVar[str] = "incrementallearning"
    fresh: ClassVar[bool] = False  # whether each round starts with a new model
    cumulative: ClassVar[bool] = False  # whether a round includes the data of earlier rounds

    def train(self, step: int, session: Session) -> None:
        """Train the base model on the round."""
        model = session.module("basemodel", fresh=self.fresh)
        for data in session.feed(1 if self.cumulative else step, step):
            session.call(model, "train", data)


class SingleTaskLearning(IncrementalLearning):
    """Ianvs's singletasklearning: one model trains on everything at once."""

    name: ClassVar[str] = "singletasklearning"
    as_one: ClassVar[bool] = True


class Solo(IncrementalLearning):
    """The reference `solo`: for each round a new model, trained on it alone."""

    name: ClassVar[str] = "solo"
    reference: ClassVar[bool] = True
    fresh: ClassVar[bool] = True


class Joint(Solo):
    """The reference `joint`: after each round a new model, trained on all rounds so far, mixed."""

    name: ClassVar[str] = "joint"
    cumulative: ClassVar[bool] = True
