"""How long planning a large grid takes, and how its memory grows: 10 000 cells beside 1 000 in one run.

python benchmarks/planning.py
"""

from __future__ import annotations

import tempfile
import time
import tracemalloc
from pathlib import Path

import ianvs
from ianvs.planning import Plan

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


def plan_of(folder: Path, cells: int) -> Plan:
    """The plan of a job with `cells` test cases."""
    (folder / "plugin.py").write_text(PLUGIN)
    (folder / "testenv.yaml").write_text(TESTENV)
    a, b = (", ".join(map(str, range(size))) for size in (100, cells // 100))
    (folder / "algorithm.yaml").write_text(ALGORITHM.format(a=a, b=b))
    (folder / "job.yaml").write_text(JOB.format(folder=folder))
    return ianvs.plan(folder / "job.yaml")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        plan_of(Path(name), 100)  # what a first call loads is not counted
        for cells in (1_000, 10_000):
            start = time.perf_counter()
            planned = sum(1 for _ in plan_of(Path(name), cells))
            seconds = time.perf_counter() - start
            plan = plan_of(Path(name), cells)
            tracemalloc.start()
            for _ in plan:
                pass
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            print(f"{planned} cells: {seconds:.2f} s, peak of {peak / 1e6:.1f} MB while iterating")


if __name__ == "__main__":
    main()
