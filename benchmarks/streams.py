"""What the exam adds to a stream that is handed over chunk by chunk.

    python benchmarks/streams.py

Streams of 20 000 and of 60 000 samples of 64 numbers in chunks of 10; the cost of a chunk is the difference of the two,
so that planning, storing and reporting, which a stream of any length pays once, are not in it. Prints processor
microseconds a chunk, in an online exam and in a plain loop: for a learner that only takes each chunk, for one that
takes a step of SGD on it (the multilayer perceptron of the main job), and for replay, whose step has as many samples of
a reservoir of 200 beside. Ours and the plain loop run in turn in this process, on one thread.
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

LENGTHS = (20_000, 60_000)
FEATURES, CLASSES, BATCH = 64, 10, 10
GRID = "[epochs: {values: [1]}, momentum: {values: [0.9]}, batch_size: {values: [10]}]"
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


def write_job(folder: Path, samples: int, name: str, url: str, hyperparameters: str) -> Path:
    """The three files of a job that hands over the stream."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    y = np.arange(samples) % CLASSES
    x = (rng.normal(size=(samples, FEATURES)) + y[:, None]).astype(np.float32)
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
    """Processor time of the whole run but for examinations; of this process, where the exam is held and learned."""
    started = time.process_time()
    [found] = ianvs.run(job, rerun="all")
    seconds = time.process_time() - started
    assert found.status == "finished", found.failure
    return seconds - sum(round_.eval_cpu_seconds or 0.0 for round_ in found.rounds)


def plain_taking(folder: Path) -> float:
    """The same chunks by slicing."""
    with np.load(folder / "train.npz") as stored:
        x, y = stored["x"], stored["y"]
    order = np.argsort(y, kind="stable")
    started = time.process_time()
    for start in range(0, len(y), BATCH):
        rows = order[start : start + BATCH]
        last = x[rows], y[rows]
    assert len(last[0]) == BATCH
    return time.process_time() - started


def plain_training(folder: Path) -> float:
    """One step of SGD on each of the same chunks."""
    with np.load(folder / "train.npz") as stored:
        x, y = torch.from_numpy(stored["x"]), torch.from_numpy(stored["y"]).long()
    order = torch.argsort(y, stable=True)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, CLASSES))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    started = time.process_time()
    for start in range(0, len(y), BATCH):
        rows = order[start : start + BATCH]
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
        optimizer.step()
    return time.process_time() - started


def plain_replay(folder: Path) -> float:
    """One step of SGD on each chunk and as many samples of a reservoir (Vitter 1985, algorithm R)."""
    with np.load(folder / "train.npz") as stored:
        x, y = torch.from_numpy(stored["x"]), torch.from_numpy(stored["y"]).long()
    order = torch.argsort(y, stable=True)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, CLASSES))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    rng, kept_x, kept_y, seen = np.random.default_rng(0), torch.empty(200, FEATURES), torch.empty(200).long(), 0
    started = time.process_time()
    for start in range(0, len(y), BATCH):
        rows = order[start : start + BATCH]
        new_x, new_y = x[rows], y[rows]
        some_x, some_y = new_x, new_y
        if seen:
            drawn = torch.from_numpy(rng.choice(min(seen, 200), BATCH, replace=False))
            some_x, some_y = torch.cat([new_x, kept_x[drawn]]), torch.cat([new_y, kept_y[drawn]])
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(some_x), some_y).backward()
        optimizer.step()
        for i in range(BATCH):
            place = seen if seen < 200 else int(rng.integers(seen + 1))
            if place < 200:
                kept_x[place], kept_y[place] = new_x[i], new_y[i]
            seen += 1
    return time.process_time() - started


def main() -> None:
    """Runs both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    chunks = (LENGTHS[1] - LENGTHS[0]) // BATCH
    for name, url, grid, plain in (
        ("Taker", "./plugin.py", "[]", plain_taking),
        ("Finetune", ROOT / "testalgorithms/finetune/basemodel.py", GRID, plain_training),
        (
            "Replay",
            ROOT / "testalgorithms/replay/basemodel.py",
            GRID[:-1] + ", capacity: {values: [200]}]",
            plain_replay,
        ),
    ):
        with tempfile.TemporaryDirectory() as temporary:
            jobs = [write_job(Path(temporary) / str(length), length, name, str(url), grid) for length in LENGTHS]
            for job in jobs:
                exam_seconds(job)  # decodes and warms up
            pairs = []
            for _ in range(repeats):
                short, long = ((exam_seconds(job), plain(job.parent)) for job in jobs)
                pairs.append((long[0] - short[0], long[1] - short[1]))
        ours, theirs = (statistics.median(column) * 1e6 / chunks for column in zip(*pairs, strict=True))
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"{name:10s} exam {ours:8.1f} us a chunk   plain loop {theirs:8.1f} us   ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
