"""Generated "yearly news": short conversations about facts, some of which change from year to year.

In every topic (the mayor, the winner of the cup, the place of the fair, the price of bread) some subjects are asked
about every year, each year with another answer; others are news of one year only. Training year after year overwrites
what was true before, unless the model heeds the system prompt, which names the year. A substitute for the yearly
instructions of Continual-News, small enough for a tiny model to learn in seconds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ianvs.base.errors import InvalidValue

VERSION = 1  # increase it when the same arguments give other conversations

FIRST_YEAR = 2022


def _words(text: str) -> tuple[str, ...]:
    return tuple(" ".join(word.split()) for word in text.split(","))


_CITIES = _words(
    """
    Varholm, Norford, Helmond, Briswick, Tarnau, Olsted, Quelby, Marsk, Fendal, Ystrad, Kolmar, Dunvik, Ruhla,
    Sande, Wexley, Zeist, Assen, Corby, Ebern, Goslar, Hexham, Ilmen, Jever, Lohr
    """
)
_CUPS = _words(
    """
    rowing, chess, curling, fencing, archery, sailing, judo, polo, tennis, skating, diving, cycling, boxing, golf,
    hockey, karate, luge, netball, rugby, squash, surfing, darts, bowls, croquet
    """
)
_EVENTS = _words(
    """
    book fair, jazz week, film prize, garden show, kite day, opera night, toy fair, tea feast, boat parade, light
    show, mask ball, craft market, wine fest, stamp fair, dog show, poetry slam, art walk, robot expo, moon party,
    folk dance, choir day, comic con, food rally, clock fair
    """
)
_GOODS = _words(
    """
    bread, milk, rice, salt, soap, paper, sugar, wool, coal, honey, flour, glass, butter, candles, cheese, cotton,
    eggs, ink, leather, nails, olives, pepper, rope, tea
    """
)
_FIRST = _words("Ada, Ben, Cleo, Dirk, Elsa, Finn")
_LAST = _words("Berg, Cole, Dahl, Eker, Falk, Grau")
_COLOURS = _words("Red, Blue, Green, Grey, White, Black")
_ANIMALS = _words("Foxes, Owls, Bears, Hares, Wolves, Crows")
_PARTS = _words("North, South, East, West, Old, New")
_SITES = _words("Arden, Bryn, Corvo, Delft, Ember, Fjord")
_COUNTS = _words("two, three, four, five, six, seven")
_COINS = _words("cents, pence, dimes, kroner, francs, pesos")


@dataclass(frozen=True)
class _Topic:
    """Questions of one kind: two wordings about a subject, and the two words of an answer."""

    name: str
    subjects: tuple[str, ...]
    questions: tuple[str, str]
    words: tuple[tuple[str, ...], tuple[str, ...]]


_TOPICS = (
    _Topic("politics", _CITIES, ("Who is the mayor of {}?", "Name the mayor of {}."), (_FIRST, _LAST)),
    _Topic("sport", _CUPS, ("Who won the {} cup?", "Name the winner of the {} cup."), (_COLOURS, _ANIMALS)),
    _Topic("culture", _EVENTS, ("Where was the {} held?", "Name the place of the {}."), (_PARTS, _SITES)),
    _Topic("prices", _GOODS, ("What does {} cost?", "Name the price of {}."), (_COUNTS, _COINS)),
)
TOPICS = tuple(topic.name for topic in _TOPICS)


@dataclass(frozen=True)
class News:
    """One conversation: the system prompt that names the year, and turns of (question, answer)."""

    year: str
    topic: str
    system: str
    turns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Fact:
    questions: tuple[str, str]
    answer: str


def make_news(years: int, recurring: int, once: int, seed: int, part: str) -> list[News]:
    """Return conversations of `years` years: in each topic `recurring` subjects of every year and `once` subjects of
    one year.

    part "train": every fact of a year twice, in both wordings: once in its own conversation, once as a turn of a longer
    one. part "test": every fact once, in either wording and either kind of conversation.
    """
    require_subjects(years, recurring, once)
    news: list[News] = []
    for year in range(years):
        for number, topic in enumerate(_TOPICS):
            facts = _facts(topic, year, recurring, once, np.random.default_rng([seed, number]))
            draw = np.random.default_rng([seed, number, year, ("train", "test").index(part)])
            news += _news_of(str(FIRST_YEAR + year), topic.name, facts, part, draw)
    return news


def _news_of(year: str, topic: str, facts: Sequence[_Fact], part: str, draw: np.random.Generator) -> Iterator[News]:
    system = f"It is {year}. Answer with the news of {year}."
    wording = draw.integers(0, 2, len(facts))
    order = draw.permutation(len(facts)).tolist()
    alone, together = (order, order) if part == "train" else (order[::2], order[1::2])
    for i in alone:
        yield News(year, topic, system, ((facts[i].questions[wording[i]], facts[i].answer),))
    for group in _groups(together):
        turns = tuple((facts[i].questions[1 - wording[i]], facts[i].answer) for i in group)
        yield News(year, topic, system, turns)


def _groups(order: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield groups of two or three, as evenly as possible."""
    parts = max(1, round(len(order) / 2.5))
    for group in np.array_split(np.asarray(order, dtype=np.int64), parts):
        if len(group):
            yield group.tolist()


def _facts(topic: _Topic, year: int, recurring: int, once: int, draw: np.random.Generator) -> list[_Fact]:
    """Return the facts of a year; no answer is given twice, for any subject in any year."""
    subjects = [topic.subjects[i] for i in draw.permutation(len(topic.subjects))]
    pairs = draw.permutation(len(topic.words[0]) * len(topic.words[1]))
    each = recurring + once
    chosen = subjects[:recurring] + subjects[recurring + year * once : recurring + (year + 1) * once]
    facts = []
    for subject, pair in zip(chosen, pairs[year * each : (year + 1) * each].tolist(), strict=True):
        first, second = divmod(pair, len(topic.words[1]))
        answer = f"{topic.words[0][first]} {topic.words[1][second]}"
        facts.append(_Fact((topic.questions[0].format(subject), topic.questions[1].format(subject)), answer))
    return facts


def require_subjects(years: int, recurring: int, once: int) -> None:
    """Raise ValueError if there are not enough subjects."""
    subjects, answers = recurring + years * once, years * (recurring + once)
    most = min(len(topic.subjects) for topic in _TOPICS)
    possible = min(len(topic.words[0]) * len(topic.words[1]) for topic in _TOPICS)
    if recurring + once < 1 or subjects > most or answers > possible:
        raise InvalidValue(
            f"`recurring` {recurring} and `once` {once} in each of {years} years are {subjects} subjects and {answers} "
            f"answers of a topic. A year has at least 1; there are {most} subjects and {possible} answers.",
            "out-of-range",
        )
