"""What a backbone had seen of an exam: found by what is written of both, marked in the leaderboard, no part of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import ianvs
from ianvs.config.load import load_job
from ianvs.running.contamination import KNOWN, overlap, pretraining_collections
from tests.errors import errors_of

EXAM = """
testenv:
  dataset: {name: digits}
  scenario: {name: class-incremental, rounds: 2}
  metrics: [accuracy]
"""
ALGORITHM = """
algorithm:
  paradigm_type: incrementallearning
  modules:
    - type: basemodel
      name: NCM
      url: ianvs.testalgorithms.ncm.basemodel
      hyperparameters: [{network: {values: [linear]}}]
"""
JOB = """
benchmarkingjob:
  name: seen
  workspace: ./workspace
  testenv: ./testenv.yaml
  test_object:
    type: algorithms
    algorithms: [{name: mine, url: ./algorithm.yaml}]
  rank: {sort_by: [{accuracy: descend}]}
  engine: inline
"""


def job_in(folder: Path, exam: dict[str, object] | None = None, algorithm: dict[str, object] | None = None) -> Path:
    texts = {"testenv": EXAM, "algorithm": ALGORITHM, "benchmarkingjob": JOB}
    files = {name: yaml.safe_load(text) for name, text in texts.items()}
    files["testenv"]["testenv"]["dataset"] |= exam or {}
    files["algorithm"]["algorithm"] |= algorithm or {}
    for name, content in files.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
    return folder / "benchmarkingjob.yaml"


@pytest.mark.parametrize(
    ("network", "weights", "seen"),
    [
        ("resnet18", "IMAGENET1K_V1", ["ImageNet-1k"]),
        ("vit_b_16", "DEFAULT", ["ImageNet-1k"]),
        ("timm/vit_base_patch16_224.augreg_in21k", "pretrained", ["ImageNet-21k"]),
        ("timm/vit_base_patch16_224.augreg_in21k_ft_in1k", "./somewhere.pt", ["ImageNet-21k", "ImageNet-1k"]),
        ("timm/vit_small_patch14_dinov2.lvd142m", "pretrained", ["LVD-142M"]),
        ("hf/google/vit-base-patch16-224-in21k", "pretrained", ["ImageNet-21k"]),
        ("timm/vit_base_patch16_224.augreg_in21k", None, []),  # random
        ("vit", "./in1k/mine.pt", []),  # a folder's name says nothing
        ("vit", "mine.pt", []),
    ],
)
def test_names_of_weights_tell_what_they_were_trained_on(network: str, weights: str | None, seen: list[str]) -> None:
    assert list(pretraining_collections({"network": network, "weights": weights})) == seen


def test_timm_is_asked_for_the_tag_that_a_name_leaves_out() -> None:
    timm = pytest.importorskip("timm")
    name = "vit_base_patch16_224"
    told = pretraining_collections({"network": f"timm/{name}", "weights": "pretrained"})
    assert told == pretraining_collections(
        {"network": f"timm/{name}.{timm.get_pretrained_cfg(name).tag}", "weights": "pretrained"}
    )
    assert told


@pytest.mark.parametrize(
    ("made_of", "pretrained_on", "said"),
    [
        ("CIFAR-100", "CIFAR-100", "samples of CIFAR-100"),
        ("cifar100", ["80 million tiny images"], "samples of CIFAR-100, in 80 Million Tiny Images"),
        ("ImageNet", "in22k", "samples of ImageNet-1k, in ImageNet-21k"),
        ("Tiny ImageNet", "LVD-142M", "samples of Tiny ImageNet, in LVD-142M"),  # by way of both ImageNets
        ("ImageNet-R", "ImageNet-21k", "classes of ImageNet-R, in ImageNet-21k"),
        (["birds of mine", "CIFAR-10"], "ImageNet-1k", "classes of CIFAR-10, in ImageNet-1k"),
        ("birds of mine", "Birds of Mine", ""),  # a name that nobody knows is taken as it is written
        ("birds of mine", "birds of mine", "samples of birds of mine"),
        ("ImageNet-21k", "ImageNet-1k", ""),  # the part does not hold the whole
        ("CIFAR-10", "CIFAR-100", ""),
    ],
)
def test_an_overlap_is_of_samples_or_of_classes(
    tmp_path: Path, made_of: str | list[str], pretrained_on: str | list[str], said: str
) -> None:
    job = load_job(job_in(tmp_path, {"made_of": made_of}, {"pretrained_on": pretrained_on}))
    assert overlap(job.testenvs[0], job.algorithms[0], {}) == said


def test_a_source_says_what_it_is_made_of_and_an_algorithm_is_believed_before_its_weights(tmp_path: Path) -> None:
    job = load_job(job_in(tmp_path))
    exam, algorithm = job.testenvs[0], job.algorithms[0]
    cifar = replace(exam, dataset=replace(exam.dataset, name="cifar100"))
    weights = {"network": "resnet18", "weights": "IMAGENET1K_V1"}
    assert overlap(cifar, algorithm, weights) == "classes of CIFAR-100, in ImageNet-1k"
    assert overlap(exam, algorithm, weights) == ""  # of digits nothing is known
    assert overlap(cifar, replace(algorithm, pretrained_on=("letters",)), weights) == ""


def test_every_collection_that_is_named_by_another_ends_somewhere() -> None:
    from ianvs.running.contamination import _contained

    for name in KNOWN:
        assert len(list(_contained(name))) < 10


def test_a_row_whose_weights_saw_the_exam_is_marked_and_is_still_the_same_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = ianvs.run(job_in(tmp_path))
    assert "Overlap" not in plain.leaderboard_frame
    assert ianvs.run(job_in(tmp_path, {"made_of": "UCI digits"}, {"pretrained_on": ["UCI digits"]})).ran == 0
    for results in (ianvs.run(tmp_path / "benchmarkingjob.yaml"), ianvs.load_results(tmp_path / "workspace")):
        assert results.leaderboard_frame["Overlap"].tolist() == ["samples of UCI digits"]
        [note] = [note for note in results.notes if "UCI digits" in note.text]
        assert (note.subject, note.about) == ("mine", "row")
    page = (tmp_path / "workspace" / "seen" / "rank" / "leaderboard.md").read_text()
    assert page.count("samples of UCI digits") == 2  # the cell, and the note


def test_a_slip_in_the_key_is_told(tmp_path: Path) -> None:
    assert errors_of(ianvs.run, job_in(tmp_path, {"made_off": "ImageNet"})) == [
        ("unknown-option", f"{tmp_path}/testenv.yaml:3:5")
    ]
    assert errors_of(ianvs.run, job_in(tmp_path, {}, {"pretrained_in": "ImageNet"})) == [
        ("invalid-option", f"{tmp_path}/algorithm.yaml:11:3")
    ]
