"""The source `lasting_facts`: generated conversations about facts that stay, that change, and that are added.

Each year one desk (politics, sport, ...) teaches; the `desks` take turns, each with its own system prompt. In its first
year a desk teaches facts that stay, which are not repeated, and facts that change; in each later year the latter have a
new answer, and facts are added, which stay from then on. A question names the year only if the answer depends on it. So
no two rounds contradict each other: a learner that forgets nothing can answer everything.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from ianvs.exam.data.conversation_forms import Conversation
from ianvs.testenv.datasets.generated_talk import GeneratedTalk

VERSION = 1  # increase it when the same options give other conversations
FIRST_YEAR = 2020
KINDS_OF_FACTS = ("stays", "changes", "added")
"""The topics of the conversations, for scores by topic."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@dataclass(frozen=True)
class _Desk:
    """prompt: the system prompt. questions: two wordings about a town. words: the parts of an answer."""

    prompt: str
    questions: tuple[str, str]
    words: tuple[tuple[str, ...], tuple[str, ...]]


_DESKS = (
    _Desk(
        "You report on politics.",
        ("Who is the mayor of {}", "Name the mayor of {}"),
        (_words("Ada Ben Cleo Dirk Elsa Finn Gerd Hugo"), _words("Berg Cole Dahl Eker Falk Grau Holt Iven")),
    ),
    _Desk(
        "You report on sport.",
        ("Which team plays in {}", "Name the team of {}"),
        (_words("Red Blue Green Grey White Black Tan Pink"), _words("Foxes Owls Bears Hares Wolves Crows Lions Seals")),
    ),
    _Desk(
        "You report on culture.",
        ("Where is the fair of {} held", "Name the place of the fair of {}"),
        (_words("North South East West Old New Upper Lower"), _words("Arden Bryn Corvo Delft Ember Fjord Garth Haven")),
    ),
)  # fmt: skip
_TOWNS = tuple(
    begin + end
    for begin in _words("Var Nor Hel Bris Tar Ols Quel Mar Fen Ys")
    for end in _words("holm ford mond wick nau sted by lund gate kerk")
)


@dataclass(frozen=True)
class _Fact:
    kind: str
    questions: tuple[str, str]
    answer: str


class LastingFacts(GeneratedTalk):
    """years: from 2020 on, each a domain, of one desk after the other. desks: how many take turns. stays: facts of the
    first year of a desk that are never repeated. changes: facts with another answer in every year of their desk. added:
    facts that each later year of a desk brings."""

    summary: ClassVar[str] = "generated conversations about facts that stay, change and are added, year after year"
    title: ClassVar[str] = "lasting_facts"
    generator: ClassVar[int] = VERSION
    note: ClassVar[str] = "The conversations are generated: facts about towns that do not exist."

    years: int = Field(6, ge=1)
    desks: int = Field(2, ge=1, le=len(_DESKS))
    stays: int = Field(8, ge=0)
    changes: int = Field(2, ge=0)
    added: int = Field(2, ge=0)
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _within_reach(self) -> Self:
        visits = -(-self.years // self.desks)
        towns = self.stays + self.changes + (visits - 1) * self.added
        answers = towns + (visits - 1) * self.changes
        most = min(len(_TOWNS), *(len(desk.words[0]) * len(desk.words[1]) for desk in _DESKS))
        if self.changes + min(self.stays, self.added if visits > 1 else self.stays) < 1 or answers > most:
            raise ValueError(
                f"`stays` {self.stays}, `changes` {self.changes} and `added` {self.added} are {answers} answers of a "
                f"desk in {self.years} years. Every year has at least 1 fact, and there are {most} answers."
            )
        return self

    @property
    def names(self) -> list[str]:
        return [str(FIRST_YEAR + year) for year in range(self.years)]

    def conversations(self, part: str) -> Iterator[tuple[str, Conversation]]:
        """Yield (domain, conversation). part "train": every fact in both wordings.

        "test": every fact once, in one of them.
        """
        for year in range(self.years):
            desk = _DESKS[year % self.desks]
            draw = np.random.default_rng([self.seed, year, ("train", "test").index(part)])
            for fact in self._facts(year):
                wordings = fact.questions if part == "train" else (fact.questions[int(draw.integers(2))],)
                for question in wordings:
                    yield str(FIRST_YEAR + year), Conversation(desk.prompt, (question,), (fact.answer,), fact.kind)

    def _facts(self, year: int) -> Iterator[_Fact]:
        """Yield the facts of a year. No desk gives the same answer twice, for any question in any year."""
        number, visit = year % self.desks, year // self.desks
        desk, draw = _DESKS[number], np.random.default_rng([self.seed, number])
        towns = [_TOWNS[i] for i in draw.permutation(len(_TOWNS))]
        firsts, lasts = desk.words
        answers = [
            f"{firsts[i // len(lasts)]} {lasts[i % len(lasts)]}" for i in draw.permutation(len(firsts) * len(lasts))
        ]
        drawn = iter(answers[0 if visit == 0 else self.stays + visit * self.changes + (visit - 1) * self.added :])
        for town in towns[: self.changes]:
            about = f"{town} in {FIRST_YEAR + year}"
            yield _Fact("changes", _question(desk, about), next(drawn))
        first = self.changes + (0 if visit == 0 else self.stays + (visit - 1) * self.added)
        for town in towns[first : first + (self.stays if visit == 0 else self.added)]:
            yield _Fact("stays" if visit == 0 else "added", _question(desk, town), next(drawn))


def _question(desk: _Desk, about: str) -> tuple[str, str]:
    first, second = desk.questions
    return f"{first.format(about)}?", f"{second.format(about)}."
