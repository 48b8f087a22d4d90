"""CPU milliseconds that a question and its feedback cost in an exam that asks before it tells.

    python benchmarks/prequential.py                    # 12 000 chunks of one sample, less a run of 2 000
    python benchmarks/prequential.py --chunks 100000

The learner does nothing. Both runs have the same start, two rounds and examinations; their difference is the chunks'.
Keeper and learner take turns: first both on one processor, then wherever the system puts them. There each turn wakes a
processor that sleeps, and on a virtual machine the host's time until it runs ("stolen") counts as the process's own.
"""

import argparse
import os
import resource
import tempfile
from pathlib import Path

import psutil

import ianvs

FEW = 2_000
PLUGIN = """
class Nothing:
    def answer(self, data):
        return [0] * len(data)

    def feedback(self, told):
        told.labels

    def save(self, path):
        path.write_text("")

    def load(self, path):
        pass
"""
SOURCE = """
import numpy as np


def numbers(count: int):
    draw = np.random.default_rng(0)
    part = lambda n: {"x": draw.random((n, 16), dtype=np.float32), "y": draw.integers(0, 10, n)}
    return {"train": part(count), "test": part(50), "classes": [str(label) for label in range(10)]}
"""
TESTENV = """testenv:
  dataset: {{name: numbers, url: ./source.py, count: {count}}}
  scenario: {{name: instance-incremental, rounds: 2, batch: 1}}
  prequential: true
  metrics: [{{name: online_accuracy}}, {{name: accuracy}}]
"""
ALGORITHM = """algorithm:
  paradigm_type: testtimelearning
  modules: [{type: basemodel, name: Nothing, url: ./plugin.py}]
"""
JOB = """benchmarkingjob:
  name: prequential
  workspace: {folder}/workspace
  testenv: ./testenv.yaml
  seeds: [0]
  test_object: {{type: algorithms, algorithms: [{{name: nothing, url: ./algorithm.yaml}}]}}
  rank: {{sort_by: [{{accuracy: descend}}]}}
"""


def seconds(count: int) -> float:
    """CPU seconds of all processes of a run over so many chunks."""
    before = _spent()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {"plugin.py": PLUGIN, "source.py": SOURCE, "testenv.yaml": TESTENV.format(count=count)}
        for file, text in {**files, "algorithm.yaml": ALGORITHM, "job.yaml": JOB.format(folder=folder)}.items():
            (folder / file).write_text(text)
        results = ianvs.run(folder / "job.yaml")
        assert results.exit_code == 0, results.failed
    return _spent() - before


def compare(chunks: int, where: str) -> None:
    """Tell what a chunk costs, on the processors that this process may run on."""
    stolen = _stolen()
    few, many = seconds(FEW), seconds(chunks)
    each = 1000 * (many - few) / (chunks - FEW)
    print(f"{where}: {each:.2f} ms a chunk; {chunks} chunks took {many:.1f} CPU s ({_stolen() - stolen:.1f} s stolen)")


def _stolen() -> float:
    """Seconds that the host of this machine has kept its processors waiting, all together; Linux."""
    return psutil.cpu_times().steal


def _spent() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=12_000)
    said = parser.parse_args()
    seconds(FEW)  # what is imported and compiled once
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    compare(said.chunks, "one processor")
    os.sched_setaffinity(0, allowed)
    compare(said.chunks, "all processors")
