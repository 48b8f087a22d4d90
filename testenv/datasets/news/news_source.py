"""The source `yearly_news`: generated conversations about facts, some of which change from year to year."""

from collections.abc import Iterator
from typing import ClassVar, Self

from pydantic import Field, model_validator

from ianvs.exam.data.conversation_forms import Conversation
from ianvs.testenv.datasets.generated_talk import GeneratedTalk
from ianvs.testenv.datasets.news.generated_news import FIRST_YEAR, VERSION, make_news, require_subjects


class YearlyNews(GeneratedTalk):
    """years: from 2022 on, each a domain. recurring, once: subjects of each of the four topics that are asked about
    every year, each time with another answer, and those of one year only."""

    summary: ClassVar[str] = (
        "generated conversations about facts, some of which change every year, a stand-in for Continual-News"
    )
    title: ClassVar[str] = "yearly_news"
    generator: ClassVar[int] = VERSION
    note: ClassVar[str] = "The conversations are generated, a stand-in for the yearly instructions of Continual-News."

    years: int = Field(4, ge=1)
    recurring: int = Field(1, ge=0)
    once: int = Field(2, ge=0)
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _within_reach(self) -> Self:
        require_subjects(self.years, self.recurring, self.once)
        return self

    @property
    def names(self) -> list[str]:
        return [str(FIRST_YEAR + year) for year in range(self.years)]

    def conversations(self, part: str) -> Iterator[tuple[str, Conversation]]:
        for news in make_news(self.years, self.recurring, self.once, self.seed, part):
            questions, replies = zip(*news.turns, strict=True)
            yield news.year, Conversation(news.system, questions, replies, news.topic)
