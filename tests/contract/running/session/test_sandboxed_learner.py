"""A learner in sandboxes takes part in the loop of a case as one in its process, and learns nothing from questions."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

import ianvs
from ianvs.plugins.authors_files import kept_files
from ianvs.processes.sandbox import data_of_packages, missing_sandbox
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session import case
from ianvs.running.session.memory_meter import MemoryMeter
from ianvs.running.session.sandboxed_learner import SandboxedLearner
from ianvs.running.session.session import Brief
from tests.jobs import write_job

pytestmark = pytest.mark.skipif(bool(reason := missing_sandbox()), reason=reason or "a sandbox runs")

MEANS = '''
import numpy as np

class Means:
    """Nearest class mean; with a bias, it prefers the class whose images it was asked about and taught nothing of."""
    def __init__(self, cheats=False):
        self.cheats, self.means, self.asked = cheats, {}, None
    def train(self, train_data, valid_data=None):
        x, y = train_data.x.reshape(len(train_data), -1), train_data.y
        self.means |= {int(c): x[y == c].mean(0) for c in np.unique(y)}
        if self.asked is not None:
            open("asked_before_round", "w").close()
    def predict(self, data):
        x = data.x.reshape(len(data), -1)
        if self.cheats:
            self.asked = x
            try:
                open("note", "w").close()
            except OSError:
                pass
        if not self.means:
            return np.zeros(len(x), int)
        known = sorted(self.means)
        distances = np.stack([((x - self.means[c]) ** 2).sum(1) for c in known])
        return np.array(known)[distances.argmin(0)]
    def save(self, path):
        np.savez(path.with_suffix(".npz"), **{str(c): mean for c, mean in self.means.items()})
        return path.with_suffix(".npz")
    def load(self, path):
        self.means = {int(c): mean for c, mean in np.load(path).items()}
'''
TESTENV = """
dataset: {name: digits}
scenario: {name: class-incremental, rounds: 2}
metrics: [accuracy]
"""


def in_sandboxes(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Cases of this process have their learners in sandboxes."""

    def make(request: CaseRequest, brief: Brief, memory: MemoryMeter) -> Any:
        files = {Path(path): text for path, text in kept_files().items()}
        scratch = Path(tempfile.mkdtemp(dir=folder))
        return SandboxedLearner(request, brief, memory, files, (), data_of_packages(), scratch)

    monkeypatch.setattr(case, "LocalLearner", make)


def results(folder: Path, hyperparameters: str = "") -> tuple[Any, list[Path]]:
    """The score matrix, and the files that the learner has left in its folder."""
    path = write_job(
        folder, plugin=MEANS, name="Means", hyperparameters=hyperparameters, testenv=TESTENV, job="engine: inline"
    )
    [found] = ianvs.run(path)
    assert found.status == "finished", found.failure
    notes = [file for file in folder.rglob("files/*") if file.is_file()]
    return found.matrices["accuracy"].values, notes


def test_answers_are_those_of_a_learner_in_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, _ = results(tmp_path / "here")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    in_sandboxes(monkeypatch, scratch)
    there, _ = results(tmp_path / "there")
    assert there.tolist() == here.tolist()
    shutil.rmtree(scratch)


def test_nothing_that_was_asked_reaches_a_later_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cheats = "cheats: {values: [true]}"
    _, notes = results(tmp_path / "here", cheats)
    assert {note.name for note in notes} == {"note", "asked_before_round"}  # or this test could not fail
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    in_sandboxes(monkeypatch, scratch)
    _, notes = results(tmp_path / "there", cheats)
    assert notes == []
