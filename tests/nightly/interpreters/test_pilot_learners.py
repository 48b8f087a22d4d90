"""Learners of LAMDA-PILOT through the adapter: those of a checkout that $PILOT names, and of a stand-in for one.

$PILOT_PYTHON names the interpreter that the checkout's packages are in (timm 0.6.13); without it, it is ours.
"""

import importlib
import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ianvs
from ianvs.base.types import CaseResult
from tests.others_jobs import others_job

torch = pytest.importorskip("torch")
timm = pytest.importorskip("timm", reason="timm is not installed, which LAMDA-PILOT's networks are made with")
pytest.importorskip("torchvision")

LEARNER = """
import numpy as np
import torch
from torch.utils.data import DataLoader
from utils import inc_net

class Learner:
    def __init__(self, args):
        self.args, self._device, self._cur_task, self._known_classes = args, args["device"][0], -1, 0
        self.backbone = inc_net.get_backbone(args, True)
        self._network = torch.nn.Linear(self.backbone.out_dim, args["nb_classes"])
        self._data_memory, self._targets_memory = np.array([]), np.array([])

    def incremental_train(self, data_manager):
        self._cur_task += 1
        self._total_classes = self._known_classes + data_manager.get_task_size(self._cur_task)
        now = np.arange(self._known_classes, self._total_classes)
        data = data_manager.get_dataset(now, source="train", mode="train")
        self.loader = DataLoader(data, batch_size=self.args["batch_size"], shuffle=True, num_workers=2)
        tested = data_manager.get_dataset(np.arange(self._total_classes), source="test", mode="test")
        optimizer = torch.optim.SGD(self._network.parameters(), lr=self.args["lr"])
        for _ in range(self.args["epochs"]):
            for _, inputs, targets in self.loader:
                assert inputs.shape[1:] == (3, 16, 16) and 0 <= inputs.min() and inputs.max() <= 1
                assert set(targets.tolist()) <= set(now.tolist())
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(self._network(self._features(inputs)), targets).backward()
                optimizer.step()
            self.accuracy = self._compute_accuracy(self._network, DataLoader(tested, batch_size=9))
        {learn}

    def _features(self, inputs):
        with torch.no_grad():
            return self.backbone.eval()(inputs)

    def _compute_accuracy(self, model, loader):
        return np.mean([(model(self._features(x)).argmax(1) == y).float().mean() for _, x, y in loader])

    def _eval_cnn(self, loader):
        y_pred, y_true = [], []
        for _, inputs, targets in loader:
            {answer}
            with torch.no_grad():
                outputs = self._network(self._features(inputs))[:, : self._total_classes]
            y_pred.append(torch.topk(outputs, k=self.topk, dim=1)[1].numpy())
            y_true.append(targets.cpu().numpy())
        return np.concatenate(y_pred), np.concatenate(y_true)

    def after_task(self):
        self._known_classes = self._total_classes
"""
MANAGER = """
import numpy as np
from PIL import Image
from torch.utils.data import Dataset
from torchvision import transforms

class DataManager:
    def get_dataset(self, indices, source, mode, appendent=None):
        x, y = self._train_data, self._train_targets
        several = [self._select(x, y, one) for one in indices] + ([] if appendent is None else [appendent])
        more = self._train_trsf if mode == "train" else self._test_trsf
        trsf = transforms.Compose([*more, *self._common_trsf])
        return Rows(*map(np.concatenate, zip(*several)), trsf)

    def _select(self, x, y, label):
        return x[y == label], y[y == label]

class Rows(Dataset):
    def __init__(self, images, labels, trsf):
        self.images, self.labels, self.trsf = images, labels, trsf

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return index, self.trsf(Image.fromarray(self.images[index])), self.labels[index]
"""
NETWORKS = """
import torch

def get_backbone(args, pretrained):
    model = torch.nn.Flatten()
    model.out_dim = 768
    return model
"""
SETTINGS = {"model_name": "steps", "init_cls": 10, "increment": 10, "dataset": "cifar224", "seed": [1993]}
SETTINGS.update({"backbone_type": "vit_base_patch16_224", "batch_size": 64, "epochs": 2, "lr": 0.1})
SMALL = {"dataset": "plain", "picture_size": 16, "weights": "none"}
VIT = "vit_tiny_patch16_224 img_size=16 patch_size=4 embed_dim=32 depth=1 num_heads=2"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return _checkout(tmp_path / "pilot")


