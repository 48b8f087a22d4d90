"""The paradigms that go over rounds, as a protocol between the exam and whoever holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["PARADIGMS", "Paradigm", "Session", "examine", "find_paradigm"]


class Session(Protocol):
    """One learner in one exam. What each step stores stays stored, whatever happens in the next."""

    @property
    def rounds(self) -> int:
        """How many rounds the exam has."""

    @property
    def completed(self) -> int:
        """The last round that is complete on disk; -1 when not even the untrained model was examined."""

    def examine_untrained(self) -> None:
        """Score the model before the first round: row 0 of the score matrix."""

    def run_round(self, index: int) -> None:
        """Train on round `index` (from 1), let the gate decide, score on every test set, store all of it."""


@dataclass(frozen=True)
class Paradigm:
    """single_task: everything the exam has comes in one round."""

    name: str
    single_task: bool


PARADIGMS = (Paradigm("incrementallearning", single_task=False), Paradigm("singletasklearning", single_task=True))


def find_paradigm(name: str) -> Paradigm:
    """The paradigm of that name; KeyError for one that does not exist, which the configuration has ruled out."""
    return {paradigm.name: paradigm for paradigm in PARADIGMS}[name]


def examine(session: Session) -> None:
    """Go through the rounds that are not complete yet, in order."""
    if session.completed < 0:
        session.examine_untrained()
    for index in range(session.completed + 1, session.rounds + 1):
        session.run_round(index)
