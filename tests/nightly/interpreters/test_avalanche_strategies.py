"""Strategies of Avalanche through the adapter, against Avalanche alone on the same batches."""

import importlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("avalanche", reason="avalanche-lib is not installed: its strategies are not compared")
torch = pytest.importorskip("torch")

adapter = importlib.import_module("ianvs.testalgorithms.adapters.avalanche_strategies")
digits = importlib.import_module("ianvs.testalgorithms.adapters.avalanche.digit_strategies")
TOLD = {"num_classes": 6, "device": "cpu"}
NAMES = ("naive", "ewc", "lwf", "si", "replay", "gem", "agem", "der", "gdumb", "icarl")


def _rounds() -> list[SimpleNamespace]:
    draw = np.random.default_rng(0)
    found = []
    for classes in ([0, 1], [2, 3], [4, 5]):
        y = draw.choice(classes, 60)
        x = draw.integers(0, 60, (60, 8, 8, 1)) + 30 * y[:, None, None, None]
        found.append(SimpleNamespace(x=x.astype(np.uint8), y=y))
    return found


def _seed(number: int) -> None:
    import random

    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


@pytest.mark.parametrize("name", ["naive", "ewc", "lwf"])
def test_weights_are_those_of_avalanche_alone(name: str) -> None:
    from avalanche.benchmarks import benchmark_from_datasets
    from avalanche.benchmarks.scenarios.supervised import with_classes_timeline
    from avalanche.benchmarks.scenarios.task_aware import with_task_labels
    from avalanche.benchmarks.utils import DataAttribute, TaskAwareSupervisedClassificationDataset

    method = adapter.adapted(getattr(digits, name))(epochs=2)
    for number, data in enumerate(_rounds()):
        _seed(number)
        method.train(data, **TOLD)

    torch.manual_seed(method._seed)
    alone = getattr(digits, name)(num_classes=6, device="cpu", shape=(1, 8, 8), epochs=2)
    sets = []
    for data in _rounds():
        x, y = torch.from_numpy(data.x).permute(0, 3, 1, 2).float() / 255, torch.from_numpy(data.y)
        labels = [DataAttribute(data.y.tolist(), "targets")]
        labels.append(DataAttribute([0] * len(y), "targets_task_labels", use_in_getitem=True))
        pairs = [(x[i], int(y[i])) for i in range(len(y))]
        sets.append(TaskAwareSupervisedClassificationDataset([pairs], data_attributes=labels))
    stream = with_task_labels(with_classes_timeline(benchmark_from_datasets(train=sets))).streams["train"]
    for number, experience in enumerate(stream):
        _seed(number)
        alone.train(experience, eval_streams=[])

    theirs, ours = alone.model.state_dict(), method._strategy.model.state_dict()
    assert theirs.keys() == ours.keys()
    assert all(torch.equal(theirs[key], ours[key]) for key in theirs)


@pytest.mark.parametrize("name", NAMES)
def test_goes_on_from_what_was_saved(name: str, tmp_path: Path) -> None:
    kind, rounds = adapter.adapted(getattr(digits, name)), _rounds()
    first = kind(epochs=2)
    for number, data in enumerate(rounds[:2]):
        _seed(number)
        first.train(data, **TOLD)
    first.save(tmp_path / "model")
    second = kind(epochs=2)
    second.load(tmp_path / "model")
    for method in (first, second):
        _seed(2)
        method.train(rounds[2], **TOLD)
    assert np.array_equal(first.scores(rounds[0], **TOLD), second.scores(rounds[0], **TOLD))
    assert len(first.memory) == len(second.memory) <= 200
