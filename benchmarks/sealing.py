"""What sealing costs: the same job with learners in processes of their own, and in that of the keeper, side by side.

    python benchmarks/sealing.py [--repeats 3] [--only digits]

For each job the CPU seconds of the whole run, with and without, in turn; their ratio (the median of the pairs); and the
milliseconds a round that sealing adds. Small jobs have ten seeds: what is done once is shared by them. The target: at
most 3 % of the CPU time where training is what takes time, and 40 ms a round elsewhere. Without is not an option of a
job: the benchmark changes what cases are told.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import ianvs
from ianvs.running.scheduler import controller

PICTURES = """
testenv:
  dataset: {{train_data: {data}, test_data: {data}}}
  scenario: {{name: class-incremental, rounds: 5}}
  metrics: [accuracy]
"""
STREETS = """
testenv:
  dataset: {name: streets}
  scenario: {name: multi-domain-incremental}
  metrics: [mIoU]
"""
DIGITS = """
testenv:
  dataset: {name: digits}
  scenario: {name: class-incremental, rounds: 5}
  metrics: [accuracy]
"""
JOB = """
benchmarkingjob:
  name: sealing
  workspace: {folder}/{workspace}
  testenv: {folder}/testenv.yaml
  seeds: {seeds}
  jobs: 1
  test_object:
    type: algorithms
    algorithms: [{{name: one, url: {folder}/algorithm.yaml}}]
  rank: {{sort_by: [{{{metric}: descend}}]}}
"""
ALGORITHM = """
algorithm:
  paradigm_type: incrementallearning
  modules:
    - {{type: basemodel, name: {name}{more}}}
"""
IDLE = """
class Idle:
    def train(self, train_data): ...
    def predict(self, data): return [0] * len(data)
    def save(self, path): path.write_text("")
    def load(self, path): ...
"""
HYPERPARAMETERS = ", hyperparameters: [{values}]"


def pictures(path: Path, count: int = 5000) -> None:
    """CIFAR's layout with classes that can be told apart."""
    draw = np.random.default_rng(0)
    y = np.arange(count) % 10
    means = draw.integers(0, 255, (10, 1, 1, 3))
    x = np.clip(means[y] + draw.normal(0, 40, (count, 32, 32, 3)), 0, 255).astype(np.uint8)
    np.savez(path, x_train=x, y_train=y, x_test=x[:1000], y_test=y[:1000])


def jobs(folder: Path) -> Iterator[tuple[str, str, str, str, int, int]]:
    """(what it is, testenv, algorithm, metric, rounds, seeds)."""
    pictures(folder / "pictures.npz")
    training = "network: resnet, epochs: 1, batch_size: 32"
    values = ", ".join(f"{{{name}: {{values: [{value}]}}}}" for name, value in map(_pair, training.split(", ")))
    resnet = ALGORITHM.format(name="Finetune", more=HYPERPARAMETERS.format(values=values))
    yield "CIFAR-like pictures, ResNet", PICTURES.format(data=folder / "pictures.npz"), resnet, "accuracy", 5, 1
    epochs = HYPERPARAMETERS.format(values="{epochs: {values: [2]}}")
    streets = ALGORITHM.format(name="MDILSS", more=epochs)
    yield "streets, MDIL-SS", STREETS, streets, "mIoU", 3, 1
    idle = ALGORITHM.format(name="Idle", more=f", url: {folder}/plugin.py")
    yield "digits, a plugin that does nothing", DIGITS, idle, "accuracy", 5, 10
    yield "digits, Finetune", DIGITS, ALGORITHM.format(name="Finetune", more=epochs), "accuracy", 5, 10


def _pair(text: str) -> list[str]:
    return text.split(": ")


@contextmanager
def unsealed() -> Iterator[None]:
    """Within, cases are told that they have no processes of their own; all else is the same."""
    ours = controller.case_request
    controller.case_request = lambda *arguments, **settings: ours(*arguments, **{**settings, "apart": False})
    try:
        yield
    finally:
        controller.case_request = ours


def cpu_seconds(folder: Path, metric: str, seeds: int, workspace: str) -> float:
    text = JOB.format(folder=folder, workspace=workspace, metric=metric, seeds=list(range(seeds)))
    (folder / "job.yaml").write_text(text)
    before = _cpu()
    results = ianvs.run(folder / "job.yaml")
    assert all(found.status == "finished" for found in results), [found.failure for found in results]
    time.sleep(0.2)  # the engine's process has ended, and is counted
    return _cpu() - before


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="a part of the name of a job")
    options = parser.parse_args()
    repeats = options.repeats
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plugin.py").write_text(IDLE)
        for what, testenv, algorithm, metric, rounds, seeds in jobs(folder):
            if options.only not in what:
                continue
            (folder / "testenv.yaml").write_text(testenv)
            (folder / "algorithm.yaml").write_text(algorithm)
            cpu_seconds(folder, metric, 1, "warm")  # decodes the data
            pairs = []
            for repeat in range(repeats):
                found = {}
                for sealed in (True, False) if repeat % 2 else (False, True):
                    workspace = f"ws-{seeds}-{rounds}-{repeat}-{sealed}"
                    if sealed:
                        found[sealed] = cpu_seconds(folder, metric, seeds, workspace)
                    else:
                        with unsealed():
                            found[sealed] = cpu_seconds(folder, metric, seeds, workspace)
                pairs.append((found[True], found[False]))
            ratio = statistics.median(one / other for one, other in pairs)
            added = statistics.median(one - other for one, other in pairs) / (seeds * (rounds + 1))
            sealed, open_ = (statistics.median(column) for column in zip(*pairs, strict=True))
            print(
                f"{what:36s} sealed {sealed:7.2f} CPU s   open {open_:7.2f} CPU s   ratio {ratio:.3f}   "
                f"{1000 * added:6.1f} ms a round   (n = {repeats})",
                flush=True,
            )


if __name__ == "__main__":
    main()
