"""What the process that cases are forked from imports for them beforehand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ianvs.config import load_job
from ianvs.running.scheduler.create_engine import imported_by_cases, imports_by_file
from tests.jobs import TESTENV, write_job

MINE = "from ianvs.testalgorithms.finetune.basemodel import Finetune\n\nclass Mine(Finetune):\n    pass\n"
HEAVY = {"torch", "torch._dynamo", "torchvision", "transformers"}
WITH_TORCH = {"torch", "torch._dynamo"}  # counting the operations of a network imports the compiler


def preloaded(folder: Path, plugin: str = MINE, hyperparameters: str = "", testenv: str = TESTENV) -> set[str]:
    lines = f"- {hyperparameters}" if hyperparameters else ""
    job = write_job(folder, plugin=plugin, name="Mine", hyperparameters=lines, testenv=testenv)
    spec = load_job(job)
    return HEAVY.intersection(imported_by_cases(spec, imports_by_file(spec)))


def test_a_perceptron_needs_torch_and_its_compiler_alone(tmp_path: Path) -> None:
    assert preloaded(tmp_path) == WITH_TORCH


def test_a_method_without_torch_needs_nothing_heavy(tmp_path: Path) -> None:
    plugin = "class Mine:\n    def train(self, *args, **kwargs): ...\n"
    assert preloaded(tmp_path, plugin) == set()


@pytest.mark.parametrize(
    ("hyperparameter", "more"),
    [
        ("network: {values: [mlp, resnet]}", "torchvision"),
        ("network: {values: [hf/google/vit]}", "transformers"),
        ("network: {values: [mlp]}", None),
    ],
)
def test_hyperparameters_say_what_else(tmp_path: Path, hyperparameter: str, more: str | None) -> None:
    found = preloaded(tmp_path, hyperparameters=hyperparameter)
    assert more in found if more else found == WITH_TORCH


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("import torchvision", "torchvision"),
        ("NETWORK = 'resnet'", "torchvision"),
        ("import re; WORD = re.compile('a')", None),
    ],
)
def test_authors_code_says_what_else(tmp_path: Path, line: str, more: str | None) -> None:
    found = preloaded(tmp_path, f"{line}\n{MINE}")
    assert more in found if more else found == WITH_TORCH


def test_imports_of_a_job_are_top_level_names(tmp_path: Path) -> None:
    job = write_job(tmp_path, plugin=MINE, name="Mine", hyperparameters="")
    assert {"torch", "numpy", "ianvs"} <= set().union(*imports_by_file(load_job(job)).values())
