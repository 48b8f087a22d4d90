"""What it costs to know what is to be done: of a large grid that is new, and of many cases that have finished.

    python benchmarks/planning.py [--finished 2000]

Prints processor seconds: to plan 10 000 cells beside 1 000, with the memory that it takes; and of `plan`, `report` and
a run in which nothing is left to do, as commands, over so many finished cases of five rounds, five seeds a row.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import ianvs
from ianvs.running.planning.plan import Plan

PLUGIN = """
class Nothing:
    def __init__(self, a=0, b=0): ...
    def train(self, data): ...
    def predict(self, data): return [0] * len(data)
    def save(self, path): ...
    def load(self, path): ...
"""
JOB = """
benchmarkingjob:
  name: planning
  workspace: {folder}/workspace
  testenv: ./testenv.yaml
  test_object: {{type: algorithms, algorithms: [{{name: nothing, url: ./algorithm.yaml}}]}}
  rank: {{sort_by: [{{accuracy: descend}}]}}
"""
TESTENV = """
testenv:
  dataset: {name: digits}
  scenario: {name: class-incremental, rounds: 5}
  metrics: [accuracy]
"""
ALGORITHM = """
algorithm:
  paradigm_type: incrementallearning
  modules:
    - type: basemodel
      name: Nothing
      url: ./plugin.py
      hyperparameters:
        - a: {{values: [{a}]}}
        - b: {{values: [{b}]}}
"""


def write_job(folder: Path, cells: int, seeds: int = 1) -> Path:
    """A job with `cells` test cases."""
    (folder / "plugin.py").write_text(PLUGIN)
    (folder / "testenv.yaml").write_text(TESTENV)
    a, b = (", ".join(map(str, range(size))) for size in (20, cells // seeds // 20))
    (folder / "algorithm.yaml").write_text(ALGORITHM.format(a=a, b=b))
    (folder / "job.yaml").write_text(JOB.format(folder=folder) + f"  seeds: {list(range(seeds))}\n")
    return folder / "job.yaml"


def plan_of(folder: Path, cells: int) -> Plan:
    return ianvs.plan(write_job(folder, cells))


def command_seconds(*command: str) -> float:
    """Processor seconds of `ianvs` with these words, its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-m", "ianvs", *command], check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def finished(cells: int) -> None:
    """What is to be done where all is done."""
    with tempfile.TemporaryDirectory() as name:
        job = str(write_job(Path(name), cells, seeds=5))
        ianvs.run(job, engine="inline")
        told = []
        for words in (["plan", "-f", job], ["report", "-f", job], ["-f", job]):
            command_seconds(*words)  # so that its byte code is there
            told.append(f"{' '.join(words[:-2] or ['run'])} {command_seconds(*words):.1f} s")
        print(f"{cells} finished cases: {', '.join(told)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--finished", type=int, default=2000, help="cases; running them takes minutes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        plan_of(Path(name), 100)  # what a first call loads is not counted
        for cells in (1_000, 10_000):
            start = time.process_time()
            planned = sum(1 for _ in plan_of(Path(name), cells))
            seconds = time.process_time() - start
            plan = plan_of(Path(name), cells)
            tracemalloc.start()
            for _ in plan:
                pass
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            print(f"{planned} cells: {seconds:.2f} s, peak of {peak / 1e6:.1f} MB while iterating")
    finished(options.finished)


if __name__ == "__main__":
    main()
