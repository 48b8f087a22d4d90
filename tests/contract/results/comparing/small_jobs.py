"""Small real jobs: noisy class means on handwritten digits in two rounds, in a workspace each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import ianvs

PLUGIN = '''
import numpy


class NoisyMeans:
    """Nearest class mean; `noise` is added to the means, another one for each seed."""

    def __init__(self, noise=0.0, fail_for_seed=None):
        self.noise, self.fail_for_seed, self.means = noise, fail_for_seed, {}

    def train(self, train_data, valid_data=None, *, seed):
        if seed == self.fail_for_seed:
            raise RuntimeError("no luck")
        random = numpy.random.default_rng(seed)
        flat = train_data.x.reshape(len(train_data.x), -1).astype(float)
        for label in sorted(set(train_data.y.tolist())):
            mean = flat[train_data.y == label].mean(axis=0)
            self.means[label] = mean + self.noise * random.standard_normal(mean.shape)

    def predict(self, data):
        known = sorted(self.means) or [0]
        means = numpy.array([self.means.get(label, 0 * data.x[0].ravel()) for label in known])
        flat = data.x.reshape(len(data.x), -1).astype(float)
        return [known[i] for i in ((flat[:, None] - means[None]) ** 2).sum(axis=2).argmin(axis=1)]

    def save(self, path):
        numpy.savez(path.with_suffix(".npz"), **{str(label): mean for label, mean in self.means.items()})
        return path.with_suffix(".npz")

    def load(self, path):
        with numpy.load(path) as stored:
            self.means = {int(label): mean for label, mean in stored.items()}
'''

METRICS = "[{name: accuracy}, {name: BWT}, {name: FWT_survey}]"  # the last needs reference runs
SCENARIO = "{name: class-incremental, rounds: 2}"


def write_job(
    folder: Path,
    algorithms: Mapping[str, str],
    seeds: Sequence[int],
    plugin: str = PLUGIN,
    metrics: str = METRICS,
    scenario: str = SCENARIO,
    exams: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """algorithms: {name: noise, as yaml lists it}. exams: {name: scenario}, of a job with several.

    The workspace is `folder`/ws.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plugin.py").write_text(plugin)
    for exam, its in (exams or {"testenv": scenario}).items():
        (folder / f"{exam}.yaml").write_text(
            f"testenv:\n  dataset: {{name: digits}}\n  scenario: {its}\n  metrics: {metrics}\n"
        )
    for algorithm, grid in algorithms.items():
        (folder / f"{algorithm}.yaml").write_text(
            "algorithm:\n  paradigm_type: incrementallearning\n  modules:\n"
            "    - type: basemodel\n      name: NoisyMeans\n      url: ./plugin.py\n"
            f"      hyperparameters:\n        - noise: {{values: {grid}}}\n"
        )
    listed = "\n".join(f"      - {{name: {one}, url: ./{one}.yaml}}" for one in algorithms)
    job = folder / "benchmarkingjob.yaml"
    job.write_text(
        f"benchmarkingjob:\n  name: small\n  workspace: {folder / 'ws'}\n"
        f"  testenv: [{', '.join(f'./{exam}.yaml' for exam in exams or ('testenv',))}]\n"
        f"  seeds: {list(seeds)}\n  engine: inline\n  test_object:\n    type: algorithms\n    algorithms:\n{listed}\n"
        "  rank:\n    sort_by: [{accuracy: descend}]\n"
    )
    return job


def run(folder: Path, algorithms: Mapping[str, str], seeds: Sequence[int], **more: Any) -> Path:
    """Write a job, run it, and return its folder."""
    ianvs.run(write_job(folder, algorithms, seeds, **more))
    return folder
