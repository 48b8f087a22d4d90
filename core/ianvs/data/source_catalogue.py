"""The table of built-in sources, and what an entry of it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from ianvs.config.spec import DatasetSpec
from ianvs.data.cache import Progress
from ianvs.data.clear import ClearOptions, check_clear, fingerprint_clear, load_clear
from ianvs.data.dataset import Dataset
from ianvs.data.drift import DriftOptions, drift_classes, drift_version, read_drift
from ianvs.data.library import DigitsOptions, download_by_torchvision, read_by_torchvision, read_digits
from ianvs.data.news import NewsOptions, check_news, fingerprint_news, load_news
from ianvs.data.options import Options
from ianvs.data.streets import StreetsOptions, read_streets, streets_classes, streets_version
from ianvs.errors import Problem

__all__ = ["SOURCES", "Arrays", "Builtin", "Release"]

Arrays = Mapping[str, NDArray[Any]]  # x_, y_ and ids_train, the same of test; `classes` where the files name them


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
    kind: str = "classification"  # or "segmentation"
    domains: Callable[[], Mapping[str, tuple[str, ...]]] | None = None  # class names by domain
    version: Callable[[], str] | None = None  # of a generator: changes when the same options make other samples


@dataclass(frozen=True)
class Release:
    """A named source whose own files say what there is: `check`, `fingerprint` and `load` read them."""

    name: str
    summary: str
    options: type[Options]
    check: Callable[[DatasetSpec, Any], list[Problem]]
    fingerprint: Callable[[DatasetSpec, Any, Path], str]
    load: Callable[[DatasetSpec, Any, Path, Progress | None], Dataset]
    takes: tuple[str, ...] = ()  # keys of a dataset that it uses too


def _of_torchvision(
    name: str, class_name: str, summary: str, files: tuple[str, ...], classes: tuple[str, ...] | None
) -> Builtin:
    reader, fetch = read_by_torchvision(class_name), download_by_torchvision(class_name)
    return Builtin(name, summary, files, reader, fetch, classes=classes)


_TEN = tuple("0123456789")
_IDX = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
_CIFAR10 = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch", "batches.meta")

_DIGITS = Builtin(
    "digits",
    "handwritten digits of 8x8 pixels, shipped with scikit-learn; 1797 samples",
    ("datasets/data/digits.csv.gz",),
    read_digits,
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
    kind="segmentation",
    domains=streets_classes,
    version=streets_version,
)

_DRIFT = Builtin(
    "clear_drift",
    "generated pictures of 8 classes that drift over 10 buckets, a stand-in for CLEAR; made in seconds",
    (),
    read_drift,
    options=DriftOptions,
    domains=drift_classes,
    version=drift_version,
)


_NEWS = Release(
    "yearly_news",
    "generated conversations about facts, some of which change every year, a stand-in for Continual-News",
    NewsOptions,
    check_news,
    fingerprint_news,
    load_news,
    takes=("using",),
)


def _clear(name: str, summary: str) -> Release:
    return Release(
        name, summary, ClearOptions, check_clear, fingerprint_clear, load_clear, takes=("using", "image_size")
    )


SOURCES: Mapping[str, Builtin | Release] = MappingProxyType(
    {
        source.name: source
        for source in (
            _DIGITS,
            _STREETS,
            _DRIFT,
            _NEWS,
            _clear("clear10", "photographs by year in 10 buckets, 11 classes; 33 000 + 5 500 (Lin et al. 2021)"),
            _clear("clear100", "photographs by year in 10 buckets, 100 classes; 100 000 + 50 000 (Lin et al. 2021)"),
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
