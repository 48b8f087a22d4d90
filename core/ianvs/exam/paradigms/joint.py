"""The reference `joint`: after each round a fresh model that was trained on all rounds so far, mixed."""

from __future__ import annotations

from typing import ClassVar

from ianvs.exam.paradigms.paradigm import Paradigm, Session

__all__ = ["Joint"]


class Joint(Paradigm):
    name: ClassVar[str] = "joint"
    reference: ClassVar[bool] = True

    def train(self, step: int, session: Session) -> None:
        model = session.module("basemodel", fresh=True)
        for data in session.feed(1, step):
            session.call(model, "train", data)
