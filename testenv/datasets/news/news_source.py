"""The source `yearly_news`: generated conversations about facts, some of which change from year to year."""

from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field, model_validator

from ianvs.base.errors import Problem, closest, one_line
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data import Dataset, Progress, Samples, Source
from ianvs.exam.data.conversation_forms import Conversation
from ianvs.exam.data.conversations import samples_of
from ianvs.exam.data.fingerprint import digest_of
from ianvs.testenv.datasets.news.generated_news import FIRST_YEAR, VERSION, make_news, require_subjects


class YearlyNews(Source):
    """years: from 2022 on, each a domain. recurring, once: subjects of each of the four topics that are asked about
    every year, each time with another answer, and those of one year only."""

    summary: ClassVar[str] = (
        "generated conversations about facts, some of which change every year, a stand-in for Continual-News"
    )
    takes: ClassVar[tuple[str, ...]] = ("using",)

    years: int = Field(4, ge=1)
    recurring: int = Field(1, ge=0)
    once: int = Field(2, ge=0)
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _within_reach(self) -> Self:
        require_subjects(self.years, self.recurring, self.once)
        return self

    def check(self, spec: DatasetSpec) -> list[Problem]:
        """What is wrong with the years to use."""
        known = tuple(str(FIRST_YEAR + year) for year in range(self.years))
        return [
            Problem(
                f"yearly_news has no year '{year}'.{closest(year, known)} It has: {one_line(known)}.",
                spec.places.get("using", spec.place),
            )
            for year in spec.using
            if year not in known
        ]

    def fingerprint(self, spec: DatasetSpec, cache_dir: Path) -> str:
        """Hash of what determines the conversations."""
        return digest_of({"name": "yearly_news", "generator": VERSION, "options": self.model_dump()})

    def load(self, spec: DatasetSpec, cache_dir: Path, progress: Progress | None = None) -> Dataset:
        """Made in milliseconds, so nothing is cached."""
        notes = ("The conversations are generated, a stand-in for the yearly instructions of Continual-News.",)
        fingerprint = self.fingerprint(spec, cache_dir)
        train, test = (self._part(part) for part in ("train", "test"))
        return Dataset(
            "yearly_news", "conversation", train, test, (), fingerprint, notes=notes, test_repeats_train=True
        )

    def _part(self, name: str) -> Samples:
        news = make_news(self.years, self.recurring, self.once, self.seed, name)
        turns = [tuple(zip(*one.turns, strict=True)) for one in news]
        said = [Conversation(n.system, asked, told, n.topic) for n, (asked, told) in zip(news, turns, strict=True)]
        ids = [f"yearly_news/{name}/{number:05d}" for number in range(len(news))]
        return samples_of(said, ids, [one.year for one in news])
