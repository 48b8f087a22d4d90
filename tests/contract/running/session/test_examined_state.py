"""An examination leaves a learner as it is, or its row is marked; what must not touch it asks a second object."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.base.types import CaseResult
from ianvs.store import CaseStore
from tests.edits import edited
from tests.jobs import write_job

TESTENV = """
dataset: {name: digits}
scenario: {name: class-incremental, rounds: 2}
metrics: [accuracy]
"""
NETWORK = '''
import copy, random
import numpy as np
import torch


class Network:
    """A linear network behind a BatchNorm."""
    def __init__(self):
        torch.manual_seed(0)
        self.network = torch.nn.Sequential(torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 10))
        self.asked, self.drawn = [], None

    def train(self, train_data, valid_data=None):
        x, y = torch.as_tensor(train_data.x).flatten(1).float(), torch.as_tensor(train_data.y)
        self.drawn = (random.random(), np.random.rand(), torch.rand(1).item())
        self.network.train()
        optimizer = torch.optim.SGD(self.network.parameters(), 0.1)
        for _ in range(20):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.network(x), y).backward()
            optimizer.step()

    def predict(self, data):
        x = torch.as_tensor(data.x).flatten(1).float()
        self.network.eval()
        with torch.no_grad():
            return self.network(x).argmax(1).numpy()

    def save(self, path):
        torch.save({"network": self.network.state_dict(), "asked": self.asked, "drawn": self.drawn}, path)

    def load(self, path):
        saved = torch.load(path)
        self.network.load_state_dict(saved["network"])
        self.asked, self.drawn = saved["asked"], saved["drawn"]
'''
TAUGHT = "        self.drawn = ("
LEFT_IN_TRAINING = edited(
    NETWORK, "self.network.eval()\n        with torch", "self.network.train()\n        with torch"
)
REMEMBERS = edited(
    NETWORK, "        self.network.eval()\n", "        self.network.eval()\n        self.asked.append(1)\n"
)
DRAWS = edited(
    NETWORK, "        self.network.eval()\n", "        self.network.eval()\n        random.random(), torch.rand(3)\n"
)
KEEPS_WHAT_IT_COMPUTES = edited(
    NETWORK, "        self.network.eval()\n", "        self.network.eval()\n        self.cached = x.mean(0)\n"
)
ADAPTS = edited(REMEMBERS, '"""A linear', '"""Adapts.""" ; adapts_in_testing = True\n    """A linear')


def examined(folder: Path, plugin: str, testenv: str = TESTENV, **job: str) -> CaseResult:
    settings = {"hyperparameters": "", "testenv": testenv, "job": "seeds: [0]", **job}
    path = write_job(folder, plugin=plugin, name="Network", **settings)
    [found] = ianvs.run(path)
    assert found.failure is None
    return found


def saved(found: CaseResult) -> dict:
    import torch

    folder = CaseStore(found.directory.parent.parent).model_folder(found.case.id, 2)
    state: dict = torch.load(folder / "model")
    return state


@pytest.mark.parametrize("plugin", [NETWORK, DRAWS])
def test_a_plain_learner_is_not_marked(tmp_path: Path, plugin: str) -> None:
    assert examined(tmp_path, plugin).doubt == ""


@pytest.mark.parametrize("plugin", [LEFT_IN_TRAINING, REMEMBERS])
def test_a_state_that_predict_changes_is_a_mark_and_takes_no_rank(tmp_path: Path, plugin: str) -> None:
    assert examined(tmp_path, plugin).doubt == "changed"
    [row] = ianvs.load_results(tmp_path / "ws").leaderboard.rows
    assert (row.place, row.rank, row.competes) == ("changed", None, False)


def test_what_is_computed_at_the_first_question_is_no_change(tmp_path: Path) -> None:
    found = examined(
        tmp_path,
        edited(KEEPS_WHAT_IT_COMPUTES, TAUGHT, "        self.cached = None\n" + TAUGHT),
    )
    assert found.doubt == ""


def test_random_numbers_that_predict_draws_do_not_change_the_next_round(tmp_path: Path) -> None:
    assert saved(examined(tmp_path / "a", NETWORK))["drawn"] == saved(examined(tmp_path / "b", DRAWS))["drawn"]


def test_one_that_adapts_is_asked_as_a_second_object(tmp_path: Path) -> None:
    """What it learns while it is tested is gone when it is taught the next round."""
    found = examined(tmp_path, ADAPTS)
    assert found.doubt == "" and saved(found)["asked"] == []


def test_probes_within_a_stream_do_not_touch_the_learner(tmp_path: Path) -> None:
    stream = TESTENV.replace("class-incremental, rounds: 2", "online, rounds: 2, batch: 100, eval_every: 300")
    without = stream.replace(", eval_every: 300", "")
    probed, plain = examined(tmp_path / "a", REMEMBERS, stream), examined(tmp_path / "b", REMEMBERS, without)
    assert len(saved(probed)["asked"]) == len(saved(plain)["asked"])
    assert saved(probed)["drawn"] == saved(plain)["drawn"]


@pytest.mark.slow
def test_scores_are_made_where_the_plugin_never_was(tmp_path: Path) -> None:
    """It turns numpy's comparison and the current folder; its score is that of its answers all the same."""
    turning = edited(
        NETWORK,
        "        x = torch.as_tensor(data.x)",
        "        np.array_equal = np.mean = np.sum = np.bincount = lambda *_, **__: 1.0\n"
        "        import os; os.chdir('/')\n        x = torch.as_tensor(data.x)",
    )
    turned, plain = examined(tmp_path / "a", turning, engine="local"), examined(tmp_path / "b", NETWORK)
    assert turned.metrics["accuracy"] == plain.metrics["accuracy"]


def test_answers_count_as_they_were_given(tmp_path: Path) -> None:
    """It hands out one array and writes into it later."""
    later = edited(
        NETWORK,
        "            return self.network(x).argmax(1).numpy()",
        "            if hasattr(self, 'said'):\n                self.said[:] = 0\n"
        "            self.said = self.network(x).argmax(1).numpy()\n            return self.said",
    )
    changed, plain = examined(tmp_path / "a", later), examined(tmp_path / "b", NETWORK)
    np.testing.assert_array_equal(changed.matrices["accuracy"].values[:, :2], plain.matrices["accuracy"].values[:, :2])
