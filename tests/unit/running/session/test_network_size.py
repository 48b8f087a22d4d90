"""Sizes of networks: worked values, shared and hidden networks, and plugins without any."""

import sys
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
from ianvs.running.session.network_size import network_size  # noqa: E402


def layer(frozen: bool = False):
    made = torch.nn.Linear(784, 10)
    made.weight.requires_grad_(not frozen)
    return made


def test_parameters_and_operations_of_a_layer_are_those_of_its_formula():
    plugin = SimpleNamespace(net=layer(frozen=True))
    size = network_size([plugin], lambda: plugin.net(torch.zeros(1, 784)))
    assert (size.parameters, size.trainable, size.flops, size.note) == (7850, 10, 2 * 784 * 10, "")


def test_a_convolution_and_attention_are_counted():
    convolution, attention = torch.nn.Conv2d(3, 8, 3), torch.nn.MultiheadAttention(8, 2, batch_first=True)
    plugin = SimpleNamespace(parts={"body": [convolution, attention]})
    x, tokens = torch.zeros(1, 3, 8, 8), torch.zeros(1, 5, 8)
    assert network_size([plugin], lambda: convolution(x)).flops == 2 * 8 * 36 * 27
    projections, products = 2 * 5 * 8 * 24 + 2 * 5 * 8 * 8, 2 * 2 * (2 * 5 * 5 * 4)
    assert network_size([plugin], lambda: attention(tokens, tokens, tokens)).flops == projections + products


def test_only_networks_that_predict_calls_count_and_shared_tensors_once():
    net, teacher = torch.nn.Sequential(layer(), torch.nn.Linear(10, 10)), layer()
    net[1].weight = torch.nn.Parameter(torch.zeros(10, 10))
    plugin = SimpleNamespace(holder=SimpleNamespace(net=net), teacher=teacher, again=net)
    assert network_size([plugin], lambda: net(torch.zeros(1, 784))).parameters == 7850 + 110
    assert network_size([plugin], None).parameters == 2 * 7850 + 110


def test_a_plugin_without_a_network_has_blanks_and_one_that_hides_it_a_note():
    assert network_size([SimpleNamespace(means=[1, 2])], None) == network_size([], None)
    hidden = type("Hidden", (), {"__module__": __name__})
    assert hasattr(sys.modules[__name__], "torch")
    size = network_size([hidden()], None)
    assert size.parameters is size.flops is None
    assert size.note


def test_a_prediction_that_fails_leaves_the_parameters():
    def fails():
        raise ValueError("one sample is not enough")

    size = network_size([SimpleNamespace(net=layer())], fails)
    assert (size.parameters, size.flops) == (7850, None)
    assert "not enough" in size.note