def _checkout(root: Path, *, learn: str = "pass", answer: str = "pass") -> Path:
    learner = LEARNER.replace("{learn}", learn).replace("{answer}", answer)
    files = {"models/steps.py": learner, "utils/data_manager.py": MANAGER, "utils/inc_net.py": NETWORKS}
    for name, text in {**files, "exps/steps.json": json.dumps(SETTINGS)}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def _ran(folder: Path, root: Path, model: str = "steps", **hyperparameters: object) -> CaseResult:
    python = os.environ.get("PILOT_PYTHON", sys.executable)
    url = str(root / "models" / f"{model}.py")
    [found] = ianvs.run(others_job(folder, "pilot", url, "Learner", hyperparameters, python=python))
    return found


@pytest.mark.slow
def test_a_learner_is_examined_as_it_is(tmp_path: Path, checkout: Path) -> None:
    found = _ran(tmp_path, checkout, **SMALL)
    assert found.status == "finished", found.failure
    assert 0.15 < (found.metrics["accuracy"] or 0) < 0.6  # a head on random features
    assert not found.remark


PEEKS = {
    "tasks": ({"learn": "self.left = 5 - data_manager.nb_tasks"}, r"steps.py:\d+ asks for the number of tasks"),
    "classes ahead": (
        {"learn": "data_manager.get_task_size(self._cur_task + 1)"},
        r"steps.py:\d+ asks for the number of later classes",
    ),
    "test samples": ({"learn": "next(iter(tested))"}, r"steps.py:\d+ asks for test samples"),
    "old samples": (
        {"learn": "data_manager.get_dataset([0, self._cur_task * 2], source='train', mode='train')"},
        r"steps.py:\d+ asks for training samples of classes that this round did not bring",
    ),
    "labels": ({"answer": "task = targets // 2"}, r"steps.py:\d+ asks for the labels of test samples"),
    "compared": ({"answer": "right = inputs.argmax() == targets"}, r"steps.py:\d+ asks for the labels of test samples"),
}


@pytest.mark.slow
@pytest.mark.parametrize("peek", PEEKS)
def test_what_the_rules_hide_is_refused(tmp_path: Path, peek: str) -> None:
    code, said = PEEKS[peek]
    found = _ran(tmp_path, _checkout(tmp_path / "pilot", **code), **SMALL, epochs=1)
    assert found.failure is not None
    assert found.failure.error == "ExamRuleError", found.failure
    assert re.search(said, found.failure.message)


@pytest.mark.slow
def test_what_a_learner_is_told_beside_is_said_in_its_row(tmp_path: Path) -> None:
    code = {"learn": "data_manager.nb_tasks + self.args['increment'] + len(tested)", "answer": "targets // 2"}
    told = {"n_tasks": 5, "increment": 2, "blank_tests": True}
    found = _ran(tmp_path, _checkout(tmp_path / "pilot", **code), **SMALL, epochs=1, **told)
    assert found.status == "finished", found.failure
    expected = "is told that there are 5 tasks; is told that later rounds bring 2 classes; is shown blank test data"
    assert found.remark == expected


def _adapter() -> SimpleNamespace:
    return importlib.import_module("ianvs.testalgorithms.adapters.pilot_learners")  # type: ignore[return-value]


