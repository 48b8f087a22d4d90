"""What `sealing: strict` refuses, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ianvs.config import load_job
from ianvs.running.scheduler import sandbox_checks
from tests.errors import recorded
from tests.jobs import MAJORITY, write_job

STREAM = """
dataset: {name: digits}
scenario: {name: online, rounds: 5, batch: 100}
prequential: true
metrics: [accuracy]
"""
WEIGHTS = MAJORITY.replace("bias=0", "weights=None, bias=0")
FILES = """
dataset: {root: ./data, train_data: train.npz, test_data: test.npz}
scenario: {name: class-incremental, rounds: 2}
metrics: [accuracy]
"""


def refused(folder: Path, monkeypatch: pytest.MonkeyPatch, missing: str = "", **files: Any) -> list[tuple[str, str]]:
    """Code and file of each error."""
    monkeypatch.setattr(sandbox_checks, "missing_sandbox", lambda: missing)
    monkeypatch.chdir(folder)
    job = load_job(write_job(folder, **{"job": "sealing: strict", **files}))
    found = recorded(sandbox_checks.sandbox_problems(job))
    return [(code, str(place).partition(":")[0].rpartition("/")[2]) for code, place in found]


def test_a_job_that_needs_nothing_else_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(tmp_path, monkeypatch) == []


def test_a_machine_without_sandboxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = "a sandbox needs bubblewrap, which is not installed."
    assert refused(tmp_path, monkeypatch, missing) == [("missing-package", "benchmarkingjob.yaml")]


def test_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(tmp_path, monkeypatch, testenv=STREAM) == [("conflicting-keys", "testenv.yaml")]


def test_a_server_of_replies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = "sealing: strict\ngeneration: {engine: server, url: http://127.0.0.1:1}"
    assert refused(tmp_path, monkeypatch, job=job) == [("conflicting-keys", "benchmarkingjob.yaml")]


def test_a_learner_that_asks_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = "- weights: {values: ['https://127.0.0.1:8000/v1']}"
    found = refused(tmp_path, monkeypatch, plugin=WEIGHTS, hyperparameters=names)
    assert found == [("conflicting-keys", "algorithm.yaml")]


@pytest.mark.parametrize("weights", ["./data/test.npz", "./ws", "./data"])
def test_weights_that_are_a_part_of_the_exam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weights: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "ws").mkdir()
    for name in ("train", "test"):
        (tmp_path / "data" / f"{name}.npz").touch()
    names = f"- weights: {{values: [{weights}]}}"
    found = refused(tmp_path, monkeypatch, plugin=WEIGHTS, hyperparameters=names, testenv=FILES)
    assert found == [("conflicting-keys", "algorithm.yaml")]
