"""Where the channels of pictures in arrays are: told by the shape, or by `layout`."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import ianvs
from ianvs.base.errors import ValidationError
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from tests.errors import errors_of, recorded
from tests.jobs import write_job

pytestmark = pytest.mark.usefixtures("in_own_folder")

Y = np.arange(6) % 2


def saved(file: Path, x: np.ndarray, y: np.ndarray = Y) -> Path:
    """`x` and `y` in a file of the form that its suffix says."""
    if file.suffix == ".npy":
        np.save(file, x)
        np.save(file.with_name("y.npy"), y)
    elif file.suffix == ".npz":
        np.savez(file, x=x, y=y)
    else:
        import torch

        torch.save({"x": torch.from_numpy(x), "y": torch.from_numpy(y)}, file)
    return file


def spec(file: Path, **settings: object) -> DatasetSpec:
    source = SourceSpec(file, "data")
    return DatasetSpec(train=(source,), test=(source,), **settings)


def looked(given: DatasetSpec) -> tuple[list[ValidationError], list[ValidationError]]:
    """(errors, warnings)"""
    found = data.check_dataset(given).problems
    return [p for p in found if not p.warning], [p for p in found if p.warning]


def read(tmp_path: Path, shape: tuple[int, ...], **settings: object) -> tuple[np.ndarray, data.Dataset]:
    x = np.random.default_rng(0).integers(0, 256, (6, *shape), dtype=np.uint8)
    given = spec(saved(tmp_path / "x.npz", x), **settings)
    assert looked(given)[0] == []
    return x, data.load(given, tmp_path / "cache")


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 9, 8), (4, 9, 8), (13, 8, 8), (3, 4, 4)])
def test_channels_that_come_first_are_told_by_the_shape(tmp_path, shape):
    x, dataset = read(tmp_path, shape)
    np.testing.assert_array_equal(dataset.train.x, np.moveaxis(x, 1, 3))
    assert dataset.layout == "NCHW"


@pytest.mark.parametrize("shape", [(32, 32, 3), (9, 8, 1), (9, 8, 4), (8, 8, 13), (4, 4, 3)])
def test_channels_that_come_last_are_told_by_the_shape_and_nothing_is_said(tmp_path, shape):
    x, dataset = read(tmp_path, shape)
    np.testing.assert_array_equal(dataset.train.x, x)
    assert dataset.layout == "NHWC"
    assert looked(spec(tmp_path / "x.npz")) == ([], [])


@pytest.mark.parametrize("shape", [(3, 32, 3), (10, 12, 14), (3, 3, 3), (7, 7, 7)])
def test_a_shape_that_does_not_tell_is_refused_with_the_key_that_says_it(tmp_path, shape):
    x = np.zeros((6, *shape), dtype=np.float32)
    given = spec(saved(tmp_path / "x.npz", x))
    ([problem, *_], _) = looked(given)
    assert recorded([problem]) == errors_of(data.load, given, tmp_path / "cache")[:1] == [("ambiguous-data", "x.npz")]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("shape", [(3, 32, 3), (32, 32, 3), (3, 32, 32), (10, 12, 14)])
def test_the_key_wins_over_the_shape(tmp_path, shape, layout):
    x, dataset = read(tmp_path, shape, layout=layout)
    np.testing.assert_array_equal(dataset.train.x, x if layout == "NHWC" else np.moveaxis(x, 1, 3))
    assert looked(spec(tmp_path / "x.npz", layout=layout)) == ([], [])


def test_label_pictures_tell_where_height_and_width_are(tmp_path):
    for shape in ((3, 9, 4), (9, 4, 3)):
        x, y = np.zeros((6, *shape), dtype=np.uint8), np.zeros((6, 9, 4), dtype=np.uint8)
        np.savez(tmp_path / "x.npz", x=x, y=y)
        given = spec(tmp_path / "x.npz", classes=("a", "b"))
        assert data.load(given, tmp_path / "cache").train.x.shape == (6, 9, 4, 3)


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".pt"])
def test_the_reading_is_told_with_both_remedies(tmp_path, suffix):
    x = np.zeros((6, 3, 9, 8), dtype=np.uint8)
    ([], [warning]) = looked(spec(saved(tmp_path / f"x{suffix}", x)))
    assert recorded([warning]) == [("doubtful-data", f"x{suffix}")]


def test_tensors_whose_shape_does_not_tell_have_their_channels_first(tmp_path):
    x = np.random.default_rng(0).random((6, 3, 9, 3)).astype(np.float32)
    loaded = data.load(spec(saved(tmp_path / "x.pt", x)), tmp_path / "cache")
    np.testing.assert_array_equal(loaded.train.x, np.moveaxis(x, 1, 3))
    last = spec(tmp_path / "x.pt", layout="NHWC")
    np.testing.assert_array_equal(data.load(last, tmp_path / "cache").train.x, x)


def authored(tmp_path: Path, returned: str) -> tuple[DatasetSpec, list[ValidationError]]:
    source = f"""
        import numpy as np, torch
        x, y = np.arange(6 * 3 * 9 * 3).reshape(6, 3, 9, 3).astype("uint8"), np.arange(6) % 2
        wide = np.zeros((6, 3, 9, 8), "uint8")

        def mine():
            part = {returned}
            return part, part
    """
    (tmp_path / "mine.py").write_text(dedent(source))
    given = DatasetSpec(name="mine", url=tmp_path / "mine.py")
    return given, data.check_dataset(given, tmp_path / "cache").problems


@pytest.mark.slow
@pytest.mark.parametrize(
    "returned",
    ["(wide, y)", "(list(wide), y)", "(torch.from_numpy(wide), y)", "[(torch.from_numpy(a), 1) for a in wide]"],
)
def test_an_authors_function_may_return_them_so_too(tmp_path, returned):
    given, [warning] = authored(tmp_path, returned)
    assert warning.code == "doubtful-data"
    assert data.load(given, tmp_path / "cache").train.x.shape == (6, 9, 8, 3)


@pytest.mark.slow
def test_samples_of_a_torch_dataset_have_their_channels_first_if_nothing_tells(tmp_path):
    given, _ = authored(tmp_path, "[(torch.from_numpy(a), 1) for a in x]")
    x = np.arange(6 * 3 * 9 * 3).reshape(6, 3, 9, 3).astype("uint8")
    np.testing.assert_array_equal(data.load(given, tmp_path / "cache").train.x, np.moveaxis(x, 1, 3))
    _, [problem, *_] = authored(tmp_path, "(x, y)")
    assert problem.code == "ambiguous-data"


def test_the_parts_may_be_laid_out_differently(tmp_path):
    x = np.zeros((6, 3, 9, 8), dtype=np.uint8)
    sources = [SourceSpec(saved(tmp_path / n, a), "data") for n, a in (("a.npz", x), ("b.npz", np.moveaxis(x, 1, 3)))]
    dataset = data.load(DatasetSpec(train=(sources[0],), test=(sources[1],)), tmp_path / "cache")
    assert dataset.train.x.shape[1:] == dataset.test.x.shape[1:] == (9, 8, 3)


def test_the_key_is_refused_where_it_means_nothing(tmp_path):
    ([problem], _) = looked(spec(saved(tmp_path / "x.npz", np.zeros((6, 5))), layout="NCHW"))
    assert recorded([problem]) == [("unfit-key", "")]
    [problem] = data.check_dataset(DatasetSpec(name="digits", layout="NCHW")).problems
    assert recorded([problem]) == [("conflicting-keys", "")]


def test_to_say_what_was_told_changes_no_fingerprint_and_another_reading_does(tmp_path):
    file = saved(tmp_path / "x.npz", np.zeros((6, 3, 9, 8), dtype=np.uint8))
    told, same, other = (
        data.fingerprint(spec(file, **said), tmp_path / "cache")
        for said in ({}, {"layout": "NCHW"}, {"layout": "NHWC"})
    )
    assert told == same != other
    again = saved(tmp_path / "x.npz", np.zeros((6, 9, 8, 3), dtype=np.uint8))
    assert data.fingerprint(spec(again), tmp_path / "cache") != told


CONVOLUTION = '''
import numpy as np
import torch


class Convolution:
    """One layer of filters and a linear layer, over pictures (N, height, width, channels)."""

    def __init__(self):
        self.network = None

    def train(self, train_data, valid_data=None, *, seed):
        x, y = self.pictures(train_data.x), torch.as_tensor(np.array(train_data.y))
        if self.network is None:
            torch.manual_seed(seed)
            self.network = torch.nn.Sequential(
                torch.nn.Conv2d(x.shape[1], 8, 3, stride=2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(4)
            )
            self.network(x[:1])
        optimizer = torch.optim.SGD(self.network.parameters(), lr=0.05)
        for _ in range(15):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.network(x), y).backward()
            optimizer.step()

    def pictures(self, x):
        return torch.as_tensor(np.stack(list(x))).float().permute(0, 3, 1, 2) / 255

    def predict(self, data):
        if self.network is None:
            return [0] * len(data)
        with torch.no_grad():
            return self.network(self.pictures(data.x)).argmax(1).numpy()

    def save(self, path):
        torch.save(self.network, path)
        return path

    def load(self, path):
        self.network = torch.load(path, weights_only=False)
'''


def scores(folder: Path, file: Path, kind: str) -> list[tuple[str, np.ndarray]]:
    exam = f"""
        dataset: {{train_data: {file}, test_data: {file}}}
        scenario: {{name: domain-incremental, {kind}}}
        metrics: [accuracy]
    """
    path = write_job(folder, plugin=CONVOLUTION, name="Convolution", hyperparameters="", testenv=exam, job="seeds: [3]")
    [result] = list(ianvs.run(path))
    assert result.status == "finished", result.failure
    return result.matrices["accuracy"].values


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["permutation: true, rounds: 3", "rotation: [0, 40, 80]"])
def test_an_npz_made_from_tensors_gives_the_scores_of_one_with_channels_last(tmp_path, kind):
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(4), 12)
    x = rng.integers(0, 120, (48, 12, 10, 3), dtype=np.uint8)
    for index, label in enumerate(y):
        x[index, 3 * (label % 2) : 3 * (label % 2) + 5, 2 * label : 2 * label + 3] += 110
    (tmp_path / "last").mkdir()
    (tmp_path / "first").mkdir()
    last = saved(tmp_path / "last" / "x.npz", x, y)
    first = saved(tmp_path / "first" / "x.npz", np.ascontiguousarray(np.moveaxis(x, 3, 1)), y)
    np.testing.assert_array_equal(scores(tmp_path / "a", first, kind), scores(tmp_path / "b", last, kind))


def test_the_exam_the_plan_and_validate_say_which_was_taken(tmp_path, capfd):
    from ianvs.cli import main

    file = saved(tmp_path / "x.npz", np.zeros((6, 3, 9, 8), dtype=np.uint8))
    exam = (
        f"dataset: {{train_data: {file}, test_data: {file}}}\nscenario: {{name: IIL, rounds: 2}}\nmetrics: [accuracy]"
    )
    path = str(write_job(tmp_path / "job", hyperparameters="", testenv=exam))
    for command in (["plan"], ["validate"], []):
        assert main([*command, "-f", path]) == 0
        assert "images are read as NCHW" in capfd.readouterr().err
    assert main(["exam", "-f", path]) == 0
    assert "pictures: 9 x 8 pixels, 3 channels, read as NCHW" in capfd.readouterr().out


def test_a_layout_that_is_none_is_refused(tmp_path):
    saved(tmp_path / "x.npz", np.zeros((6, 3, 9, 8), dtype=np.uint8))
    exam = "dataset: {train_data: ../x.npz, test_data: ../x.npz, layout: CHW}\nmetrics: [accuracy]"
    errors = errors_of(ianvs.plan, write_job(tmp_path / "job", hyperparameters="", testenv=exam))
    assert errors == [("invalid-choice", "job/testenv.yaml:2:64")]
