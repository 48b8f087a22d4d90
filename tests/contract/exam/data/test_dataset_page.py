"""docs/extending.md: what it shows works as it stands there."""

from __future__ import annotations

import re

import pytest
import yaml

from ianvs.config.spec import DatasetSpec
from ianvs.exam import data
from tests.documents import blocks
from tests.unit.exam.data.pictures import write_picture

pytestmark = pytest.mark.usefixtures("functions_in_forks")

FUNCTIONS = {
    re.findall(r"^def (\w+)", block, re.M)[0]: block for block in blocks("extending.md", "A dataset", "python")
}


@pytest.mark.parametrize(
    ("name", "kind", "shape", "classes"),
    [
        ("shapes", "classification", (80, 16, 16, 1), ("circle", "square")),
        ("photos", "classification", (4, 6, 5, 3), ("cat", "dog")),
        ("fake", "classification", (50, 8, 8, 3), ("0", "1", "2", "3", "4")),
        ("capitals", "conversation", (4,), ()),
    ],
)
def test_each_function_of_the_page_is_a_dataset(tmp_path, name, kind, shape, classes):
    for number in range(8):
        write_picture(
            tmp_path / "photos" / ("train", "test")[number % 2] / ("cat", "dog")[number // 4] / f"{number}.png"
        )
    (tmp_path / f"{name}.py").write_text(FUNCTIONS[name])
    spec = DatasetSpec(name=name, url=tmp_path / f"{name}.py", root=tmp_path / "photos")
    assert [problem for problem in data.check_dataset(spec, tmp_path / "cache").problems if not problem.warning] == []
    dataset = data.load(spec, tmp_path / "cache")
    assert (dataset.kind, dataset.train.x.shape, dataset.classes) == (kind, shape, classes)


def test_all_functions_of_the_page_were_tried():
    assert set(FUNCTIONS) == {"shapes", "photos", "fake", "capitals"}


def test_the_testenv_of_the_page_names_arguments_of_its_function():
    (block,) = blocks("extending.md", "A dataset", "yaml")
    dataset = yaml.safe_load(block)["testenv"]["dataset"]
    assert dataset == {"name": "shapes", "url": "./shapes.py", "train": 100}
