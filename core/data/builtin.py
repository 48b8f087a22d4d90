"""Built-in sources: data that a testenv names instead of listing files."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from core.config.spec import DatasetSpec
from core.data.cache import cached_arrays
from core.data.dataset import Dataset, Samples
from core.data.fingerprint import digest_of, file_digests
from core.data.labels import IGNORED
from core.data.options import Options, check_options
from core.data.split import stratified_split
from core.data.streets import StreetsOptions, read_streets, streets_classes, streets_version
from core.errors import ConfigError, DataError, Problem, closest, one_line

__all__ = ["SOURCES", "Builtin", "check_builtin", "fingerprint_builtin", "load_builtin"]

VERSION = 1  # part of every fingerprint: raise it when the same files give other samples

Arrays = Mapping[str, NDArray[Any]]  # x_, y_ and ids_train, the same of test; `classes` where the files name them


class DigitsOptions(Options):
    test_ratio: float = Field(0.2, gt=0, lt=1)
    split_seed: int = Field(0, ge=0)


class NoOptions(Options):
    pass


@dataclass(frozen=True)
class Builtin:
    """A named source. `files` are below `root`, or below the package `package` where it ships them."""

    name: str
    summary: str
    files: tuple[str, ...]
    read: Callable[[DatasetSpec, Any], Arrays]
    fetch: Callable[[Path], None] | None = None  # downloads into a root
    package: str | None = None
    classes: tuple[str, ...] | None = None  # None: `read` gives them
    options: type[Options] = NoOptions
    domains: Callable[[], Mapping[str, tuple[str, ...]]] | None = None  # class names by domain, of labelled pictures
    version: Callable[[], str] | None = None  # of a generator: changes when the same options make other samples


def check_builtin(spec: DatasetSpec) -> list[Problem]:
    """Every problem of a dataset with a `name`; loads nothing."""
    name = spec.name or ""
    place = spec.places.get("name", spec.place)
    source = SOURCES.get(name)
    if source is None:
        return [
            Problem(
                f"there is no built-in dataset '{name}'.{closest(name, SOURCES)} There are: {one_line(list(SOURCES))}.",
                place,
            )
        ]
    problems = check_options(source.options, spec.options, f"the dataset {name}", place, spec.places)[1]
    for key, value in (
        ("train", spec.train),
        ("test", spec.test),
        ("image_size", spec.image_size),
        ("classes", spec.classes),
        ("label", spec.label),
        ("using", spec.using if source.domains is None else ()),
    ):
        if value:
            message = f"`{key}` is for data in files; {name} brings its own. Take out `{key}` or `name`."
            problems.append(Problem(message, spec.places.get(key, place)))
    domains = source.domains() if source.domains is not None else {}
    for domain in spec.using if domains else ():
        if domain not in domains:
            message = f"{name} has no domain '{domain}'.{closest(domain, domains)} It has: {one_line(list(domains))}."
            problems.append(Problem(message, spec.places.get("using", place)))
    if not source.files:
        return problems
    folder = Path(source.files[0]).parent
    if source.package is None and spec.root is None:
        problems.append(Problem(f"{name} needs `root`, the folder that holds {folder}.", place))
    elif not spec.download and (missing := _missing(source, spec)):
        message = f"{missing[0]} is not there. Set `download: true`, or `root` to the folder that holds {folder}."
        problems.append(Problem(message, spec.places.get("root", place)))
    return problems


def fingerprint_builtin(spec: DatasetSpec, cache_dir: Path) -> str:
    """Hash of the source's files and options. Fetches the files if the spec allows it and they are not there."""
    source, options = _checked(spec, cache_dir)
    digests = file_digests([os.fspath(path) for path in _files(source, spec)], cache_dir)
    facts = {"version": VERSION, "name": source.name, "options": options.model_dump(), "files": digests}
    if source.version is not None:
        facts |= {"generator": source.version(), "using": list(spec.using)}
    return digest_of(facts)


def load_builtin(spec: DatasetSpec, cache_dir: Path) -> Dataset:
    """The source as memory-mapped arrays. Read by its library once, from the cache afterwards."""
    source, options = _checked(spec, cache_dir)
    fingerprint = fingerprint_builtin(spec, cache_dir)

    def make() -> Arrays:
        try:
            return source.read(spec, options)
        except RuntimeError as error:  # what torchvision raises for files that are damaged
            raise DataError(f"{source.name} can't be read below {spec.root}: {error}") from None

    arrays = cached_arrays(cache_dir, f"{source.name}-{fingerprint[:32]}", make)
    classes = source.classes or tuple(arrays["classes"].tolist())
    labelled = source.domains is not None
    parts = {
        part: Samples(
            x=arrays[f"x_{part}"],
            y=arrays[f"y_{part}"] if labelled else np.array(arrays[f"y_{part}"], dtype=np.int64),
            ids=np.array([f"{source.name}/{name}" for name in arrays[f"ids_{part}"].tolist()], dtype=str),
            domains=arrays[f"domains_{part}"] if labelled else None,
        )
        for part in ("train", "test")
    }
    if source.domains is None:
        return Dataset(source.name, "classification", parts["train"], parts["test"], classes, fingerprint)
    lists = source.domains()
    ids = {domain: tuple(classes.index(name) for name in lists[domain]) for domain in spec.using or lists}
    return Dataset(
        source.name,
        "segmentation",
        parts["train"],
        parts["test"],
        classes,
        fingerprint,
        ignore_index=IGNORED,
        domain_classes=ids,
    )


