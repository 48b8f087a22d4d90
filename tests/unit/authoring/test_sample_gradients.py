"""Fisher information layer by layer against one backward pass for each sample."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear

from ianvs.authoring import fisher_diagonal, mlp, resnet
from ianvs.authoring.sample_gradients import LayerSquares


class Tied(nn.Module):
    """Its second layer is the first one's weight, turned round, so that the layer alone does not tell its gradient."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 4)

    def forward(self, x):
        return linear(self.first(x).relu(), self.first.weight.T[:, :4])


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(6, 6), nn.Linear(6, 4)

    def forward(self, x):
        return self.head(self.layer(self.layer(x).tanh()))


class SamplesSecond(nn.Module):
    """A layer in it sees the samples in the second dimension."""

    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(6, 6), nn.Linear(6, 4)

    def forward(self, x):
        return self.head(self.layer(x.unflatten(1, (5, 6)).transpose(0, 1)).mean(0))


class WithParameter(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.head = nn.Parameter(torch.ones(6)), nn.Linear(6, 4)

    def forward(self, x):
        return self.head(self.scale * x)


def convolutions():
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, stride=2, padding=1, dilation=2, groups=3),
        nn.ReLU(inplace=True),
        nn.Conv2d(6, 4, (1, 2), bias=False),
        nn.Flatten(),
        nn.Linear(32, 4),
    )


def over_tokens():
    return nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3), nn.Flatten(), nn.Linear(12, 4))


def frozen_in_part():
    network = mlp((6,), 4, hidden=(5,))
    network[1].requires_grad_(False)
    return network


def naive(network, x, y, weights):
    total = 0.0
    for i in range(len(y)):
        network.zero_grad()
        cross_entropy(network(x[i : i + 1]), y[i : i + 1]).backward()
        total = total + weights[i] * torch.cat([p.grad.flatten() for p in network.parameters() if p.requires_grad]) ** 2
    return total


BY_LAYER = {
    "mlp": (lambda: mlp((6,), 4, hidden=(7, 5)), (6,)),
    "mlp with batch normalisation": (lambda: mlp((6,), 4, hidden=(7,), batch_norm=True), (6,)),
    "resnet": (lambda: resnet((3, 8, 8), 4, widths=(4, 8)), (3, 8, 8)),
    "convolutions": (convolutions, (3, 9, 7)),
    "over tokens": (over_tokens, (4, 5)),
    "frozen in part": (frozen_in_part, (6,)),
}
ELSEWHERE = {"tied": (Tied, (6,)), "twice": (Twice, (6,)), "samples second": (SamplesSecond, (30,))}


def drawn(make, shape, count=20):
    torch.manual_seed(0)
    network = make().double()
    x, y = torch.randn(count, *shape, dtype=torch.float64), torch.randint(0, 4, (count,))
    for _ in range(3):
        network(torch.randn(7, *shape, dtype=torch.float64))  # so that running statistics are not the first ones
    return network.eval(), x, y


@pytest.mark.parametrize("name", BY_LAYER)
def test_squares_by_layer_are_those_of_single_backward_passes(name):
    network, x, y = drawn(*BY_LAYER[name])
    weights = torch.rand(len(y), dtype=torch.float64)
    layers = LayerSquares(network)
    total = torch.zeros(layers.size, dtype=torch.float64)
    assert layers.supported
    assert layers.add(x, lambda outputs: iter([(cross_entropy(outputs, y, reduction="sum"), weights)]), total)
    torch.testing.assert_close(total, naive(network, x, y, weights), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", [*BY_LAYER, *ELSEWHERE])
@pytest.mark.parametrize("count", [1, 5, 20])
def test_the_fisher_is_right_whatever_the_network_does_with_its_layers(name, count):
    network, x, y = drawn(*{**BY_LAYER, **ELSEWHERE}[name], count)
    expected = naive(network, x, y, torch.ones(count)) / count
    torch.testing.assert_close(fisher_diagonal(network, [(x, y)]), expected, rtol=1e-10, atol=1e-14)


def test_a_parameter_of_its_own_is_no_layer():
    network, x, y = drawn(WithParameter, (6,))
    assert not LayerSquares(network).supported
    torch.testing.assert_close(fisher_diagonal(network, [(x, y)]), naive(network, x, y, torch.ones(20)) / 20)


def test_no_hook_is_left_behind():
    network, x, y = drawn(*BY_LAYER["mlp"])
    fisher_diagonal(network, [(x, y)])
    assert not any(module._forward_hooks for module in network.modules())
