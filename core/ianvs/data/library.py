"""Built-in sources that a library reads: scikit-learn's digits, and what torchvision.datasets unpacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ianvs.config.spec import DatasetSpec
from ianvs.data.options import Options
from ianvs.data.split import stratified_split
from ianvs.errors import DataError

__all__ = ["DigitsOptions", "download_by_torchvision", "read_by_torchvision", "read_digits"]

Arrays = dict[str, NDArray[Any]]


class DigitsOptions(Options):
    """validation_ratio: for tuning. Asked is this share of the training part; the test part is left out."""

    test_ratio: float = Field(0.2, gt=0, lt=1)
    split_seed: int = Field(0, ge=0)
    validation_ratio: float | None = Field(None, gt=0, lt=1)


def read_digits(spec: DatasetSpec, options: DigitsOptions) -> Arrays:
    """1797 pictures of 8x8 pixels, (N, 8, 8, 1) float32 in [0, 1], split by class."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    x = (digits.images / 16).astype(np.float32)[..., None]
    y = digits.target.astype(np.int64)
    generator = np.random.default_rng(options.split_seed)
    train, test = stratified_split(y, len(y), options.test_ratio, generator)
    if options.validation_ratio is not None:
        kept, taken = stratified_split(y[train], len(train), options.validation_ratio, generator)
        train, test = train[kept], train[taken]
    arrays: Arrays = {}
    for part, keep in (("train", train), ("test", test)):
        arrays |= {f"x_{part}": x[keep], f"y_{part}": y[keep], f"ids_{part}": _numbered("", keep, 4)}
    return arrays


def read_by_torchvision(class_name: str) -> Callable[[DatasetSpec, Any], Arrays]:
    """Reads (N, height, width, channels) uint8 through a class of torchvision.datasets, in file order."""

    def read(spec: DatasetSpec, options: Options) -> Arrays:
        import torchvision.datasets

        arrays: Arrays = {}
        for part in ("train", "test"):
            data = getattr(torchvision.datasets, class_name)(root=spec.root, train=part == "train", download=False)
            x = np.asarray(data.data)
            arrays[f"x_{part}"] = x[..., None] if x.ndim == 3 else x
            arrays[f"y_{part}"] = np.asarray(data.targets, dtype=np.int64)
            arrays[f"ids_{part}"] = _numbered(f"{part}/", np.arange(len(x)), 5)
            arrays["classes"] = np.array(data.classes, dtype=str)
        return arrays

    return read


def download_by_torchvision(class_name: str) -> Callable[[Path], None]:
    """Downloads a class of torchvision.datasets into a root. Raises DataError."""

    def fetch(root: Path) -> None:
        import torchvision.datasets

        try:
            getattr(torchvision.datasets, class_name)(root=root, train=True, download=True)
        except (OSError, RuntimeError) as error:
            raise DataError(f"{class_name} can't be downloaded to {root}: {error}") from None

    return fetch


def _numbered(prefix: str, numbers: NDArray[np.int64], digits: int) -> NDArray[np.str_]:
    return np.array([f"{prefix}{number:0{digits}d}" for number in numbers.tolist()], dtype=str)
