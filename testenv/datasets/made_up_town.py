"""The source `made_up_town`: repeated questions about a town that does not exist.

Offices of the town (council, harbour, ...) are visited in turn. A visit asks several times for each fact of its office,
in one of three wordings, and for some results of the office's invented operation. Before an office is visited again,
half of its facts change. Nobody can know the answers in advance, so a right answer was remembered or, for an operation,
worked out. Each visit is a domain. Its test set asks, in a fourth wording, for those of its facts that do not change
any more, so no round contradicts another one's test.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.random import Generator
from pydantic import Field, model_validator

from ianvs.base.errors import ValidationError
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data import Dataset, Progress, Samples, Source
from ianvs.exam.data.fingerprint import digest_of
from ianvs.testenv.datasets.array_source import unknown

VERSION = 1  # increase it when the same options give other questions
KINDS_OF_QUESTIONS = ("stays", "changes", "rule")
"""The topics of the questions, for scores by topic."""
CHOICES = " Choose from: "
"""Text between a question and the answers to choose from, which are separated by "; "."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@dataclass(frozen=True)
class _Office:
    """wordings: three for the stream, and one for the tests. operation: its invented name."""

    name: str
    wordings: tuple[str, str, str, str]
    answers: tuple[str, ...]
    operation: str


_OFFICES = (
    _Office(
        "Council",
        ("who speaks for {}?", "name the head of {}.", "{} is led by whom?", "whose word counts in {}?"),
        _words("Falk Cole Dorn Hale Berg Lind Moss Thorn"),
        "marn",
    ),
    _Office(
        "Harbour",
        (
            "which ship lies at {}?",
            "name the boat at {}.",
            "{} is whose berth?",
            "what sails from {}?",
        ),
        _words("Petrel Heron Osprey Curlew Dunlin Plover Avocet Fulmar"),
        "dolp",
    ),
    _Office(
        "School",
        (
            "which subject has {}?",
            "name the course at {}.",
            "{} is teaching what?",
            "what does one learn at {}?",
        ),
        _words("Botany Algebra Latin Music Optics Rhetoric Painting Fencing"),
        "quib",
    ),
    _Office(
        "Market",
        ("which goods does {} sell?", "name the wares of {}.", "{} is offering what?", "what is on at {}?"),
        _words("Amber Barley Cotton Flax Honey Indigo Pepper Saffron"),
        "frus",
    ),
)
_PLACES = tuple(
    f"{first} {last}"
    for first in _words("Upper Lower Old New East West")
    for last in _words("Mill Gate Hill Well Ford Lane")
)
_NUMBERS = range(1, 21)  # numbers in the sums
_SUMS = len(_NUMBERS) ** 2  # number of different sums with an operation
_OUT_OF = 3  # each visit draws its sums from this many times as many, which no other visit uses


@dataclass(frozen=True)
class _Question:
    kind: str
    text: str
    answer: str
    fact: str
    office: int


