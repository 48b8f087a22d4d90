"""What a case costs in sandboxes (`sealing: strict`), beside what it has to start.

    python benchmarks/sandboxes.py [--repeats 3]

A case of two rounds starts five sandboxes: a training and an evaluation for each round, and the evaluation of the
untrained model. ratio: what sandboxes add to the wall-clock of a run, by five starts of a Python in a sandbox that
imports torch. All are measured in turn; medians of --repeats. At most 1.3 is expected.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ianvs.processes.sandbox import Sandbox, missing_sandbox

FILES = {
    "job.yaml": """
benchmarkingjob:
  name: sandboxes
  workspace: ./workspace
  testenv: ./testenv.yaml
  seeds: [0]
  test_object: {type: algorithms, algorithms: [{name: finetune, url: ./algorithm.yaml}]}
  rank: {sort_by: [{accuracy: descend}]}
""",
    "testenv.yaml": """
testenv:
  dataset: {name: digits}
  scenario: {name: class-incremental, rounds: 2}
  metrics: [accuracy]
""",
    "algorithm.yaml": """
algorithm:
  paradigm_type: incrementallearning
  modules:
    - {type: basemodel, name: finetune, hyperparameters: [{epochs: {values: [1]}}]}
""",
}
STARTS = 5


def seconds(command: list[str]) -> float:
    """Wall-clock of a command that has to succeed."""
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def run_seconds(sealing: str) -> float:
    """Wall-clock of a run in a new workspace."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            (Path(folder) / name).write_text(text)
        return seconds([sys.executable, "-m", "ianvs", "-f", f"{folder}/job.yaml", "--set", f"sealing={sealing}"])


def main() -> None:
    """Print three times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    if missing := missing_sandbox():
        sys.exit(missing)
    start_command = Sandbox().command([sys.executable, "-c", "import torch"])
    rows = [(seconds(start_command), run_seconds("off"), run_seconds("strict")) for _ in range(repeats)]
    start, off, strict = (statistics.median(column) for column in zip(*rows, strict=True))
    print(
        f"a start {start:.2f} s, off {off:.2f} s, strict {strict:.2f} s: ratio {(strict - off) / (STARTS * start):.2f}"
    )


if __name__ == "__main__":
    main()
