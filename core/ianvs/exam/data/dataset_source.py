"""What a source is: a dataset that a testenv names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from ianvs.base.errors import Problem
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.cache import Progress
from ianvs.exam.data.dataset import Dataset
from ianvs.exam.data.options import Options

__all__ = ["Source"]


class Source(Options, ABC):
    """A dataset by name: a class that an entry point of the group `ianvs.datasets` names. Its fields are its options.

    Nothing heavy is imported before `load`. Raise SourceError, or any IanvsError, for what can't be read.
    summary: a line for `ianvs dataset list`. takes: of `using` and `image_size`, the keys that mean something to it.
    """

    summary: ClassVar[str]
    takes: ClassVar[tuple[str, ...]] = ()

    def check(self, spec: DatasetSpec) -> list[Problem]:
        """What is wrong beside the options, and can be found without decoding."""
        return []

    @abstractmethod
    def fingerprint(self, spec: DatasetSpec, cache_dir: Path) -> str:
        """A hash that changes when, and only when, the samples do. The cache may keep what it takes to find out."""

    @abstractmethod
    def load(self, spec: DatasetSpec, cache_dir: Path, progress: Progress | None = None) -> Dataset:
        """The samples. What is slow to read is kept in the cache (ianvs.exam.data.cache), as memory maps."""
