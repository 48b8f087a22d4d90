"""Models of Mammoth through the adapter: those of a checkout that $MAMMOTH names, and of a stand-in for one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ianvs
from ianvs.base.types import CaseResult
from tests.others_jobs import others_job

pytest.importorskip("torch")

BASE = """
import torch

class ContinualModel(torch.nn.Module):
    def __init__(self, backbone, loss, args, transform):
        super().__init__()
        self.net, self.loss, self.args, self.transform = backbone, loss, args, transform
        self.opt = torch.optim.SGD(self.net.parameters(), lr=args.lr)
        self.device = get_device()

    def forward(self, x):
        return self.net(x)
"""
MODEL = """
from argparse import ArgumentParser
from models.utils.continual_model import ContinualModel
from datasets import get_dataset
from utils.args import *

def get_parser():
    parser = ArgumentParser()
    for name in ("--lr", "--batch_size", "--n_epochs"):
        parser.add_argument(name, required=True)
    parser.add_argument("--pull", default=0.0)
    return parser

class Steps(ContinualModel):
    NAME, COMPATIBILITY = "steps", ["class-il"]

    def __init__(self, backbone, loss, args, transform):
        super().__init__(backbone, loss, args, transform)
        self.told = []

    def begin_task(self, dataset):
        self.told.append(get_dataset(self.args).N_CLASSES_PER_TASK)

    def observe(self, inputs, labels, not_aug_inputs):
        assert inputs.shape[1:] == (1, 8, 8) and 0 <= inputs.min() and inputs.max() <= 1
        assert labels.min() >= 2 * (len(self.told) - 1) and labels.max() < 2 * len(self.told)
        self.opt.zero_grad()
        self.loss(self.net(inputs), labels).backward()
        self.opt.step()

class Counts(Steps):
    def end_task(self, dataset):
        samples_per_task = 100 // dataset.N_TASKS

class Peeks(Steps):
    def forward(self, x, task_label):
        return self.net(x)
"""
FILES = {
    "models/utils/__init__.py": "",
    "models/utils/continual_model.py": "from utils.conf import get_device\n" + BASE,
    "models/steps.py": MODEL,
    "models/__init__.py": "raise ImportError('a model that this machine can not import')",
    "datasets/__init__.py": "raise ImportError('a library that is not here')",
    "utils/__init__.py": "",
    "utils/conf.py": "def get_device():\n    raise AssertionError('the exam says which')\n",
    "utils/args.py": "from datasets import NAMES\nfrom models import get_all_models\n",
    "backbone/__init__.py": "",
    "backbone/Linear.py": "import torch\n\ndef linear(input_size, output_size):\n"
    "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(input_size, output_size))\n",
}


def _ran(folder: Path, root: Path, model: str, **hyperparameters: object) -> CaseResult:
    file, name = model.split(":")
    given = {"lr": 0.1, "batch_size": 32, "n_epochs": 2, **hyperparameters}
    url = str(root / "models" / f"{file}.py")
    [found] = ianvs.run(others_job(folder, "mammoth", url, name, given, python=sys.executable))
    return found


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "mammoth"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.slow
def test_a_model_is_examined_as_it_is(tmp_path: Path, checkout: Path) -> None:
    found = _ran(tmp_path, checkout, "steps:Steps", backbone="Linear:linear")
    assert found.status == "finished", found.failure
    assert 0.15 < (found.metrics["accuracy"] or 0) < 0.3  # it forgets all but the last two of ten


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [("Counts"), ("Peeks")],
)
def test_what_the_rules_hide_is_refused(tmp_path: Path, checkout: Path, model: str) -> None:
    found = _ran(tmp_path, checkout, f"steps:{model}", backbone="Linear:linear")
    assert found.failure is not None
    assert found.failure.error == "ExamRuleError", found.failure
    assert found.failure.message.startswith("steps.py:")


@pytest.mark.slow
def test_who_may_know_the_number_of_tasks_is_marked(tmp_path: Path, checkout: Path) -> None:
    found = _ran(tmp_path, checkout, "steps:Counts", backbone="Linear:linear", n_tasks=5)
    assert found.status == "finished", found.failure
    assert " 5 " in found.remark


OF_BUFFER = {"buffer_size": 200, "minibatch_size": 32}
MODELS = {
    "sgd:Sgd": {},
    "ewc_on:EwcOn": {"e_lambda": 100, "gamma": 1.0},
    "lwf:Lwf": {"alpha": 1.0, "softmax_temp": 2.0, "wd_reg": 0.0, "n_tasks": 5},
    "er:Er": OF_BUFFER,
    "derpp:Derpp": {**OF_BUFFER, "alpha": 0.1, "beta": 0.5},
    "gem:Gem": {"buffer_size": 200, "gamma": 0.5, "n_tasks": 5},
    "agem:AGem": {**OF_BUFFER, "n_tasks": 5},
    "icarl:ICarl": {**OF_BUFFER, "wd_reg": 0.0, "n_tasks": 5},
}


@pytest.mark.slow
@pytest.mark.skipif("MAMMOTH" not in os.environ, reason="set MAMMOTH to a checkout of Mammoth 7ab9db9")
@pytest.mark.parametrize("model", MODELS)
def test_models_of_a_checkout(tmp_path: Path, model: str) -> None:
    root = Path(os.environ["MAMMOTH"])
    commit = subprocess.run(["git", "-C", root, "log", "-1", "--format=%h"], capture_output=True, text=True).stdout
    assert commit.startswith("7ab9db9")
    found = _ran(tmp_path, root, model, **MODELS[model])
    assert found.status == "finished", found.failure