def _checked(spec: DatasetSpec, cache_dir: Path) -> tuple[Builtin, Any]:
    if problems := check_builtin(spec):
        raise ConfigError(problems)
    source = SOURCES[str(spec.name)]
    if source.fetch is not None and spec.root is not None and spec.download and _missing(source, spec):
        from filelock import FileLock

        spec.root.mkdir(parents=True, exist_ok=True)
        with FileLock(spec.root / f".{source.name}.lock"):
            source.fetch(spec.root)
        if missing := _missing(source, spec):
            raise DataError(f"{source.name} was downloaded, but {missing[0]} is not there.")
    return source, source.options.model_validate(dict(spec.options))


def _files(source: Builtin, spec: DatasetSpec) -> list[Path]:
    if source.package is None:
        return [Path(spec.root or ".") / file for file in source.files]
    found = importlib.util.find_spec(source.package)  # finds it without importing it
    folders = found.submodule_search_locations if found is not None else None
    return [Path(next(iter(folders or ["."]))) / file for file in source.files]


def _missing(source: Builtin, spec: DatasetSpec) -> list[Path]:
    return [path for path in _files(source, spec) if not path.is_file()]


def _read_digits(spec: DatasetSpec, options: DigitsOptions) -> Arrays:
    """1797 pictures of 8x8 pixels, (N, 8, 8, 1) float32 in [0, 1], split by class."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    x = (digits.images / 16).astype(np.float32)[..., None]
    y = digits.target.astype(np.int64)
    train, test = stratified_split(y, len(y), options.test_ratio, np.random.default_rng(options.split_seed))
    arrays: dict[str, NDArray[Any]] = {}
    for part, keep in (("train", train), ("test", test)):
        arrays |= {f"x_{part}": x[keep], f"y_{part}": y[keep], f"ids_{part}": _numbered("", keep, 4)}
    return arrays


def _torchvision(class_name: str) -> Callable[[DatasetSpec, Any], Arrays]:
    """Reads (N, height, width, channels) uint8 through a class of torchvision.datasets, in file order."""

    def read(spec: DatasetSpec, options: NoOptions) -> Arrays:
        import torchvision.datasets

        arrays: dict[str, NDArray[Any]] = {}
        for part in ("train", "test"):
            data = getattr(torchvision.datasets, class_name)(root=spec.root, train=part == "train", download=False)
            x = np.asarray(data.data)
            arrays[f"x_{part}"] = x[..., None] if x.ndim == 3 else x
            arrays[f"y_{part}"] = np.asarray(data.targets, dtype=np.int64)
            arrays[f"ids_{part}"] = _numbered(f"{part}/", np.arange(len(x)), 5)
            arrays["classes"] = np.array(data.classes, dtype=str)
        return arrays

    return read


def _download(class_name: str) -> Callable[[Path], None]:
    def fetch(root: Path) -> None:
        import torchvision.datasets

        try:
            getattr(torchvision.datasets, class_name)(root=root, train=True, download=True)
        except (OSError, RuntimeError) as error:
            raise DataError(f"{class_name} can't be downloaded to {root}: {error}") from None

    return fetch


def _numbered(prefix: str, numbers: NDArray[np.int64], digits: int) -> NDArray[np.str_]:
    return np.array([f"{prefix}{number:0{digits}d}" for number in numbers.tolist()], dtype=str)


def _of_torchvision(
    name: str, class_name: str, summary: str, files: tuple[str, ...], classes: tuple[str, ...] | None
) -> Builtin:
    return Builtin(name, summary, files, _torchvision(class_name), _download(class_name), classes=classes)


_TEN = tuple("0123456789")
_IDX = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
_CIFAR10 = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch", "batches.meta")

_DIGITS = Builtin(
    "digits",
    "handwritten digits of 8x8 pixels, shipped with scikit-learn; 1797 samples",
    ("datasets/data/digits.csv.gz",),
    _read_digits,
    package="sklearn",
    classes=_TEN,
    options=DigitsOptions,
)

_STREETS = Builtin(
    "streets",
    "generated street scenes in the domains CS, SYN and CR, labelled pixel by pixel; made in seconds",
    (),
    read_streets,
    options=StreetsOptions,
    domains=streets_classes,
    version=streets_version,
)

SOURCES: Mapping[str, Builtin] = MappingProxyType(
    {
        source.name: source
        for source in (
            _DIGITS,
            _STREETS,
            _of_torchvision(
                "cifar10",
                "CIFAR10",
                "photographs of 32x32 pixels in 10 classes; 50 000 + 10 000 (Krizhevsky 2009)",
                tuple(f"cifar-10-batches-py/{file}" for file in _CIFAR10),
                None,
            ),
            _of_torchvision(
                "cifar100",
                "CIFAR100",
                "photographs of 32x32 pixels in 100 classes; 50 000 + 10 000 (Krizhevsky 2009)",
                tuple(f"cifar-100-python/{file}" for file in ("train", "test", "meta")),
                None,
            ),
            _of_torchvision(
                "mnist",
                "MNIST",
                "handwritten digits of 28x28 pixels; 60 000 + 10 000 (LeCun et al. 1998)",
                tuple(f"MNIST/raw/{file}" for file in _IDX),
                _TEN,
            ),
            _of_torchvision(
                "fashion_mnist",
                "FashionMNIST",
                "pictures of clothes of 28x28 pixels; 60 000 + 10 000 (Xiao et al. 2017)",
                tuple(f"FashionMNIST/raw/{file}" for file in _IDX),
                None,
            ),
        )
    }
)
"""By the name that a testenv uses."""
