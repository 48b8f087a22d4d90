"""What the exam adds to a stream that is handed over chunk by chunk.

    python benchmarks/streams.py

A stream of 20 000 samples of 64 numbers in chunks of 10. Prints microseconds a chunk, in an online exam and in a plain
loop, for a learner that only takes each chunk, and for one that takes a step of SGD on it (the multilayer perceptron of
the main job). Both of a pair run in turn in this process, on one thread.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from textwrap import dedent

import numpy as np
import torch
from torch import nn

import ianvs

SAMPLES, FEATURES, CLASSES, BATCH = 20_000, 64, 10, 10
ROOT = Path(__file__).resolve().parent.parent

TAKER = '''
class Taker:
    """Takes what comes and says nothing of it."""

    def train(self, train_data):
        self.last = train_data.x, train_data.y

    def predict(self, data):
        return [0] * len(data)

    def save(self, path):
        path.write_text("")

    def load(self, path): ...
'''


def write_job(folder: Path, name: str, url: str, hyperparameters: str) -> Path:
    """The three files of a job that hands over the stream."""
    rng = np.random.default_rng(0)
    y = np.arange(SAMPLES) % CLASSES
    x = (rng.normal(size=(SAMPLES, FEATURES)) + y[:, None]).astype(np.float32)
    np.savez(folder / "train.npz", x=x, y=y)
    np.savez(folder / "test.npz", x=x[:100], y=y[:100])
    (folder / "plugin.py").write_text(TAKER)
    (folder / "testenv.yaml").write_text(
        "testenv:\n  dataset: {train_data: ./train.npz, test_data: ./test.npz}\n"
        f"  scenario: {{name: online, rounds: 5, batch: {BATCH}}}\n  metrics: [accuracy]\n"
    )
    (folder / "algorithm.yaml").write_text(
        "algorithm:\n  paradigm_type: incrementallearning\n  modules:\n"
        f"    - {{type: basemodel, name: {name}, url: {url}, hyperparameters: {hyperparameters}}}\n"
    )
    job = folder / "benchmarkingjob.yaml"
    job.write_text(
        dedent(f"""
        benchmarkingjob:
          name: streams
          workspace: {folder / "ws"}
          testenv: ./testenv.yaml
          engine: inline
          device: cpu
          test_object: {{algorithms: [{{name: learner, url: ./algorithm.yaml}}]}}
          rank: {{sort_by: [{{accuracy: descend}}]}}
        """)
    )
    return job


def exam_seconds(job: Path) -> float:
    """Wall-clock of the whole run but for examinations: planning, storing and reporting are in it."""
    started = time.perf_counter()
    [found] = ianvs.run(job, rerun="all")
    seconds = time.perf_counter() - started
    assert found.status == "finished", found.failure
    return seconds - sum(round_.eval_seconds for round_ in found.rounds)


def plain_taking(folder: Path) -> float:
    """The same chunks by slicing."""
    with np.load(folder / "train.npz") as stored:
        x, y = stored["x"], stored["y"]
    order = np.argsort(y, kind="stable")
    started = time.perf_counter()
    for start in range(0, SAMPLES, BATCH):
        rows = order[start : start + BATCH]
        last = x[rows], y[rows]
    assert len(last[0]) == BATCH
    return time.perf_counter() - started


def plain_training(folder: Path) -> float:
    """One step of SGD on each of the same chunks."""
    with np.load(folder / "train.npz") as stored:
        x, y = torch.from_numpy(stored["x"]), torch.from_numpy(stored["y"]).long()
    order = torch.argsort(y, stable=True)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, CLASSES))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    started = time.perf_counter()
    for start in range(0, SAMPLES, BATCH):
        rows = order[start : start + BATCH]
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
        optimizer.step()
    return time.perf_counter() - started


def main() -> None:
    """Runs both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    chunks = SAMPLES // BATCH
    for name, url, grid, plain in (
        ("Taker", "./plugin.py", "[]", plain_taking),
        ("Finetune", ROOT / "testalgorithms/finetune/basemodel.py", "[epochs: {values: [1]}]", plain_training),
    ):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            job = write_job(folder, name, str(url), grid)
            exam_seconds(job)  # decodes and warms up
            pairs = [(exam_seconds(job), plain(folder)) for _ in range(repeats)]
        ours, theirs = (statistics.median(column) * 1e6 / chunks for column in zip(*pairs, strict=True))
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"{name:10s} exam {ours:8.1f} us a chunk   plain loop {theirs:8.1f} us   ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
