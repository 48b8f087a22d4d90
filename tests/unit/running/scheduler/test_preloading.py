"""What the process that cases are forked from imports for them beforehand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ianvs.config import load_job
from ianvs.running.scheduler.opening import imported_by_cases, imports_of
from tests.jobs import TESTENV, write_job

MINE = "from ianvs.testalgorithms.finetune.basemodel import Finetune\n\nclass Mine(Finetune):\n    pass\n"
HEAVY = {"torch", "torch._dynamo", "torchvision", "transformers"}


def preloaded(folder: Path, plugin: str = MINE, hyperparameters: str = "", testenv: str = TESTENV) -> set[str]:
    lines = f"- {hyperparameters}" if hyperparameters else ""
    job = write_job(folder, plugin=plugin, name="Mine", hyperparameters=lines, testenv=testenv)
    return HEAVY.intersection(imported_by_cases(load_job(job)))


def test_a_perceptron_needs_torch_alone(tmp_path: Path) -> None:
    assert preloaded(tmp_path) == {"torch"}


def test_a_method_without_torch_needs_nothing_heavy(tmp_path: Path) -> None:
    plugin = "class Mine:\n    def train(self, *args, **kwargs): ...\n"
    assert preloaded(tmp_path, plugin) == set()


@pytest.mark.parametrize(
    ("hyperparameter", "more"),
    [
        ("optimizer: {values: [sgd, adamw]}", "torch._dynamo"),
        ("compile: {values: [true]}", "torch._dynamo"),
        ("network: {values: [mlp, resnet]}", "torchvision"),
        ("network: {values: [hf/google/vit]}", "transformers"),
        ("network: {values: [mlp]}", None),
    ],
)
def test_hyperparameters_say_what_else(tmp_path: Path, hyperparameter: str, more: str | None) -> None:
    found = preloaded(tmp_path, hyperparameters=hyperparameter)
    assert more in found if more else found == {"torch"}


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("from torch import optim", "torch._dynamo"),
        ("from torch.func import vmap", "torch._dynamo"),
        ("import torchvision", "torchvision"),
        ("NETWORK = 'resnet'", "torchvision"),
        ("import re; WORD = re.compile('a')", None),
    ],
)
def test_authors_code_says_what_else(tmp_path: Path, line: str, more: str | None) -> None:
    found = preloaded(tmp_path, f"{line}\n{MINE}")
    assert more in found if more else found == {"torch"}


def test_a_scenario_whose_probe_torch_optimises_needs_its_compiler(tmp_path: Path) -> None:
    exam = TESTENV.replace("name: class-incremental", "name: continual-pre-training")
    assert preloaded(tmp_path, testenv=exam) == {"torch", "torch._dynamo"}


def test_imports_of_a_job_are_top_level_names(tmp_path: Path) -> None:
    job = write_job(tmp_path, plugin=MINE, name="Mine", hyperparameters="")
    assert {"torch", "numpy", "ianvs"} <= imports_of(load_job(job))


PLAIN = """
import sys
from ianvs.testalgorithms.ewc.basemodel import EWC
from ianvs.testalgorithms.replay.basemodel import Replay
from tests.unit.testalgorithms.exam_of_arrays import digits, examine

for method in (Replay, EWC):
    examine(method(momentum=0.9), digits(), 0, rounds=2)
    if "torch._dynamo" in sys.modules:
        sys.exit(f"{method.__name__} imports the compiler")
"""


@pytest.mark.slow
def test_training_a_perceptron_imports_no_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", PLAIN], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
