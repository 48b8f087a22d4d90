"""The work by ianvs: three files and a method, as a user writes them, and its command."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from work import ALPHA, CAPACITY, FISHER_BATCH, LEARNING_RATE, MOMENTUM, ROUNDS, STRENGTH, TEMPERATURE, Work

import ianvs
from ianvs.store import CaseStore

METHODS = {
    "naive": ("finetune", "Finetune", {}),
    "cumulative": ("cumulative", "Cumulative", {}),
    "replay": ("replay", "Replay", {"capacity": CAPACITY}),
    "lwf": ("lwf", "LwF", {"alpha": ALPHA, "temperature": TEMPERATURE}),
    "ewc": ("ewc", "EWC", {"strength": STRENGTH, "fisher": "batch", "fisher_batch": FISHER_BATCH}),
}
METHOD = """
from torch import nn

from ianvs.testalgorithms.{module}.basemodel import {name}


class Mine({name}):
    def build_network(self, input_shape, num_classes):
        return {network}
"""
NETWORKS = {
    "digits": "nn.Sequential(nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, num_classes))",
    "pictures": """nn.Sequential(
            *(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(64 * 8 * 8, num_classes)),
        )""",
}
ALGORITHM = """
algorithm:
  paradigm_type: incrementallearning
  modules:
    - type: basemodel
      name: Mine
      url: ./mine.py
      hyperparameters:
{hyperparameters}
"""
TESTENV = """
testenv:
  dataset: {{train_data: {folder}/train.npz, test_data: {folder}/test.npz}}
  scenario: {{name: class-incremental, rounds: {rounds}}}
  metrics: [accuracy, BWT]
"""
JOB = """
benchmarkingjob:
  name: peers
  workspace: ./workspace
  testenv: ./testenv.yaml
  seeds: [{seeds}]
  jobs: 1
  test_object: {{type: algorithms, algorithms: [{{name: mine, url: ./algorithm.yaml}}]}}
  rank: {{sort_by: [{{accuracy: descend}}]}}
"""


def command_of(work: Work, folder: Path) -> list[str]:
    """Writes the files, and says what is to be run."""
    module, name, options = METHODS[work.method]
    options = {
        **options,
        "epochs": work.epochs,
        "batch_size": work.batch,
        "learning_rate": LEARNING_RATE,
        "momentum": MOMENTUM,
        "mask_unseen": "false",
    }
    lines = "\n".join(f"        - {key}: {{values: [{value}]}}" for key, value in options.items())
    texts = {
        "mine.py": METHOD.format(module=module, name=name, network=NETWORKS[work.data]),
        "algorithm.yaml": ALGORITHM.format(hyperparameters=lines),
        "testenv.yaml": TESTENV.format(folder=work.folder, rounds=ROUNDS),
        "job.yaml": JOB.format(seeds=", ".join(map(str, range(work.seeds)))),
    }
    for file, text in texts.items():
        (folder / file).write_text(text)
    return [sys.executable, "-m", "ianvs", "-f", str(folder / "job.yaml")]


def outcome_of(folder: Path) -> tuple[float, float, list[torch.Tensor]]:
    """Accuracy of the last seed, processor seconds of training of all, weights of the last."""
    results = ianvs.load_results(folder / "workspace")
    last = max(results, key=lambda result: result.case.seed)
    saved = CaseStore(folder / "workspace").model_folder(last.case.id, ROUNDS)
    (file,) = saved.glob("*.pt")
    training = sum(round_.train_cpu_seconds or 0.0 for result in results for round_ in result.rounds)
    return last.metrics["accuracy"], training, list(torch.load(file, weights_only=True)["network"].values())
