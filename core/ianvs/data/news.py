"""The built-in source `yearly_news`: generated conversations about facts, some of which change from year to year."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from ianvs.config.spec import DatasetSpec
from ianvs.data.cache import Progress
from ianvs.data.conversation_forms import Conversation
from ianvs.data.conversations import samples_of
from ianvs.data.dataset import Dataset, Samples
from ianvs.data.fingerprint import digest_of
from ianvs.data.options import Options
from ianvs.errors import Problem, closest, one_line

__all__ = ["NewsOptions", "check_news", "fingerprint_news", "load_news"]


class NewsOptions(Options):
    """years: from 2022 on, each a domain. recurring, once: subjects of each of the four topics that are asked about
    every year, each time with another answer, and those of one year only."""

    years: int = Field(4, ge=1)
    recurring: int = Field(1, ge=0)
    once: int = Field(2, ge=0)
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _within_reach(self) -> Self:
        from ianvs.datasets.generated_news import require_subjects

        require_subjects(self.years, self.recurring, self.once)
        return self

    @property
    def domains(self) -> tuple[str, ...]:
        """Years as text."""
        from ianvs.datasets.generated_news import FIRST_YEAR

        return tuple(str(FIRST_YEAR + year) for year in range(self.years))


def check_news(spec: DatasetSpec, options: NewsOptions) -> list[Problem]:
    """What is wrong with the years to use."""
    known = options.domains
    return [
        Problem(
            f"yearly_news has no year '{year}'.{closest(year, known)} It has: {one_line(known)}.",
            spec.places.get("using", spec.place),
        )
        for year in spec.using
        if year not in known
    ]


def fingerprint_news(spec: DatasetSpec, options: NewsOptions, cache_dir: Path) -> str:
    """Hash of what determines the conversations."""
    from ianvs.datasets.generated_news import VERSION

    return digest_of({"name": "yearly_news", "generator": VERSION, "options": options.model_dump()})


def load_news(spec: DatasetSpec, options: NewsOptions, cache_dir: Path, progress: Progress | None = None) -> Dataset:
    """Made in milliseconds, so nothing is cached."""
    from ianvs.datasets.generated_news import make_news

    def part(name: str) -> Samples:
        news = make_news(options.years, options.recurring, options.once, options.seed, name)
        turns = [tuple(zip(*one.turns, strict=True)) for one in news]
        said = [Conversation(n.system, asked, told, n.topic) for n, (asked, told) in zip(news, turns, strict=True)]
        ids = [f"yearly_news/{name}/{number:05d}" for number in range(len(news))]
        return samples_of(said, ids, [one.year for one in news])

    fingerprint = fingerprint_news(spec, options, cache_dir)
    notes = ("The conversations are generated, a stand-in for the yearly instructions of Continual-News.",)
    return Dataset("yearly_news", "conversation", part("train"), part("test"), (), fingerprint, notes=notes)
