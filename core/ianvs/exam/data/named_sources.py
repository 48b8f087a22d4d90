"""Sources: datasets that a testenv names, found by entry points of the group `ianvs.datasets`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from ianvs.base.errors import ConfigError, PluginError, ValidationError
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.cache import Progress
from ianvs.exam.data.dataset import Dataset
from ianvs.exam.data.options import Options, check_options
from ianvs.plugins.loader import load


class Source(Options, ABC):
    """A dataset by name: a class in the entry points `ianvs.datasets`. Its fields are its options.

    Nothing heavy is imported before `load`. Raise SourceError, or any IanvsError, for data that can't be read.

    Attributes:
        summary: A line for `ianvs dataset list`.
        takes: Which of the keys `using` and `image_size` it supports.
        made_of: Collections that its samples were taken from, to find backbones that were trained on them.
    """

    summary: ClassVar[str]
    takes: ClassVar[tuple[str, ...]] = ()
    made_of: ClassVar[tuple[str, ...]] = ()

    def check(self, spec: DatasetSpec) -> list[ValidationError]:
        """Return errors that can be found without decoding, besides those of options."""
        return []

    def files(self, spec: DatasetSpec) -> Sequence[Path]:
        """Return the files that it reads, also those of installed packages: sandboxes hide them from learners."""
        return ()

    @abstractmethod
    def fingerprint(self, spec: DatasetSpec, cache_dir: Path) -> str:
        """Return a hash that changes exactly if the samples change. Intermediate results may be cached."""

    @abstractmethod
    def load(self, spec: DatasetSpec, cache_dir: Path, progress: Progress | None = None) -> Dataset:
        """Return the samples. Data that are slow to read are cached (ianvs.exam.data.cache) as memory maps."""


ENTRY_POINTS = "ianvs.datasets"
_OF_FILES = (
    *("train", "test", "image_size", "value_range", "mask_values", "layout", "storage", "classes", "label", "using"),
    *("pictures", "columns", "system_prompt", "skip_bad"),
)


def check_named(spec: DatasetSpec) -> list[ValidationError]:
    """Return all errors of a dataset with a `name`, without loading it."""
    return _opened(spec)[1]


def find_source(spec: DatasetSpec) -> Source:
    """Return the source that `spec` names, with its options. Raises ConfigError with all errors."""
    source, problems = _opened(spec)
    errors = [problem for problem in problems if not problem.warning]
    if source is None or errors:
        raise ConfigError(errors)
    return source


def _opened(spec: DatasetSpec) -> tuple[Source | None, list[ValidationError]]:
    name = spec.name or ""
    place = spec.places.get("name", spec.place)
    try:
        kind: object = load(spec.source, name, ENTRY_POINTS).target
    except PluginError as error:
        return None, [ValidationError.from_exception(error, place, "unloadable-plugin")]
    if not (isinstance(kind, type) and issubclass(kind, Source)):
        message = f"what is installed as the dataset '{name}' is no subclass of ianvs.exam.data.Source."
        return None, [ValidationError(message, place, code="broken-contract")]
    source, problems = check_options(kind, spec.options, f"the dataset {name}", place, spec.places)
    for key in _OF_FILES:
        if key not in kind.takes and getattr(spec, key):
            message = f"`{key}` is for data in files; {name} brings its own. Take out `{key}` or `name`."
            problems.append(ValidationError(message, spec.places.get(key, place), code="conflicting-keys"))
    return source, problems + (source.check(spec) if source is not None else [])
