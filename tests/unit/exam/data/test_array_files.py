"""Arrays in .npy and .pt files, beside .npz."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from ianvs.base.errors import DataError
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from tests.errors import Found, located, raised, recorded

X = np.arange(24, dtype=np.float32).reshape(4, 6)
Y = np.array([5, 3, 5, 3])


def spec(train: Path, test: Path | None = None) -> DatasetSpec:
    return DatasetSpec(train=(SourceSpec(train, "data"),), test=(SourceSpec(test or train, "data"),))


def loaded(tmp_path: Path, *paths: Path) -> data.Dataset:
    assert [problem for problem in data.check_dataset(spec(*paths)).problems if not problem.warning] == []
    return data.load(spec(*paths), tmp_path / "cache")


def refusal(path: Path, quotes: bool = False) -> list[Found]:
    """What `validate` and `run` say alike. quotes: Whether a message quotes a library."""
    with pytest.raises(DataError) as caught:
        data.load(spec(path), path.parent / "cache")
    found = (located if quotes else recorded)(raised(caught.value))
    assert located(data.check_dataset(spec(path)).problems)[: len(found)] == found
    return found


@pytest.mark.parametrize(
    ("x", "y"),
    [("x_train", "y_train"), ("train-x", "train-y"), ("X", "y"), ("x.train", "y.train"), ("photos", "photos_y")],
)
def test_the_labels_of_an_npy_lie_beside_it(tmp_path, x, y):
    np.save(tmp_path / f"{x}.npy", X)
    np.save(tmp_path / f"{y}.npy", Y)
    dataset = loaded(tmp_path, tmp_path / f"{x}.npy")
    np.testing.assert_array_equal(dataset.train.x, X)
    np.testing.assert_array_equal(dataset.train.y, [1, 0, 1, 0])
    assert dataset.classes == ("3", "5")


def test_an_npy_is_not_read_into_memory(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    assert isinstance(loaded(tmp_path, tmp_path / "x.npy").train.x, np.memmap)


def test_ids_and_domains_may_lie_beside_an_npy_too(tmp_path):
    for name, array in (("x", X), ("y", Y), ("ids", np.array(list("abcd"))), ("domain", np.array(list("ppqq")))):
        np.save(tmp_path / f"{name}_train.npy", array)
    part = loaded(tmp_path, tmp_path / "x_train.npy").train
    assert (part.ids.tolist(), part.domains.tolist()) == (list("abcd"), list("ppqq"))


def test_an_npy_without_labels_says_where_they_are_looked_for(tmp_path):
    np.save(tmp_path / "x_train.npy", X)
    assert refusal(tmp_path / "x_train.npy") == [("missing-file", "x_train.npy")]


def test_pickled_objects_in_npy_are_refused_with_the_file_that_has_them(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", np.array([{}, {}, {}, {}], dtype=object), allow_pickle=True)
    assert refusal(tmp_path / "x.npy", quotes=True) == [("unreadable-data", "y.npy")]


@pytest.mark.parametrize("suffix", [".pt", ".pth"])
def test_a_pt_holds_a_dict_or_a_pair_of_tensors(tmp_path, suffix):
    pair, layout, both = (tmp_path / f"{name}{suffix}" for name in ("pair", "layout", "both"))
    x, y = torch.from_numpy(X), torch.from_numpy(Y)
    torch.save((x, y), pair)
    torch.save({"x": x, "y": ["b", "a", "b", "a"], "domain": list("ppqq"), "classes": ["b", "a"]}, layout)
    torch.save({"x_train": x, "y_train": y, "x_test": x[:2], "y_test": y[:2]}, both)
    for path in (pair, both):
        dataset = loaded(tmp_path, path)
        np.testing.assert_array_equal(dataset.train.x, X)
        np.testing.assert_array_equal(dataset.train.y, [1, 0, 1, 0])
    assert len(dataset.test) == 2
    dataset = loaded(tmp_path, layout)
    np.testing.assert_array_equal(dataset.train.y, [0, 1, 0, 1])
    assert dataset.classes == ("b", "a")
    assert dataset.train.domains.tolist() == list("ppqq")


@pytest.mark.parametrize("shape", [(4, 1, 8, 6), (4, 3, 8, 6), (4, 2, 8, 6)])
def test_pictures_in_tensors_have_their_channels_first(tmp_path, shape):
    x = torch.rand(shape)
    torch.save({"x": x, "y": [0, 1, 0, 1]}, tmp_path / "a.pt")
    np.testing.assert_array_equal(loaded(tmp_path, tmp_path / "a.pt").train.x, x.permute(0, 2, 3, 1).numpy())


def test_pictures_whose_channels_are_last_stay_as_they_are(tmp_path):
    x = torch.randint(0, 256, (4, 8, 6, 3), dtype=torch.uint8)
    torch.save((x, torch.tensor([0, 1, 0, 1])), tmp_path / "a.pt")
    np.testing.assert_array_equal(loaded(tmp_path, tmp_path / "a.pt").train.x, x.numpy())


def test_a_pt_that_holds_objects_is_refused(tmp_path):
    torch.save({"x": torch.zeros(2, 2), "y": Path("a")}, tmp_path / "a.pt")
    assert refusal(tmp_path / "a.pt", quotes=True) == [("unreadable-data", "a.pt")]


def test_a_pt_that_holds_something_else_is_refused(tmp_path):
    torch.save(torch.zeros(2, 2), tmp_path / "a.pt")
    assert refusal(tmp_path / "a.pt") == [("invalid-array", "a.pt")]
    torch.save({"x": torch.zeros(2, 2), "cats": torch.zeros(2)}, tmp_path / "b.pt")
    assert refusal(tmp_path / "b.pt") == [("missing-column", "b.pt"), ("missing-column", "b.pt")]


@pytest.mark.parametrize("name", ["x.npy", "a.pt"])
def test_a_file_that_was_cut_off_is_refused(tmp_path, name):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    torch.save((torch.zeros(4, 2), torch.zeros(4)), tmp_path / "a.pt")
    os.truncate(tmp_path / name, 90)
    assert refusal(tmp_path / name, quotes=True) == [("unreadable-data", name)]


def test_the_fingerprint_follows_all_the_files(tmp_path):
    def fingerprint(x=X, y=Y, **more):
        for name, array in {"x": x, "y": y, **more}.items():
            np.save(tmp_path / f"{name}.npy", array)
        return data.fingerprint(spec(tmp_path / "x.npy"), tmp_path / "cache")

    first = fingerprint()
    assert fingerprint() == first
    assert fingerprint(y=Y[::-1]) != first
    assert fingerprint(x=X + 1) != first
    assert fingerprint(domain=np.array(list("ppqq"))) != first


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    else:
        torch.save({name: torch.tensor(array) for name, array in arrays.items()}, path)
    return path


@pytest.mark.parametrize("end", [".npz", ".pt"])
@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("images", "labels"),
        ("data", "label"),
        ("data", "targets"),
        ("X", "Y"),
        ("features", "y"),
        ("X_{}", "y_{}"),
        ("{}_images", "{}_labels"),
        ("{}-data", "{}-labels"),
        ("{}X", "{}Y"),
    ],
)
def test_arrays_have_the_names_that_other_tools_give_them(tmp_path, end, x, y):
    parts = {"train": (X, Y), "test": (X[:2], Y[:2])} if "{}" in x else {"": (X, Y)}
    named = {name.format(part): array for part, pair in parts.items() for name, array in zip((x, y), pair, strict=True)}
    dataset = loaded(tmp_path, write_arrays(tmp_path / f"a{end}", {**named, "mean": X[0]}))
    np.testing.assert_array_equal(dataset.train.x, X)
    np.testing.assert_array_equal(dataset.train.y, [1, 0, 1, 0])
    assert len(dataset.test) == (2 if "{}" in x else 4)


@pytest.mark.parametrize("names", [("images", "data", "labels"), ("images", "label", "labels"), ("pixels", "labels")])
def test_names_that_may_mean_several_arrays_are_refused_with_the_way_out(tmp_path, names):
    arrays = {name: Y if name.startswith("label") else X for name in names}
    place = [("missing-column", "a.npz")]
    assert refusal(write_arrays(tmp_path / "a.npz", arrays)) == 2 * place
