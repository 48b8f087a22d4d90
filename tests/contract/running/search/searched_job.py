"""A small job with a search, whose learner writes down every round that it is taught."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.jobs import write_job

__all__ = ["searched_job", "taught"]

_PLUGIN = '''
import json, os, time
import numpy as np

class Nearest:
    """The class whose mean is nearest; some answers, drawn by the seed, are wrong on purpose."""

    memory = ()

    def __init__(self, noise=0.1, scale=1, kind="a"):
        if noise > 1:
            raise ValueError("noise is a share: at most 1")
        self.noise, self.sums, self.drawn, self.scale = noise, {}, [0, 0], scale

    def train(self, train_data, valid_data=None, *, round, seed, folder):
        if self.noise > 0.95:
            raise RuntimeError("too much noise")
        with open(folder / "taught.txt", "a") as log:
            log.write(f"{self.noise!r},{self.scale} {seed} {round}\\n")
        time.sleep(PAUSE)
        self.drawn = [seed, round]
        for label in np.unique(train_data.y).tolist():
            x = train_data.x[train_data.y == label].reshape(-1, 64).astype(float)
            self.sums[label] = x.mean(axis=0).tolist()

    def predict(self, data):
        x = data.x.reshape(len(data), 64).astype(float)
        labels = np.array(sorted(self.sums))
        means = np.array([self.sums[label] for label in labels.tolist()])
        found = labels[((x[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)]
        draw = np.random.default_rng(self.drawn)
        wrong = draw.random(len(x)) < self.noise
        return np.where(wrong, draw.integers(0, 10, len(x)), found)

    def save(self, path):
        path.with_suffix(".json").write_text(json.dumps([list(self.sums.items()), self.drawn]))
        return path.with_suffix(".json")

    def load(self, path):
        sums, self.drawn = json.loads(path.read_text())
        self.sums = dict(sums)
'''


_TESTENV = """
dataset: {name: digits}
scenario: {name: class-incremental, rounds: 5}
metrics: [{name: accuracy}]
"""


def searched_job(
    folder: Path,
    search: str,
    hyperparameters: str = "- noise: {uniform: [0.0, 0.9]}",
    *,
    job: str = "seeds: [0, 1]\nengine: inline",
    pause: float = 0.0,
    sort_by: str = "[{accuracy: descend}]",
    testenv: str = _TESTENV,
) -> Path:
    """search: its keys, in one line of yaml. pause: seconds that a round of training takes beside."""
    return write_job(
        folder,
        plugin=_PLUGIN.replace("PAUSE", repr(pause)),
        name="Nearest",
        hyperparameters=hyperparameters,
        job=f"{job}\nsearch: {search}" if search else job,
        sort_by=sort_by,
        testenv=testenv,
    )


def taught(folder: Path) -> Counter[tuple[str, int, int]]:
    """How often each (hyperparameters, seed, round) was taught."""
    files = sorted((folder / "ws" / "cases").glob("*/files/taught.txt"))
    lines = [line.split() for file in files for line in file.read_text().splitlines()]
    return Counter((what, int(seed), int(round_)) for what, seed, round_ in lines)
