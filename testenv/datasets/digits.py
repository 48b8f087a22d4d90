"""The source `digits`."""

import importlib.util
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.split import stratified_split
from ianvs.testenv.datasets.array_source import Arrays, ArraySource, numbered


class Digits(ArraySource):
    """1797 images that ship with scikit-learn, split by class.

    validation_ratio: for tuning. Asked is this share of the training part; the test part is left out.
    """

    summary: ClassVar[str] = "handwritten digits of 8x8 pixels, shipped with scikit-learn; 1797 samples"
    classes: ClassVar[tuple[str, ...] | None] = tuple("0123456789")

    test_ratio: float = Field(0.2, gt=0, lt=1)
    split_seed: int = Field(0, ge=0)
    validation_ratio: float | None = Field(None, gt=0, lt=1)

    def files(self, spec: DatasetSpec) -> list[Path]:
        """Return the one file, found without importing its package."""
        package = importlib.util.find_spec("sklearn")
        folders = package.submodule_search_locations if package is not None else None
        return [Path(next(iter(folders or ["."]))) / "datasets/data/digits.csv.gz"]

    def read(self, spec: DatasetSpec) -> Arrays:
        """Return x as (N, 8, 8, 1) float32 in [0, 1]."""
        table = np.loadtxt(self.files(spec)[0], delimiter=",")  # as load_digits() does; importing it takes 2 seconds
        x, y = (table[:, :-1] / 16).astype(np.float32).reshape(-1, 8, 8, 1), table[:, -1].astype(np.int64)
        generator = np.random.default_rng(self.split_seed)
        train, test = stratified_split(y, len(y), self.test_ratio, generator)
        if self.validation_ratio is not None:
            remaining, taken = stratified_split(y[train], len(train), self.validation_ratio, generator)
            train, test = train[remaining], train[taken]
        arrays: Arrays = {}
        for part, keep in (("train", train), ("test", test)):
            arrays |= {f"x_{part}": x[keep], f"y_{part}": y[keep], f"ids_{part}": numbered("", keep, 4)}
        return arrays