def test_pre_trained_weights_come_from_a_file(tmp_path: Path) -> None:
    adapter, args = _adapter(), {"backbone": VIT, "weights": None}
    with pytest.raises(adapter.PluginError, match="vit_tiny_patch16_224"):
        adapter.made(args, "vit_base_patch16_224", pretrained=True, num_classes=0)
    file = tmp_path / "weights.pth"
    taught = timm.create_model("vit_tiny_patch16_224", num_classes=7, **_OPTIONS)
    torch.save(taught.state_dict(), file)
    network = adapter.made({**args, "weights": str(file)}, "vit_base_patch16_224", pretrained=True, num_classes=0)
    assert torch.equal(network.norm.weight, taught.norm.weight)
    assert torch.equal(network.blocks[0].attn.qkv.weight, taught.blocks[0].attn.qkv.weight)
    torch.save({"blocks.0.attn.qkv.weight": torch.zeros(3, 3)}, file)
    with pytest.raises(adapter.PluginError, match=r"blocks\.0\.attn\.qkv\.weight"):
        adapter.made({**args, "weights": str(file)}, "vit_base_patch16_224", pretrained=True)


_OPTIONS = {"img_size": 16, "patch_size": 4, "embed_dim": 32, "depth": 1, "num_heads": 2}


def test_passes_over_a_round_are_counted() -> None:
    adapter = _adapter()
    data = torch.utils.data.TensorDataset(torch.zeros(4, 1))
    data.exam = SimpleNamespace(passes=0, allowed=2)
    loader = adapter.Loader(data, batch_size=2, num_workers=3)
    assert [len(list(loader)) for _ in range(2)] == [2, 2]
    with pytest.raises(adapter.ExamRuleError, match="pass 3"):
        iter(loader)


def test_pictures_are_kept_in_three_channels() -> None:
    adapter, grey = _adapter(), np.full((2, 4, 4, 1), 0.5, np.float32)
    assert adapter.stored(grey).shape == (2, 4, 4, 3)
    assert adapter.stored(grey).max() == 128
    with pytest.raises(adapter.PluginError, match="64"):
        adapter.stored(np.zeros((2, 64)))


SIZED = {"memory_size": 100, "batch_size": 64}
MODELS: dict[str, dict[str, object]] = {
    "finetune": {"init_epoch": 1, "epochs": 1},
    "icarl": {"init_epoch": 1, "epochs": 1, **SIZED, "answers": "nme"},
    "der": {"init_epoch": 1, "epochs": 1, **SIZED},
    "foster": {
        **dict.fromkeys(("init_epochs", "boosting_epochs", "compression_epochs"), 1),
        "memory_per_class": 10,
        "increment": 2,
        "blank_tests": True,
    },
    "slca": {"epochs": 1, "ca_epochs": 1},
    "simplecil": {},
    "aper_finetune": {"tuned_epoch": 1},
}


@pytest.mark.slow
@pytest.mark.skipif("PILOT" not in os.environ, reason="set PILOT to a checkout of LAMDA-PILOT 5240714")
@pytest.mark.parametrize("model", MODELS)
def test_learners_of_a_checkout(tmp_path: Path, model: str) -> None:
    given = {**SMALL, "picture_size": 32, "backbone": "lcnet_035", **MODELS[model]}
    found = _ran(tmp_path, Path(os.environ["PILOT"]), model, **given)
    assert found.status == "finished", found.failure
    assert (found.metrics["accuracy"] or 0) > 0.09


@pytest.mark.slow
@pytest.mark.skipif("PILOT" not in os.environ, reason="set PILOT to a checkout of LAMDA-PILOT 5240714")
def test_a_learner_of_the_checkout_that_looks_at_test_samples_is_refused(tmp_path: Path) -> None:
    given = {**SMALL, "picture_size": 32, "backbone": "lcnet_035", **MODELS["foster"], "blank_tests": False}
    found = _ran(tmp_path, Path(os.environ["PILOT"]), "foster", **given)
    assert found.failure is not None
    assert found.failure.message.startswith("foster.py:"), found.failure
    assert found.failure.error == "ExamRuleError", found.failure
