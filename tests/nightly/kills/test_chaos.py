"""Whatever dies, everything that was finished stays, and the end is the same as if nothing had happened."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest

from tests.jobs import write_job

METHODS = Path(__file__).parents[3] / "testalgorithms"

NOTING = '''
import sys
sys.path.append({methods!r})
from ianvs.testalgorithms.replay.basemodel import Replay


class Noting(Replay):
    """Replay that complains when it is asked to train a round that is stored already."""

    def train(self, train_data, valid_data=None, *, round, folder, **context):
        if (folder.parent / "rounds" / str(round) / "round.json").exists():
            (folder.parent / f"trained-twice-{{round}}").touch()
        super().train(train_data, valid_data, round=round, **context)
'''
# A learner, and a metric, that take their time in every stage, so that kills fall into each.
SLOW = """
import time
import numpy as np


class Means:
    def __init__(self, share=1.0):
        self.share, self.sums, self.counts = share, np.zeros((10, 64)), np.zeros(10)

    def train(self, train_data, valid_data=None, **context):
        time.sleep(0.02)
        for x, label in zip(train_data.x, train_data.y):
            self.sums[label] += x.ravel()
            self.counts[label] += 1

    def predict(self, data):
        time.sleep(0.02)
        known = np.flatnonzero(self.counts)
        if not len(known):
            return np.zeros(len(data), dtype=int)
        means = self.share * self.sums[known] / self.counts[known][:, None]
        return known[((data.x.reshape(len(data), 1, -1) - means) ** 2).sum(2).argmin(1)]

    def unseen_scores(self, data, **context):
        return np.zeros(len(data))

    def save(self, path):
        time.sleep(0.1)
        np.savez(path.with_suffix(".npz"), sums=self.sums, counts=self.counts)
        return path.with_suffix(".npz")

    def load(self, path):
        held = np.load(path)
        self.sums, self.counts = held["sums"], held["counts"]
"""
METRIC = """
import time


def slow_accuracy(y_true, y_pred):
    time.sleep(0.0005)  # a thousand times for each case: its standard error is from resampled answers
    return (y_true == y_pred).mean()
"""
KINDS = {
    "class-incremental": ("scenario: {name: class-incremental, rounds: 5}", "incrementallearning", ""),
    "online": ("scenario: {name: online, rounds: 5, batch: 200}", "incrementallearning", ""),
    "prequential": (
        "scenario: {name: online, rounds: 5, batch: 200}\nprequential: true", "incrementallearning", "",
    ),
    "lifelong": ("scenario: {name: open-world, rounds: 5, returning: 0.3}", "lifelonglearning", ""),
    "search": (
        "scenario: {name: class-incremental, rounds: 5}", "incrementallearning", "\nsearch: {name: asha, trials: 3}",
    ),
}  # fmt: skip
# Whether a row is in the Pareto front depends on them.
TIMES = r"Pareto|Time|memory_mb|seconds|_ms"


def make(folder: Path, cells: int, epochs: int) -> Path:
    capacities = ", ".join(str(20 * (n + 1)) for n in range(cells))
    return write_job(
        folder,
        engine="local",
        plugin=NOTING.format(methods=str(METHODS.parent)),
        name="Noting",
        hyperparameters=f"- capacity: {{values: [{capacities}]}}\n- epochs: {{values: [{epochs}]}}",
        job="seeds: [0, 1, 2]\njobs: 2\nretries: 1",
    )


def start(path: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ianvs", "-f", str(path)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def leaderboard(folder: Path) -> str:
    frame = pd.read_csv(folder / "ws" / "test" / "rank" / "all_rank.csv")
    return frame.loc[:, ~frame.columns.str.contains(TIMES)].to_csv()


def make_kind(folder: Path, kind: str) -> Path:
    exam, paradigm, search = KINDS[kind]
    folder.mkdir()
    (folder / "metric.py").write_text(METRIC)
    metrics = f"[{{name: slow_accuracy, url: {folder / 'metric.py'}}}, accuracy]"
    grid = "- share: {uniform: [0.5, 1.5]}" if search else "- share: {values: [0.8, 1.0]}"
    path = write_job(
        folder,
        engine="local",
        plugin=SLOW,
        name="Means",
        hyperparameters=grid,
        testenv=f"dataset: {{name: digits}}\n{exam}\nmetrics: {metrics}",
        job=f"seeds: [0]\njobs: 2\nretries: 1{search}",
    )
    file = folder / "algorithm.yaml"
    file.write_text(file.read_text().replace("incrementallearning", paradigm))
    return path


def undisturbed_and_chaotic(quiet: Path, stormy: Path, kills: int, seed: int, first: float = 0.5) -> Path:
    """Run both jobs, one with kills at random moments; the workspace of that one. first: of a third of the time."""
    began = time.monotonic()
    assert start(quiet).wait() == 0
    seconds = time.monotonic() - began
    rng = random.Random(seed)
    done = 0
    while done < kills:
        process = start(stormy)
        time.sleep(rng.uniform(first, 1.0) * max(2.5, seconds / 3))
        with contextlib.suppress(psutil.NoSuchProcess):
            family = psutil.Process(process.pid).children(recursive=True)
            if family and done + 1 < kills:
                rng.choice(family).kill()
                done += 1
                time.sleep(rng.uniform(0.0, 1.0))
        process.kill()
        process.wait()
        done += 1
    ended = start(stormy).wait()
    if ended:  # a case that lost both its tries to the storm runs again
        ended = start(stormy).wait()
    assert ended == 0
    assert leaderboard(stormy.parent) == leaderboard(quiet.parent)
    workspace = stormy.parent / "ws"
    assert not list(workspace.glob("cases/*/rounds/.*"))
    assert not list(workspace.glob("cases/*/.*"))
    return workspace


def grid_of_replay(tmp_path: Path, cells: int, epochs: int, kills: int, seed: int) -> None:
    jobs = (make(tmp_path / name, cells, epochs) for name in ("quiet", "stormy"))
    cases = undisturbed_and_chaotic(*jobs, kills, seed) / "cases"
    assert not list(cases.glob("*/trained-twice-*"))
    assert len(list(cases.glob("*/result.json"))) == 3 * cells


@pytest.mark.slow
def test_a_job_that_is_killed_again_and_again_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    grid_of_replay(tmp_path, cells=4, epochs=10, kills=4, seed=0)


@pytest.mark.slow
def test_twenty_kills_in_a_job_of_24_cases(tmp_path: Path) -> None:
    grid_of_replay(tmp_path, cells=8, epochs=60, kills=20, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_exam_survives_kills_in_every_stage(kind: str, tmp_path: Path) -> None:
    """12 kills each, 60 together: in training, saving, prediction, scoring and reporting."""
    quiet, stormy = (make_kind(tmp_path / name, kind) for name in ("quiet", "stormy"))
    undisturbed_and_chaotic(quiet, stormy, kills=12, seed=len(kind), first=0.1)
