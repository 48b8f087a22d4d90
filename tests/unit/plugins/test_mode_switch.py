"""Plugins that are a `torch.nn.Module`, whose `train` is the author's method and PyTorch's mode switch."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from ianvs.plugins.loader import load, load_once
from ianvs.plugins.mode_switch import lacks_train
from ianvs.plugins.signature import named_arguments

torch = pytest.importorskip("torch")

SOURCE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
        self.seen = []

    def train(self, train_data, valid_data=None, *, seed=0):
        self.train()
        self.seen.append((train_data, valid_data, seed))
        return "trained"

class Deeper(Net):
    def train(self, train_data, **context):
        super().train(True)
        return super().train(train_data, seed=context["seed"])

class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(2)

    def train(self, data=True):
        if isinstance(data, bool):
            super().train(data)
            self.norm.eval()
        return self

class FrozenNet(Frozen):
    def train(self, train_data, **context):
        return "trained"

class Silent(nn.Module):
    pass

class Plain:
    def train(self, train_data):
        return train_data
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Any:
    (tmp_path / "plugin.py").write_text(SOURCE)
    return lambda name, how=load: how(str(tmp_path / "plugin.py"), name).target


@pytest.mark.parametrize("how", [load, load_once])
@pytest.mark.parametrize("name", ["Net", "Deeper"])
def test_modes_are_switched_by_pytorch_and_data_go_to_the_author(plugin: Any, name: str, how: Any) -> None:
    kind = plugin(name, how)
    net = kind()
    for switch, training in (
        (net.eval, False),
        (net.train, True),
        (lambda: net.train(False), False),
        (lambda: net.train(mode=True), True),
    ):
        assert switch() is net
        assert (net.training, net.body[1].training) == (training, training)
    assert net.seen == []
    net.eval()
    assert net.train([1, 2], seed=7) == "trained"
    assert net.training
    assert net.seen == [([1, 2], None, 7)]


def test_a_class_that_is_loaded_twice_is_shared_once(plugin: Any) -> None:
    plugin("Net", load_once)
    net = plugin("Net", load_once)()
    assert net.eval().train("data") == "trained"


def test_the_parameters_of_the_method_stay_known(plugin: Any) -> None:
    net = plugin("Net")()
    assert list(inspect.signature(net.train).parameters) == ["train_data", "valid_data", "seed"]
    assert named_arguments(net.train, {"seed": 1, "round": 2}) == {"seed": 1}


def test_a_class_that_switches_modes_itself_goes_on_doing_so(plugin: Any) -> None:
    net = plugin("FrozenNet")()
    assert net.train() is net
    assert (net.training, net.norm.training) == (True, False)
    assert net.train([1]) == "trained"


def test_pytorchs_own_train_is_none_of_a_plugin(plugin: Any) -> None:
    assert lacks_train(plugin("Silent"))
    assert not lacks_train(plugin("Net"))
    assert not lacks_train(plugin("Plain"))


def test_other_classes_are_left_alone(plugin: Any) -> None:
    assert plugin("Plain")().train(True) is True
