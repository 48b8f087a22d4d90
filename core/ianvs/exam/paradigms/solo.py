"""The reference `solo`: for each round a fresh model that was trained on it alone."""

from __future__ import annotations

from typing import ClassVar

from ianvs.exam.paradigms.paradigm import Paradigm, Session

__all__ = ["Solo"]


class Solo(Paradigm):
    name: ClassVar[str] = "solo"
    reference: ClassVar[bool] = True

    def train(self, step: int, session: Session) -> None:
        model = session.module("basemodel", fresh=True)
        for data in session.feed(step):
            session.call(model, "train", data)