class MadeUpTown(Source):
    """visits: how many, of one office after the other. offices: how many take turns. facts: of an office; the first
    half of them change before each return. askings: of each fact in a visit, in one of three wordings each. sums: made
    with the office's operation in a visit, drawn from three times as many, which are this visit's alone. choices:
    answers to choose from that a question names; 0 names none, and the answer is open."""

    summary: ClassVar[str] = "questions about a made-up town whose facts stay or change, for systems with memory"
    takes: ClassVar[tuple[str, ...]] = ("using",)

    visits: int = Field(8, ge=1)
    offices: int = Field(4, ge=1, le=len(_OFFICES))
    facts: int = Field(8, ge=1, le=len(_PLACES))
    askings: int = Field(4, ge=1)
    sums: int = Field(6, ge=0)
    choices: int = Field(0, ge=0, le=8)
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _within_reach(self) -> Self:
        if self.choices == 1:
            raise ValueError("`choices` is 1, which leaves nothing to choose. Name 2 to 8, or 0 for open answers.")
        if (most := _SUMS // _OUT_OF // -(-self.visits // self.offices)) < self.sums:
            raise ValueError(
                f"`sums` is {self.sums}; {self.visits} visits of {self.offices} offices have at most {most} each."
            )
        return self

    def check(self, spec: DatasetSpec) -> list[ValidationError]:
        """Return the errors in the list of visits to use."""
        return unknown(spec, "visit", [self._visit(visit) for visit in range(self.visits)])

    def fingerprint(self, spec: DatasetSpec, cache_dir: Path) -> str:
        """Return the hash of everything that determines the questions."""
        return digest_of({"name": "made_up_town", "generator": VERSION, "options": self.model_dump()})

    def load(self, spec: DatasetSpec, cache_dir: Path, progress: Progress | None = None) -> Dataset:
        """Return the dataset; it is generated in milliseconds, so nothing is cached."""
        train = self._samples("train", [list(self._stream(visit)) for visit in range(self.visits)])
        test = self._samples("test", [list(self._lasting(visit)) for visit in range(self.visits)])
        notes = ("The questions are generated: facts about a town that does not exist.",)
        return Dataset("made_up_town", "text", train, test, (), self.fingerprint(spec, cache_dir), notes=notes)

    def _visit(self, visit: int) -> str:
        return f"{_OFFICES[visit % self.offices].name.lower()} {visit // self.offices + 1}"

    def _samples(self, part: str, visits: list[list[_Question]]) -> Samples:
        pairs = [(self._visit(visit), question) for visit, questions in enumerate(visits) for question in questions]
        draw = np.random.default_rng([self.seed, ("train", "test").index(part)])
        return Samples(
            np.array([question.text + self._offered(question, draw) for _, question in pairs], dtype=object),
            np.array([question.answer for _, question in pairs], dtype=object),
            np.array([f"made_up_town/{part}/{number:05d}" for number in range(len(pairs))]),
            domains=np.array([visit for visit, _ in pairs]),
            topics=np.array([question.kind for _, question in pairs]),
            facts=np.array([question.fact for _, question in pairs]),
            subjects=np.array([_OFFICES[question.office].name for _, question in pairs]),
        )

    def _stream(self, visit: int) -> Iterator[_Question]:
        """Yield the questions of a visit, in order."""
        number, draw = visit % self.offices, np.random.default_rng([self.seed, 2, visit])
        office, answers = _OFFICES[number], self._answers(visit)
        questions = [
            self._fact(number, fact, office.wordings[int(draw.integers(3))], answer)
            for fact, answer in enumerate(answers)
            for _ in range(self.askings)
        ]
        questions += [self._sum(number, a, b) for a, b in self._pairs(visit)]
        yield from (questions[i] for i in draw.permutation(len(questions)))

    def _lasting(self, visit: int) -> Iterator[_Question]:
        """Yield the questions of a visit's test set; all facts, if its office is not visited again."""
        number, again = visit % self.offices, visit + self.offices < self.visits
        for fact, answer in enumerate(self._answers(visit)):
            if fact >= self._changing or not again:
                yield self._fact(number, fact, _OFFICES[number].wordings[3], answer)

    @property
    def _changing(self) -> int:
        return self.facts // 2

    def _answers(self, visit: int) -> list[str]:
        """Return the current answers to the facts of the visited office; changed facts have a new answer."""
        office, draw = _OFFICES[visit % self.offices], np.random.default_rng([self.seed, 3, visit % self.offices])
        now = draw.integers(len(office.answers), size=self.facts)
        for _ in range(visit // self.offices):
            steps = draw.integers(1, len(office.answers), size=self._changing)
            now[: self._changing] = (now[: self._changing] + steps) % len(office.answers)
        return [office.answers[i] for i in now]

    def _fact(self, number: int, fact: int, wording: str, answer: str) -> _Question:
        places = np.random.default_rng([self.seed, 4, number]).permutation(len(_PLACES))
        office, place = _OFFICES[number], _PLACES[places[fact]]
        kind = "changes" if fact < self._changing else "stays"
        text = f"{office.name}: {wording.format(place)}"
        return _Question(kind, text, answer, f"{office.name}, {place}", number)

    def _pairs(self, visit: int) -> Iterator[tuple[int, int]]:
        number, again = visit % self.offices, visit // self.offices
        order = np.random.default_rng([self.seed, 5, number]).permutation(_SUMS)
        choices = order[again * _OUT_OF * self.sums :][: _OUT_OF * self.sums]
        for code in np.random.default_rng([self.seed, 6, visit]).choice(choices, self.sums if len(choices) else 0):
            a, b = divmod(int(code), len(_NUMBERS))
            yield _NUMBERS[a], _NUMBERS[b]

    def _sum(self, number: int, a: int, b: int) -> _Question:
        """Return a question with an office's operation, p a + q b, where p and q are from 1 to 4, not both 1."""
        p, q = divmod(int(np.random.default_rng([self.seed, 7, number]).integers(1, 16)), 4)
        text = f"{_OFFICES[number].name}: how much is {a} {_OFFICES[number].operation} {b}?"
        return _Question("rule", text, str((p + 1) * a + (q + 1) * b), text, number)

    def _offered(self, question: _Question, draw: Generator) -> str:
        """Return the answer and others of its kind, in random order."""
        if not self.choices:
            return ""
        if question.kind == "rule":
            near = range(max(1, int(question.answer) - 8), int(question.answer) + 9)
            others = [str(number) for number in near if str(number) != question.answer]
        else:
            others = [answer for answer in _OFFICES[question.office].answers if answer != question.answer]
        offered = [question.answer, *draw.choice(others, self.choices - 1, replace=False).tolist()]
        return CHOICES + "; ".join(offered[i] for i in draw.permutation(self.choices))
