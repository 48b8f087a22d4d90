"""Datasets by name: entry points of any installed package."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import numpy as np
import pytest

from ianvs.base.errors import Location
from ianvs.config.spec import DatasetSpec
from ianvs.exam import data
from ianvs.processes.engines.ray.ray_files import gather_code
from tests.errors import errors_of, recorded
from tests.packages import install

PACKAGE = """
from typing import ClassVar

import numpy as np

from ianvs.exam.data import Dataset, Samples, Source


class Ramp(Source):
    summary: ClassVar[str] = "numbers that grow"
    takes: ClassVar[tuple[str, ...]] = ("image_size",)

    count: int = 4

    def fingerprint(self, spec, cache_dir):
        return f"ramp {self.count}"

    def load(self, spec, cache_dir, progress=None):
        x = np.arange(self.count, dtype=np.float32)[:, None]
        part = Samples(x, np.arange(self.count) % 2, np.arange(self.count).astype(str))
        return Dataset("ramp", "classification", part, part, ("even", "odd"), self.fingerprint(spec, cache_dir))


def no_source():
    return {}
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package that is installed beside ianvs."""
    points = "[ianvs.datasets]\nramp = ramps:Ramp\nodd = ramps:no_source\nbroken = ramps_of_tomorrow:Ramp\n"
    install(tmp_path / "installed", monkeypatch, "ramps", PACKAGE, points)


@pytest.mark.usefixtures("package")
def test_another_package_brings_a_dataset(tmp_path: Path):
    spec = DatasetSpec(name="ramp", options={"count": 6})
    assert data.check_dataset(spec).problems == []
    assert data.fingerprint(spec, tmp_path) == "ramp 6"
    np.testing.assert_array_equal(data.load(spec, tmp_path).train.x[:, 0], np.arange(6))


@pytest.mark.usefixtures("package")
def test_its_options_and_keys_are_checked_before_it_is_asked(tmp_path: Path):
    place = Location(Path("testenv.yaml"), 5, 7)
    spec = DatasetSpec(name="ramp", options={"cuont": 6}, using=("CS",), places={"cuont": place})
    assert recorded(data.check_dataset(spec).problems) == [
        ("unknown-option", "testenv.yaml:5:7"),
        ("conflicting-keys", ""),
    ]
    assert errors_of(data.load, spec, tmp_path) == [("unknown-option", "testenv.yaml:5:7"), ("conflicting-keys", "")]


@pytest.mark.usefixtures("package")
def test_what_is_no_source_or_cannot_be_imported_is_told(tmp_path: Path):
    assert recorded(data.check_dataset(DatasetSpec(name="odd")).problems) == [("broken-contract", "")]
    assert recorded(data.check_dataset(DatasetSpec(name="broken")).problems) == [("unloadable-plugin", "")]


def test_nodes_of_a_cluster_get_the_entry_points_with_the_code(tmp_path: Path):
    gather_code([], tmp_path)
    (found,) = importlib.metadata.distributions(name="ianvs-bench", path=[str(tmp_path)])
    names = {point.name for point in found.entry_points if point.group == "ianvs.datasets"}
    assert {"digits", "clear10", "yearly_news"} <= names
    assert {point.name for point in found.entry_points if point.group == "ianvs.algorithms"} >= {"EWC"}
    assert (tmp_path / "ianvs/testenv/datasets/digits.py").is_file()
