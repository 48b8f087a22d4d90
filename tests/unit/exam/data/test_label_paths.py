"""A label that is the path of a file no label is read from is an error with its line, and never a class."""

from __future__ import annotations

import numpy as np
import pytest

from ianvs.config.spec import DatasetSpec
from ianvs.exam import data
from tests.errors import recorded
from tests.unit.exam.data.pictures import write_index, write_picture


def listed(folder, labels: list[str], name: str = "index.txt") -> DatasetSpec:
    lines = ["image,label"] if name.endswith(".csv") else []
    for i, label in enumerate(labels):
        write_picture(folder / f"{i}.png", seed=i)
        lines.append(f"{i}.png,{label}" if name.endswith(".csv") else f'{i}.png "{label}"')
    source = (write_index(folder, lines, name),)
    return DatasetSpec(train=source, test=source)


@pytest.mark.parametrize("name", ["index.txt", "index.csv"])
@pytest.mark.parametrize("suffix", [".mat", ".nii.gz", ".nii", ".txt", ".json", ".xml", ".npz", ".pt", ".TXT"])
def test_a_path_of_another_file_is_refused_with_its_line(tmp_path, name, suffix):
    problem = data.check_dataset(listed(tmp_path, ["lab/0" + suffix, "lab/1" + suffix], name)).problems[0]
    assert suffix in problem.message
    assert problem.place.line == (2 if name.endswith(".csv") else 1)
    assert not problem.warning


def test_an_unknown_ending_is_a_path_where_there_is_such_a_file(tmp_path):
    (tmp_path / "lab").mkdir()
    for i in range(2):
        (tmp_path / f"lab/{i}.xyz").write_text("1 2 3")
    assert recorded(data.check_dataset(listed(tmp_path, ["lab/0.xyz", "lab/1.xyz"])).problems) == [
        ("wrong-path-type", "index.txt:1:1")
    ]


def test_a_path_among_classes_is_refused(tmp_path):
    problem = data.check_dataset(listed(tmp_path, ["cat", "dog", "lab/2.mat"])).problems[0]
    assert problem.place.line == 3


@pytest.mark.parametrize("names", [["v1.0", "v1.1"], ["St. Bernard", "dog"], ["a/b", "a/c"], ["No. 5", "e.g."]])
def test_a_class_may_have_a_dot_or_a_slash(tmp_path, names):
    spec = listed(tmp_path, names)
    assert data.load(spec, tmp_path / "cache").classes == tuple(sorted(names))


def test_arrays_in_npy_files_are_masks(tmp_path):
    mask = np.arange(30).reshape(6, 5) % 4
    for i in range(2):
        np.save(tmp_path / f"{i}.npy", mask[None] if i else mask)
    dataset = data.load(listed(tmp_path, ["0.npy", "1.npy"]), tmp_path / "cache")
    assert dataset.kind == "segmentation"
    np.testing.assert_array_equal(dataset.train.y, [mask, mask])
