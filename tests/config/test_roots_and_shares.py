"""`root` alone, and `test_share` in place of test data."""

from __future__ import annotations

import pytest

from ianvs.base.errors import ConfigError


def refusal(files):
    with pytest.raises(ConfigError) as caught:
        files.load()
    return "\n".join(map(str, caught.value.problems))


@pytest.mark.parametrize("test", ["test", "val", "validation"])
def test_parts_are_found_below_a_root(files, test):
    files.write("set/train/cat/1.png", "")
    files.write(f"set/{test}.csv", "")
    files.dataset("root: ./set")
    dataset = files.load().testenvs[0].dataset
    assert [(one.path.name, one.form) for one in (*dataset.train, *dataset.test)] == [
        ("train", "data"),
        (f"{test}.csv", "index"),
    ]
    assert dataset.train[0].place is not None and dataset.train[0].place.line == 3


def test_a_test_folder_goes_before_one_for_validation(files):
    for part in ("train", "val", "test"):
        files.write(f"set/{part}/cat/1.png", "")
    files.dataset("root: ./set")
    assert files.load().testenvs[0].dataset.test[0].path.name == "test"


def test_a_share_is_cut_off_what_the_root_holds(files):
    files.write("set/cat/1.png", "")
    files.dataset("root: ./set", "test_share: 0.2", "test_seed: 3")
    dataset = files.load().testenvs[0].dataset
    assert (dataset.train[0].path.name, dataset.test, dataset.test_share, dataset.test_seed) == ("set", (), 0.2, 3)


@pytest.mark.parametrize(
    ("inside", "keys", "expected"),
    [
        (["cat/1.png"], ["root: ./set"], "set has no train: it has cat. Expected a folder or a file train"),
        (["train/a.png"], ["root: ./set"], "set has no test or val or valid or validation: it has train"),
        (["train.csv", "train.txt", "test.csv"], ["root: ./set"], "has 2 for one part: it has train.csv, train.txt"),
        (["train/a.png", "test/a.png"], ["root: ./set", "test_share: 0.2"], "set has a test part. Keep one"),
        (["t.csv"], ["train_data: ./set/t.csv", "test_data: ./set/t.csv", "test_share: 0.2"], "are both given."),
        (["t.csv"], ["train_data: ./set/t.csv"], "no test data. Add test_index or test_data, or `test_share: 0.2`"),
        (["t.csv"], ["train_data: ./set/t.csv", "test_share: 20"], "test_share"),
    ],
)  # fmt: skip
def test_what_lies_there_otherwise_is_told(files, inside, keys, expected):
    for name in inside:
        files.write(f"set/{name}", "")
    files.dataset(*keys)
    assert expected in refusal(files)
