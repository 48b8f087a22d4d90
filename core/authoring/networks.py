"""Networks by name, as plain `nn.Sequential`: all but the last module are the features, the last is the linear head."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from core.errors import PluginError, closest

__all__ = ["build_network", "flat_parameters", "mlp", "resnet"]


def mlp(input_shape: Sequence[int], num_classes: int, hidden: Sequence[int] = (256,)) -> nn.Sequential:
    """(N, *input_shape) -> (N, num_classes): linear layers with ReLU between them."""
    sizes = [int(torch.Size(input_shape).numel()), *hidden]
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], num_classes))


def resnet(input_shape: Sequence[int], num_classes: int, widths: Sequence[int] = (32, 64, 128)) -> nn.Sequential:
    """(N, C, H, W) -> (N, num_classes): a residual network (He et al. 2016) for small pictures.

    A 3x3 stem, then one basic block for each width; every block after the first halves height and width.
    """
    from torchvision.models.resnet import BasicBlock

    if len(input_shape) != 3:
        raise PluginError(
            f"network 'resnet' needs pictures (channels, height, width), but a sample has shape {tuple(input_shape)}. "
            "Use network 'mlp' for feature vectors."
        )
    layers: list[nn.Module] = [
        nn.Conv2d(input_shape[0], widths[0], kernel_size=3, padding=1, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(inplace=True),
    ]
    inputs = widths[0]
    for index, outputs in enumerate(widths):
        stride = 1 if index == 0 else 2
        shortcut = None
        if stride != 1 or inputs != outputs:
            shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        layers.append(BasicBlock(inputs, outputs, stride, shortcut))
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, num_classes))


def build_network(
    name: str,
    input_shape: Sequence[int],
    num_classes: int,
    *,
    hidden: Sequence[int] = (256,),
    widths: Sequence[int] = (32, 64, 128),
) -> nn.Sequential:
    """The network called `name`; `hidden` is for 'mlp', `widths` for 'resnet'."""
    match name:
        case "mlp":
            return mlp(input_shape, num_classes, hidden)
        case "resnet":
            return resnet(input_shape, num_classes, widths)
    raise PluginError(
        f"network '{name}' is not known.{closest(name, ['mlp', 'resnet'])} There are: mlp, resnet; "
        "for another one, override build_network() in the algorithm's class."
    )


def flat_parameters(network: nn.Module) -> Tensor:
    """(P,) all trainable parameters in one vector, in the order of `network.parameters()`; differentiable."""
    return torch.cat([p.reshape(-1) for p in network.parameters() if p.requires_grad])
