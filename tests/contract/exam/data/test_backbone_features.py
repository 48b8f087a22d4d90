"""Features of a frozen network in place of pictures: computed once, and known by what they come from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import ianvs
from ianvs.authoring import TorchLearner
from ianvs.config.spec import BackboneSpec, DatasetSpec, SourceSpec
from ianvs.exam import data
from ianvs.exam.data import backbone_features
from tests.edits import edited
from tests.errors import Found, errors_of, recorded
from tests.unit.testalgorithms.exam_of_arrays import Data

pytestmark = pytest.mark.usefixtures("in_own_folder")


def write_pictures(folder: Path, dtype: type = np.uint8) -> Path:
    draw = np.random.default_rng(0)
    parts = {}
    for part, count in (("train", 40), ("test", 20)):
        y = np.arange(count) % 4
        x = draw.integers(0, 60, (count, 8, 8, 3)) + 60 * y[:, None, None, None]
        parts |= {f"x_{part}": x.astype(dtype), f"y_{part}": y}
    np.savez(folder / "pictures.npz", **parts)
    return folder / "pictures.npz"


@pytest.fixture
def spec(tmp_path: Path) -> DatasetSpec:
    source = SourceSpec(write_pictures(tmp_path), "data")
    learner = TorchLearner(network="resnet", widths=(32, 64, 128))
    learner.predict(Data(np.zeros((1, 8, 8, 3), np.uint8)), num_classes=2, seed=9)
    torch.save(learner.network.state_dict(), tmp_path / "weights.pt")
    backbone = BackboneSpec(network="resnet", weights=str(tmp_path / "weights.pt"))
    return DatasetSpec(train=(source,), test=(source,), backbone=backbone)


def test_features_are_those_that_a_learner_with_that_network_has(spec: DatasetSpec, tmp_path: Path) -> None:
    assert data.check_dataset(spec).problems == []
    found = data.load(spec, tmp_path / "cache")
    plain = data.load(replace(spec, backbone=None), tmp_path / "cache")
    learner = TorchLearner(network="resnet", weights=str(tmp_path / "weights.pt"), frozen=True)
    for ours, pictures in ((found.train, plain.train), (found.test, plain.test)):
        theirs = learner.features(Data(np.array(pictures.x)), num_classes=2)
        assert ours.x.shape == (len(pictures), 128)
        assert ours.x.dtype == np.float32
        np.testing.assert_allclose(ours.x, theirs, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(ours.y, pictures.y)
        np.testing.assert_array_equal(ours.ids, pictures.ids)


def test_they_are_computed_once_and_memory_mapped(spec: DatasetSpec, tmp_path: Path, monkeypatch) -> None:
    shares: list[float] = []
    first = data.load(spec, tmp_path / "cache", shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0

    def forbidden(*arguments: object) -> None:
        raise AssertionError("the features are computed again")

    monkeypatch.setattr(backbone_features, "_features", forbidden)
    second = data.load(spec, tmp_path / "cache")
    assert isinstance(second.train.x, np.memmap)
    np.testing.assert_array_equal(first.train.x, second.train.x)
    assert first.fingerprint == second.fingerprint == data.fingerprint(spec, tmp_path / "cache")


def test_other_pictures_other_weights_and_another_scale_are_other_data(spec: DatasetSpec, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert spec.backbone is not None
    known = {
        data.fingerprint(replace(spec, backbone=None), cache),
        data.fingerprint(spec, cache),
        data.fingerprint(replace(spec, backbone=replace(spec.backbone, scale="unit")), cache),
        data.fingerprint(replace(spec, backbone=replace(spec.backbone, picture_size=16)), cache),
        data.fingerprint(replace(spec, backbone=replace(spec.backbone, interpolation="bicubic")), cache),
        data.fingerprint(replace(spec, backbone=replace(spec.backbone, crop=0.9)), cache),
    }
    state = torch.load(tmp_path / "weights.pt", weights_only=True)
    torch.save({name: value + 1 for name, value in state.items()}, tmp_path / "weights.pt")
    known.add(data.fingerprint(spec, cache))
    assert len(known) == 7
    moved = tmp_path / "elsewhere.pt"
    moved.write_bytes((tmp_path / "weights.pt").read_bytes())
    same = replace(spec, backbone=replace(spec.backbone, weights=str(moved)))
    assert data.fingerprint(same, cache) == data.fingerprint(spec, cache)


def test_samples_that_are_no_pictures_are_refused(spec: DatasetSpec, tmp_path: Path) -> None:
    write_pictures(tmp_path, np.float32)
    assert errors_of(data.load, spec, tmp_path / "cache") == [("unfit-key", "")]


@pytest.mark.parametrize(
    ("change", "errors"),
    [
        ({"network": "resnet19"}, [("invalid-choice", "")]),
        ({"weights": "nowhere/weights.pt"}, [("missing-file", "")]),
    ],
)
def test_what_is_wrong_is_found_before_a_run(spec: DatasetSpec, change: dict[str, str], errors: list[Found]) -> None:
    assert spec.backbone is not None
    wrong = replace(spec, backbone=replace(spec.backbone, **{"picture_size": 16, **change}))
    assert recorded(data.check_dataset(wrong).problems) == errors


JOB = """
benchmarkingjob:
  name: features
  workspace: WORKSPACE
  testenv: ./testenv.yaml
  seeds: [0, 1]
  test_object:
    type: algorithms
    algorithms: [{name: slda, url: ./slda.yaml}, {name: finetune, url: ./finetune.yaml}]
  rank: {sort_by: [{accuracy: descend}]}
  engine: inline
"""
TESTENV = """
testenv:
  dataset:
    train_data: ./pictures.npz
    test_data: ./pictures.npz
    backbone: {network: resnet, picture_size: 16}
  scenario: {name: class-incremental, rounds: 2}
  metrics: [{name: accuracy}]
"""
ALGORITHM = """
algorithm:
  paradigm_type: incrementallearning
  modules:
    - type: basemodel
      name: NAME
      url: ianvs.testalgorithms.FOLDER.basemodel
      hyperparameters:
        - network: {values: [linear]}
"""


def test_all_cases_of_a_job_learn_from_the_same_features(tmp_path: Path) -> None:
    write_pictures(tmp_path)
    (tmp_path / "benchmarkingjob.yaml").write_text(edited(JOB, "WORKSPACE", str(tmp_path / "ws")))
    (tmp_path / "testenv.yaml").write_text(TESTENV)
    for folder, name in (("slda", "SLDA"), ("finetune", "Finetune")):
        (tmp_path / f"{folder}.yaml").write_text(edited(ALGORITHM, "NAME", name, "FOLDER", folder))
    results = ianvs.run(tmp_path / "benchmarkingjob.yaml")
    assert not results.failed
    assert {case.case.algorithm for case in results} == {"slda", "finetune"}
    assert len(list((tmp_path / "ws" / "cache").glob("features-*/train.npy"))) == 1
