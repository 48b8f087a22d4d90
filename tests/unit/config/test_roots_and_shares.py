"""`root` alone, and `test_share` in place of test data."""

from __future__ import annotations

import pytest


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
    ("inside", "keys", "code", "at"),
    [
        (["cat/1.png"], ["root: ./set"], "missing-data", "3:5"),
        (["train/a.png"], ["root: ./set"], "missing-data", "3:5"),
        (["train.csv", "train.txt", "test.csv"], ["root: ./set"], "missing-data", "3:5"),
        (["train/a.png", "test/a.png"], ["root: ./set", "test_share: 0.2"], "conflicting-keys", "3:5"),
        (["t.csv"], ["train_data: set/t.csv", "test_data: set/t.csv", "test_share: 0.2"], "conflicting-keys", "5:5"),
        (["a.zip"], ["root: ./set/a.zip"], "wrong-path-type", "3:11"),
        (["a.csv"], ["root: ./set/a.csv", "test_share: 0.2"], "wrong-path-type", "3:11"),
        (["t.csv"], ["train_data: ./set/t.csv"], "missing-data", "3:5"),
        (["t.csv"], ["train_data: ./set/t.csv", "test_share: 20"], "out-of-range", "4:17"),
    ],
)  # fmt: skip
def test_what_lies_there_otherwise_is_told(files, inside, keys, code, at):
    for name in inside:
        files.write(f"set/{name}", "")
    files.dataset(*keys)
    assert files.errors() == [(code, f"testenv.yaml:{at}")]
