"""Data that a testenv names."""

from __future__ import annotations

import gzip
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from ianvs.base.errors import ConfigError, Location
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from ianvs.testenv.datasets.torchvision_sets import Mnist
from tests.errors import errors_of, recorded


def digits(**options):
    return DatasetSpec(name="digits", options=options)


def test_digits_are_those_of_scikit_learn(tmp_path):
    from sklearn.datasets import load_digits

    dataset, original = data.load(digits(), tmp_path), load_digits()
    assert dataset.classes == tuple("0123456789")
    for part in (dataset.train, dataset.test):
        numbers = [int(name.removeprefix("digits/")) for name in part.ids]
        assert part.x.dtype == np.float32
        np.testing.assert_array_equal(part.x[..., 0] * 16, original.images[numbers])
        np.testing.assert_array_equal(part.y, original.target[numbers])
    assert not set(dataset.train.ids) & set(dataset.test.ids)
    assert len(dataset.train) + len(dataset.test) == 1797


def test_the_split_of_digits_is_stratified_seeded_and_adjustable(tmp_path):
    parts = {
        key: data.load(digits(**dict(key)), tmp_path) for key in ((), (("split_seed", 1),), (("test_ratio", 0.5),))
    }
    default, seeded, half = parts.values()
    whole = np.bincount(np.concatenate([default.train.y, default.test.y]))
    np.testing.assert_allclose(np.bincount(default.test.y), 0.2 * whole, atol=1)
    assert set(default.test.ids) != set(seeded.test.ids)
    assert len(half.test) in (898, 899)
    assert len({dataset.fingerprint for dataset in parts.values()}) == 3


def test_a_validation_part_of_digits_holds_no_picture_of_the_test_part(tmp_path):
    exam, tuning = (data.load(digits(**options), tmp_path) for options in ({}, {"validation_ratio": 0.2}))
    seen = {*tuning.train.ids, *tuning.test.ids}
    assert seen == set(exam.train.ids)
    assert len(tuning.train) + len(tuning.test) == len(seen)
    np.testing.assert_allclose(np.bincount(tuning.test.y), 0.2 * np.bincount(exam.train.y), atol=1)


def test_defaults_written_out_are_the_same_dataset(tmp_path):
    assert data.fingerprint(digits(), tmp_path) == data.fingerprint(digits(split_seed=0, test_ratio=0.2), tmp_path)


def test_an_unknown_source_is_refused_with_the_closest_and_the_list():
    place = Location(Path("testenv.yaml"), 3, 5)
    assert recorded(data.check_dataset(DatasetSpec(name="cifar_10", places={"name": place})).problems) == [
        ("unloadable-plugin", "testenv.yaml:3:5")
    ]


def test_an_unknown_option_is_refused_at_its_place_with_the_closest():
    place = Location(Path("testenv.yaml"), 5, 7)
    spec = DatasetSpec(name="digits", options={"test_ration": 0.3}, places={"test_ration": place})
    assert recorded(data.check_dataset(spec).problems) == [("unknown-option", "testenv.yaml:5:7")]


@pytest.mark.parametrize(
    "options", [{"test_ratio": 0.0}, {"test_ratio": "0.3"}, {"split_seed": 1.5}, {"split_seed": True}]
)
def test_an_option_of_the_wrong_kind_is_refused(options, tmp_path):
    assert errors_of(data.load, digits(**options), tmp_path) == [("invalid-option", "")]


def test_keys_for_files_are_refused_beside_a_name(tmp_path):
    source = SourceSpec(tmp_path / "a.txt", "index")
    messages = " ".join(
        str(p) for p in data.check_dataset(DatasetSpec(name="digits", train=(source,), using=("CS",))).problems
    )
    assert "`train`" in messages
    assert "`using`" in messages


def test_a_root_is_needed_where_files_are(tmp_path):
    assert "needs `root`" in str(data.check_dataset(DatasetSpec(name="mnist")).problems[0])
    message = str(data.check_dataset(DatasetSpec(name="cifar10", root=tmp_path)).problems[0])
    assert str(tmp_path / "cifar-10-batches-py") in message
    assert "download: true" in message
    assert data.check_dataset(DatasetSpec(name="cifar10", root=tmp_path, download=True)).problems == []


