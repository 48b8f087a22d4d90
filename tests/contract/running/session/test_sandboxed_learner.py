"""A job under `sealing: strict`: the same scores as without, and nothing that was asked reaches a later round."""

from __future__ import annotations

from pathlib import Path

import pytest

import ianvs
from ianvs.processes.sandbox import missing_sandbox
from tests.jobs import write_job

pytestmark = pytest.mark.skipif(bool(reason := missing_sandbox()), reason=reason or "a sandbox runs")

MEANS = '''
import numpy as np

class Means:
    """Nearest class mean, which notes in its folder that it was asked, where it can."""
    def __init__(self):
        self.means = {}
    def train(self, train_data, valid_data=None):
        x, y = train_data.x.reshape(len(train_data), -1), train_data.y
        self.means |= {int(c): x[y == c].mean(0) for c in np.unique(y)}
        open("trained", "w").close()
    def predict(self, data):
        x = data.x.reshape(len(data), -1)
        try:
            open("asked", "w").close()
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


def test_a_job_in_sandboxes_has_the_same_scores_and_trains_before_it_examines(tmp_path: Path) -> None:
    matrices = []
    for sealing, files in (("off", {"trained", "asked"}), ("strict", {"trained"})):
        folder = tmp_path / sealing
        job = f"engine: inline\nsealing: {sealing}"
        path = write_job(folder, plugin=MEANS, name="Means", hyperparameters="", testenv=TESTENV, job=job)
        results = ianvs.run(path)
        [case] = results
        assert case.status == "finished", case.failure
        matrices.append(case.matrices["accuracy"].values.tolist())
        assert {file.name for file in folder.rglob("files/*")} == files
    assert matrices[0] == matrices[1]
    times = case.provenance["sandboxes"]
    assert times["trained_at"] < times["evaluated_at"]
    assert any(note.text.startswith("In sandboxes, every case was trained") for note in results.job_notes)
