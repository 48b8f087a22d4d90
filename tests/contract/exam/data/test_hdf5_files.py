"""HDF5 files, a door in a file of its own: arrays as .npz has them, or a group for each part."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from ianvs.exam.data.listing import SourceError
from ianvs.exam.data.sources import read_parts
from tests.errors import located, recorded

pytestmark = pytest.mark.usefixtures("in_own_folder")

X = np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3)


def spec_of(path):
    return DatasetSpec(train=(SourceSpec(path, "data"),), test=(SourceSpec(path, "data"),))


def refusal(path, shown=recorded):
    with pytest.raises(SourceError) as caught:
        read_parts(spec_of(path))
    return shown(caught.value.problems)


@pytest.mark.parametrize("y", [[1, 0], [1.0, 0.0], [b"1", b"0"], ["1", "0"]])
@pytest.mark.parametrize("name", ["x_train", "train/x"])
def test_arrays_of_both_parts_are_read_by_their_names_or_from_groups(name, y, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "t.h5", "w") as file:
        for part in ("train", "test"):
            file[name.replace("train", part)], file[name.replace("train", part).replace("x", "y")] = X, y
    spec, cache = spec_of(tmp_path / "t.h5"), tmp_path / "cache"
    assert data.check_dataset(spec, cache).problems == []
    dataset = data.load(spec, cache)
    np.testing.assert_array_equal(dataset.train.x, X)
    assert (dataset.classes, dataset.test.y.tolist()) == (("0", "1"), [1, 0])
    assert dataset.fingerprint == data.fingerprint(spec, cache)


@pytest.mark.parametrize(
    ("x", "y"),
    [("images", "labels"), ("data", "label"), ("X_{}", "y_{}"), ("{}_images", "{}_labels"), ("{}/images", "{}/labels")],
)
def test_arrays_have_the_names_that_other_tools_give_them(x, y, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "t.h5", "w") as file:
        for part in ("train", "test") if "{}" in x else ("",):
            file[x.format(part)], file[y.format(part)] = X, [1, 0]
    dataset = data.load(spec_of(tmp_path / "t.h5"), tmp_path / "cache")
    np.testing.assert_array_equal(dataset.train.x, X)
    assert dataset.test.y.tolist() == [1, 0]


def test_what_is_wrong_with_a_file_is_told(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["pixels"], file["y"] = X, [1, 0]
    assert refusal(tmp_path / "t.h5") == [("missing-column", "t.h5")] * 2
    (tmp_path / "broken.hdf5").write_bytes(b"nothing of the kind")
    assert refusal(tmp_path / "broken.hdf5", located) == [("unreadable-data", "broken.hdf5")]  # it quotes h5py
    monkeypatch.setitem(sys.modules, "h5py", None)
    assert refusal(tmp_path / "t.h5") == [("missing-package", "t.h5")]
