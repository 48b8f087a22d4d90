"""torch.compile in two cases: what one has compiled the other finds, and the row says so."""

from __future__ import annotations

from pathlib import Path

import pytest

import ianvs
from tests.jobs import write_job

TESTENV = """
dataset: {name: digits}
scenario: {name: class-incremental, rounds: 2}
metrics: [accuracy]
"""
COMPILED = """
import torch


class Compiled:
    def __init__(self):
        torch.manual_seed(0)
        self.network = torch.nn.Linear(64, 10)

    def train(self, train_data, valid_data=None):
        x, y = torch.as_tensor(train_data.x).flatten(1).float(), torch.as_tensor(train_data.y)
        torch.nn.functional.cross_entropy(torch.compile(self.network)(x[:64]), y[:64]).backward()

    def predict(self, data):
        return self.network(torch.as_tensor(data.x).flatten(1).float()).argmax(1)

    def save(self, path):
        torch.save(self.network.state_dict(), path)

    def load(self, path):
        self.network.load_state_dict(torch.load(path))
"""


def test_what_a_case_has_compiled_another_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):  # a test before may have compiled something here
        monkeypatch.delenv(name, raising=False)
    job = "seeds: [0, 1]\njobs: 1"
    first, second = ianvs.run(
        write_job(
            tmp_path, engine="local", plugin=COMPILED, name="Compiled", hyperparameters="", testenv=TESTENV, job=job
        )
    )
    assert (first.failure, second.failure) == (None, None)
    cold, warm = (one.remark.split(" ")[0] for one in (first, second))
    assert cold == "0" and int(warm) > 0
    assert any((tmp_path / "ws" / "cache" / "compiled").rglob("*.py"))
    assert any("came from the cache" in note.text for note in ianvs.load_results(tmp_path / "ws").notes)
