"""What sources have in common whose samples are arrays that are made at once."""

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

VERSION = 1  # part of every fingerprint: raise it when the same files give other samples

Arrays = dict[str, NDArray[Any]]


class ArraySource(Source):
    """Arrays, read or made once and from the cache afterwards."""

    kind: ClassVar[str] = "classification"  # or another data type
    classes: ClassVar[tuple[str, ...] | None] = None  # None: `read` gives them

    @abstractmethod
    def read(self, spec: DatasetSpec) -> Arrays:
        """x_train, y_train and ids_train, the same of test; perhaps domains_train and domains_test, and classes."""

    def files(self, spec: DatasetSpec) -> list[Path]:
        """What is read: its content is part of the fingerprint."""
        return []

    def digests(self, spec: DatasetSpec, cache_dir: Path) -> list[str]:
        """Of the content of the files, in their order."""
        return file_digests([os.fspath(path) for path in self.files(spec)], cache_dir)

    def facts(self, spec: DatasetSpec) -> Mapping[str, object]:
        """What else the samples depend on, beside files and options."""
        return {}

    def class_lists(self) -> Mapping[str, tuple[str, ...]]:
        """Return names of the classes by domain, where domains have lists of their own."""
        return {}

    def fingerprint(self, spec: DatasetSpec, cache_dir: Path) -> str:
        """Return the hash of the files, the options and what else there is."""
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
        """Return (N, ...) of "train" or "test", as the data type has them."""
        y = arrays[f"y_{part}"]
        return y if self.kind == "segmentation" else np.array(y, dtype=np.int64)

    def load(self, spec: DatasetSpec, cache_dir: Path, progress: Progress | None = None) -> Dataset:
        """Memory maps."""
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
    """Samples that are drawn, in domains. `generator` changes when the same options give other samples."""

    takes: ClassVar[tuple[str, ...]] = ("using",)
    generator: ClassVar[int]
    domains: ClassVar[tuple[str, ...]]

    def check(self, spec: DatasetSpec) -> list[ValidationError]:
        """What is wrong with the domains to use."""
        return unknown(spec, "domain", self.domains)

    @abstractmethod
    def made(self, domain: str, part: str, domains: Sequence[str]) -> Arrays:
        """x, y, ids and maybe more of a domain's "train" or "test". domains: all that are used."""

    def read(self, spec: DatasetSpec) -> Arrays:
        """Domain by domain in the order of `using`."""
        domains, arrays = spec.using or self.domains, Arrays()
        for part in ("train", "test"):
            made = [self.made(domain, part, domains) for domain in domains]
            arrays |= {f"{name}_{part}": np.concatenate([drawn[name] for drawn in made]) for name in made[0]}
            arrays[f"domains_{part}"] = np.repeat(np.array(domains, dtype=str), [len(drawn["x"]) for drawn in made])
        return arrays

    def facts(self, spec: DatasetSpec) -> Mapping[str, object]:
        """Its version, and the order of the domains, which is that of the samples."""
        return {"generator": str(self.generator), "using": list(spec.using)}


def unknown(spec: DatasetSpec, noun: str, names: Sequence[str]) -> list[ValidationError]:
    """Return the domains to use that are not there. noun: as messages call a domain."""
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