def write_idx(path: Path, values: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    header = struct.pack(">BBBB", 0, 0, 8, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape)
    path.write_bytes(header + values.tobytes())


@pytest.mark.parametrize(("name", "folder"), [("mnist", "MNIST"), ("fashion_mnist", "FashionMNIST")])
def test_mnist_is_read_from_its_own_files(tmp_path, name, folder):
    rng = np.random.default_rng(0)
    x = {part: rng.integers(0, 256, (count, 28, 28), dtype=np.uint8) for part, count in (("train", 5), ("t10k", 3))}
    y = {part: np.arange(len(pixels), dtype=np.uint8) for part, pixels in x.items()}
    for part in x:
        write_idx(tmp_path / folder / "raw" / f"{part}-images-idx3-ubyte", x[part])
        write_idx(tmp_path / folder / "raw" / f"{part}-labels-idx1-ubyte", y[part])
    dataset = data.load(DatasetSpec(name=name, root=tmp_path), tmp_path / "cache")
    np.testing.assert_array_equal(dataset.train.x[..., 0], x["train"])
    np.testing.assert_array_equal(dataset.test.y, y["t10k"])
    assert dataset.train.x.shape == (5, 28, 28, 1)
    assert dataset.train.ids[0] == f"{name}/train/00000"
    assert len(dataset.classes) == 10


def write_mnist(folder: Path, packed: bool) -> None:
    rng = np.random.default_rng(0)
    for part, count in (("train", 5), ("t10k", 3)):
        write_idx(folder / f"{part}-images-idx3-ubyte", rng.integers(0, 256, (count, 28, 28), dtype=np.uint8))
        write_idx(folder / f"{part}-labels-idx1-ubyte", rng.integers(0, 10, count, dtype=np.uint8))
    if packed:
        for path in list(folder.iterdir()):
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_idx_files_are_what_torchvision_reads_wherever_they_lie(tmp_path, name):
    import torchvision.datasets

    folder, reader = {"mnist": ("MNIST", "MNIST"), "fashion_mnist": ("FashionMNIST", "FashionMNIST")}[name]
    roots = {}
    for below in ("", f"{folder}/raw"):
        for packed in (False, True):
            roots[below, packed] = tmp_path / f"{len(roots)}"
            write_mnist(roots[below, packed] / below, packed)
    theirs = getattr(torchvision.datasets, reader)(roots[f"{folder}/raw", False], train=True)
    found = [data.load(DatasetSpec(name=name, root=root), tmp_path / "cache" / root.name) for root in roots.values()]
    for dataset in found:
        np.testing.assert_array_equal(dataset.train.x[..., 0], theirs.data.numpy())
        np.testing.assert_array_equal(dataset.train.y, theirs.targets.numpy())
        assert dataset.classes == (tuple("0123456789") if name == "mnist" else tuple(theirs.classes))
        assert dataset.test.x.shape == (3, 28, 28, 1)
    assert len({dataset.fingerprint for dataset in found}) == 1
    assert all(data.check_dataset(DatasetSpec(name=name, root=root)).problems == [] for root in roots.values())


def test_packed_files_with_other_content_are_other_data(tmp_path):
    write_mnist(tmp_path, packed=True)
    spec = DatasetSpec(name="mnist", root=tmp_path)
    before = data.fingerprint(spec, tmp_path / "cache")
    assert data.fingerprint(spec, tmp_path / "cache") == before
    labels = tmp_path / "t10k-labels-idx1-ubyte"
    write_idx(labels, np.full(3, 7, np.uint8))
    labels.with_name(f"{labels.name}.gz").unlink()
    assert data.fingerprint(spec, tmp_path / "cache") != before


def test_a_folder_that_lacks_one_of_the_four_says_what_belongs_there(tmp_path):
    write_mnist(tmp_path, packed=True)
    (tmp_path / "train-labels-idx1-ubyte.gz").unlink()
    assert recorded(data.check_dataset(DatasetSpec(name="mnist", root=tmp_path)).problems) == [("missing-file", "")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("train-images-idx3-ubyte.gz", b"not gzip"),
        ("train-images-idx3-ubyte", b"\0\0\x08\x03" + struct.pack(">3I", 5, 28, 28) + b"too short"),
        ("train-images-idx3-ubyte", b"\0\0\x0d\x01" + struct.pack(">I", 0)),
        ("train-images-idx3-ubyte", b""),
    ],
)
def test_an_idx_file_that_is_damaged_is_named(tmp_path, name, content):
    write_mnist(tmp_path, packed=name.endswith(".gz"))
    (tmp_path / name).write_bytes(content)
    assert errors_of(data.load, DatasetSpec(name="mnist", root=tmp_path), tmp_path / "cache") == [
        ("unreadable-data", "")
    ]


def test_pictures_and_labels_that_do_not_fit_are_refused(tmp_path):
    write_mnist(tmp_path, packed=False)
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.zeros(4, np.uint8))
    assert errors_of(data.load, DatasetSpec(name="mnist", root=tmp_path), tmp_path / "cache") == [
        ("damaged-dataset", "")
    ]


def write_cifar(root: Path, pixels: np.ndarray) -> None:
    """The layout of the official archive: rows of 1024 red, 1024 green and 1024 blue values."""
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    for number, name in enumerate(names):
        rows = pixels[2 * number : 2 * number + 2].transpose(0, 3, 1, 2).reshape(2, -1)
        (folder / name).write_bytes(pickle.dumps({"data": rows, "labels": [number, 9 - number]}))
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": [f"class{i}" for i in range(10)]}))


def test_cifar10_is_read_from_its_own_files(tmp_path, monkeypatch):
    from torchvision.datasets import cifar

    pixels = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
    write_cifar(tmp_path, pixels)
    monkeypatch.setattr(cifar, "check_integrity", lambda path, md5=None: True)  # ours are not the official files
    dataset = data.load(DatasetSpec(name="cifar10", root=tmp_path), tmp_path / "cache")
    np.testing.assert_array_equal(dataset.train.x, pixels[:10])
    np.testing.assert_array_equal(dataset.test.x, pixels[10:])
    np.testing.assert_array_equal(dataset.train.y, [0, 9, 1, 8, 2, 7, 3, 6, 4, 5])
    assert dataset.classes[3] == "class3"


def test_damaged_files_are_refused_by_the_librarys_own_check(tmp_path):
    write_cifar(tmp_path, np.zeros((12, 32, 32, 3), dtype=np.uint8))
    assert errors_of(data.load, DatasetSpec(name="cifar10", root=tmp_path), tmp_path / "cache") == [
        ("unreadable-data", "")
    ]


def test_nothing_is_downloaded_unless_the_file_says_so(tmp_path, monkeypatch):
    fetched = []
    monkeypatch.setattr(Mnist, "fetch", lambda self, root: fetched.append(root))
    with pytest.raises(ConfigError):
        data.load(DatasetSpec(name="mnist", root=tmp_path), tmp_path / "cache")
    assert not fetched
    assert errors_of(data.load, DatasetSpec(name="mnist", root=tmp_path, download=True), tmp_path / "cache") == [
        ("missing-data", "")
    ]
    assert fetched == [tmp_path]
