"""Base classes of sources whose samples are arrays that are created all at once."""

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import ValidationError, closest, one_line
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data import Dataset, Progress, Samples, Source
from ianvs.exam.data.cache import cached_arrays
from ianvs.exam.data.fingerprint import digest_of, file_digests
from ianvs.exam.data.labels import IGNORED

VERSION = 1  # part of every fingerprint: increase it when the same files give other samples

Arrays = dict[str, NDArray[Any]]


class ArraySource(Source):
    """Arrays that are read or generated once, and then taken from the cache."""

    kind: ClassVar[str] = "classification"  # or another data type
    classes: ClassVar[tuple[str, ...] | None] = None  # None: `read` returns them

    @abstractmethod
    def read(self, spec: DatasetSpec) -> Arrays:
        """Return x_train, y_train and ids_train, the same for test.

        Optionally domains_train and domains_test, and classes.
        """

    def files(self, spec: DatasetSpec) -> list[Path]:
        """Return the files to read; their content is part of the fingerprint."""
        return []

    def digests(self, spec: DatasetSpec, cache_dir: Path) -> list[str]:
        """Return the digests of the files' content, in the order of the files."""
        return file_digests([os.fspath(path) for path in self.files(spec)], cache_dir)

    def facts(self, spec: DatasetSpec) -> Mapping[str, object]:
        """Return further values that the samples depend on, besides files and options."""
        return {}

    def class_lists(self) -> Mapping[str, tuple[str, ...]]:
        """Return the names of the classes by domain, if domains have their own lists."""
        return {}

    def fingerprint(self, spec: DatasetSpec, cache_dir: Path) -> str:
        """Return the hash of the files, the options and the further facts."""
        return digest_of(
            {
                "version": VERSION,
                "name": spec.name,
                "options": self.model_dump(exclude_none=True),
                "files": self.digests(spec, cache_dir),
                **self.facts(spec),
            }
        )

    def labels(self, arrays: Arrays, part: str) -> NDArray[Any]:
        """Return the labels (N, ...) of "train" or "test", in the form of the data type."""
        y = arrays[f"y_{part}"]
        return y if self.kind == "segmentation" else np.array(y, dtype=np.int64)

    def load(self, spec: DatasetSpec, cache_dir: Path, progress: Progress | None = None) -> Dataset:
        """Return the dataset, with the arrays as memory maps."""
        fingerprint = self.fingerprint(spec, cache_dir)
        arrays = cached_arrays(cache_dir, f"{spec.name}-{fingerprint[:32]}", lambda: self.read(spec))
        classes = self.classes or tuple(arrays["classes"].tolist())
        train, test = (
            Samples(
                x=arrays[f"x_{part}"],
                y=self.labels(arrays, part),
                ids=np.array([f"{spec.name}/{name}" for name in arrays[f"ids_{part}"].tolist()], dtype=str),
                domains=arrays.get(f"domains_{part}"),
            )
            for part in ("train", "test")
        )
        lists = self.class_lists()
        return Dataset(
            str(spec.name),
            self.kind,
            train,
            test,
            classes,
            fingerprint,
            ignore_index=IGNORED if self.kind == "segmentation" else None,
            domain_classes={
                domain: tuple(classes.index(name) for name in lists[domain])
                for domain in spec.using or lists
                if domain in lists
            },
        )


class GeneratedSource(ArraySource):
    """Randomly generated samples in domains. Change `generator` when the same options give other samples."""

    takes: ClassVar[tuple[str, ...]] = ("using",)
    generator: ClassVar[int]
    domains: ClassVar[tuple[str, ...]]

    def check(self, spec: DatasetSpec) -> list[ValidationError]:
        """Return the errors in the list of domains to use."""
        return unknown(spec, "domain", self.domains)

    @abstractmethod
    def made(self, domain: str, part: str, domains: Sequence[str]) -> Arrays:
        """Return x, y, ids and possibly more of a domain's "train" or "test". domains: all that are used."""

    def read(self, spec: DatasetSpec) -> Arrays:
        """Return the samples domain by domain, in the order of `using`."""
        domains, arrays = spec.using or self.domains, Arrays()
        for part in ("train", "test"):
            made = [self.made(domain, part, domains) for domain in domains]
            arrays |= {f"{name}_{part}": np.concatenate([drawn[name] for drawn in made]) for name in made[0]}
            arrays[f"domains_{part}"] = np.repeat(np.array(domains, dtype=str), [len(drawn["x"]) for drawn in made])
        return arrays

    def facts(self, spec: DatasetSpec) -> Mapping[str, object]:
        """Return the version of the generator, and the order of the domains (and so of the samples)."""
        return {"generator": str(self.generator), "using": list(spec.using)}


def unknown(spec: DatasetSpec, noun: str, names: Sequence[str]) -> list[ValidationError]:
    """Return errors for the domains to use that do not exist. noun: the word for a domain in messages."""
    place = spec.places.get("using", spec.places.get("name", spec.place))
    return [
        ValidationError(
            f"{spec.name} has no {noun} '{name}'.{closest(name, names)} It has: {one_line(names)}.",
            place,
            code="unknown-domain",
        )
        for name in spec.using
        if name not in names
    ]


def numbered(prefix: str, numbers: NDArray[np.int64], digits: int) -> NDArray[np.str_]:
    """Return (N,) names: `prefix` and a number of `digits` digits."""
    return np.array([f"{prefix}{number:0{digits}d}" for number in numbers.tolist()], dtype=str)
