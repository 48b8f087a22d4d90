"""Base class of sources whose conversations are generated."""

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from ianvs.base.errors import ValidationError
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data import Dataset, Progress, Samples, Source
from ianvs.exam.data.conversation_forms import Conversation
from ianvs.exam.data.conversations import samples_of
from ianvs.exam.data.fingerprint import digest_of
from ianvs.testenv.datasets.array_source import unknown


class GeneratedTalk(Source):
    """Change `generator` when the same options give other conversations."""

    takes: ClassVar[tuple[str, ...]] = ("using",)
    title: ClassVar[str]  # its name in a testenv
    generator: ClassVar[int]
    note: ClassVar[str]  # its description in reports
    domain: ClassVar[str] = "year"  # the word for a domain in messages
    repeats: ClassVar[bool] = True  # as `test_repeats_train` of Dataset

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of the domains."""

    @abstractmethod
    def conversations(self, part: str) -> Iterator[tuple[str, Conversation]]:
        """Yield (domain, conversation) of "train" or "test"."""

    def check(self, spec: DatasetSpec) -> list[ValidationError]:
        """Return the errors in the list of domains to use."""
        return unknown(spec, self.domain, self.names)

    def fingerprint(self, spec: DatasetSpec, cache_dir: Path) -> str:
        """Return the hash of everything that determines the conversations."""
        return digest_of({"name": self.title, "generator": self.generator, "options": self.model_dump()})

    def load(self, spec: DatasetSpec, cache_dir: Path, progress: Progress | None = None) -> Dataset:
        """Return the dataset; it is generated in milliseconds, so nothing is cached."""
        train, test = map(self._samples, ("train", "test"))
        fingerprint, notes = self.fingerprint(spec, cache_dir), (self.note,)
        return Dataset(
            self.title, "conversation", train, test, (), fingerprint, notes=notes, test_repeats_train=self.repeats
        )

    def _samples(self, part: str) -> Samples:
        domains, conversations = zip(*self.conversations(part), strict=True)
        return samples_of(
            conversations, [f"{self.title}/{part}/{number:05d}" for number in range(len(conversations))], domains
        )
