"""Ianvs's incrementallearning: one model learns one round after the other."""

from __future__ import annotations

from typing import ClassVar

from ianvs.exam.paradigms.paradigm import Paradigm, Session

__all__ = ["IncrementalLearning"]


class IncrementalLearning(Paradigm):
    name: ClassVar[str] = "incrementallearning"

    def train(self, step: int, session: Session) -> None:
        model = session.module("basemodel")
        for data in session.feed(step):
            session.call(model, "train", data)
