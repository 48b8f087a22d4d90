"""Sandboxes change no answer, and cost little more than starting a Python that imports torch."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.processes.sandbox import Sandbox, missing_sandbox
from ianvs.store import CaseStore
from tests.jobs import write_job

pytestmark = pytest.mark.skipif(bool(reason := missing_sandbox()), reason=reason or "a sandbox runs")

METHODS = Path(__file__).parents[3] / "configs/methods_digits/benchmarkingjob.yaml"
FEW = ["seeds=[0]", "epochs=1", "scenario.rounds=2"]
TESTENV = """
dataset: {name: digits}
scenario: {name: class-incremental, rounds: 2}
metrics: [accuracy]
"""
FINETUNE = """
algorithm:
  paradigm_type: incrementallearning
  modules:
    - {type: basemodel, name: finetune, hyperparameters: [{epochs: {values: [1]}}]}
"""


def test_all_methods_answer_alike_with_and_without_sandboxes(tmp_path: Path) -> None:
    answers = {}
    for sealing in ("off", "strict"):
        results = ianvs.run(METHODS, workspace=tmp_path / sealing, settings=[*FEW, f"sealing={sealing}"])
        store = CaseStore(tmp_path / sealing)
        for case in results:
            assert case.status == "finished", case.failure
            name = case.case.testenv, case.case.algorithm, str(sorted(case.case.hyperparameters.items()))
            answers[sealing, *name] = [store.predictions(case.case.id, k) for k in range(len(case.rounds))]
    names = [name[1:] for name in answers if name[0] == "off"]
    assert len(names) > 20 and len(answers) == 2 * len(names)
    for name in names:
        for off, strict in zip(answers["off", *name], answers["strict", *name], strict=True):
            assert off.keys() == strict.keys()
            assert all(np.array_equal(off[key].labels, strict[key].labels) for key in off), name


def test_a_case_costs_hardly_more_than_starting_its_sandboxes(tmp_path: Path) -> None:
    """At most (2 rounds + 1) starts of a Python that imports torch, and a second, beyond what it costs without."""
    starts, spent = [], {}
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run(Sandbox().command([sys.executable, "-c", "import torch"]), check=True)
        starts.append(time.perf_counter() - began)
    job = write_job(tmp_path, engine="local", testenv=TESTENV, job="seeds: [0]")
    (tmp_path / "algorithm.yaml").write_text(FINETUNE)
    for sealing in ("off", "strict"):
        began = time.perf_counter()
        results = ianvs.run(job, settings=[f"sealing={sealing}"], workspace=tmp_path / sealing)
        spent[sealing] = time.perf_counter() - began
        assert results.exit_code == 0
    assert spent["strict"] - spent["off"] < 5 * np.median(starts) + 1
