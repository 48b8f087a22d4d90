"""Weights from elsewhere, by way of a job: a remark on the leaderboard, small files of cases."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import ianvs
from ianvs.authoring import mlp
from ianvs.testalgorithms.finetune.basemodel import Finetune
from tests.errors import printed

JOB = """
benchmarkingjob:
  name: trained
  workspace: {folder}/ws
  testenv: ./testenv.yaml
  seeds: [0]
  test_object: {{type: algorithms, algorithms: [{{name: tuned, url: ./tuned.yaml}}]}}
  rank: {{sort_by: [{{accuracy: descend}}]}}
"""
TESTENV = """
testenv:
  dataset: {name: digits}
  scenario: {name: class-incremental, rounds: 2}
  metrics: [accuracy]
"""
ALGORITHM = """
algorithm:
  paradigm_type: incrementallearning
{initial}
  modules:
    - type: basemodel
      name: Finetune
      url: ianvs.testalgorithms.finetune.basemodel
      hyperparameters:
        - epochs: {{values: [1]}}
        - network: {{values: [mlp]}}
{more}
"""


def run(folder: Path, initial: str = "", more: str = "") -> ianvs.Results:
    (folder / "benchmarkingjob.yaml").write_text(JOB.format(folder=folder))
    (folder / "testenv.yaml").write_text(TESTENV)
    (folder / "tuned.yaml").write_text(ALGORITHM.format(initial=initial, more=more))
    return ianvs.run(folder / "benchmarkingjob.yaml")


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    torch.manual_seed(5)
    torch.save(mlp((1, 8, 8), 7).state_dict(), tmp_path / "plain.pth")  # of seven classes
    return tmp_path / "plain.pth"


def test_a_plain_state_dict_is_an_initial_model_and_the_leaderboard_says_what_did_not_fit(
    tmp_path: Path, weights: Path
) -> None:
    (case,) = run(tmp_path, f"  initial_model_url: {weights}")
    assert case.status == "finished"
    assert "'3'" in case.remark
    printed(case.remark)


def test_a_frozen_network_is_not_stored_and_its_case_goes_through_all_rounds(tmp_path: Path, weights: Path) -> None:
    (case,) = run(tmp_path, more=f"        - weights: {{values: ['{weights}']}}\n        - frozen: {{values: [true]}}")
    assert case.status == "finished"
    stored = sorted(case.directory.rglob("*.pt"), key=lambda path: path.stat().st_mtime)
    kept = Finetune().read(stored[-1])["network"]
    assert {name: tuple(value.shape) for name, value in kept.items()} == {"1.weight": (10, 256), "1.bias": (10,)}
