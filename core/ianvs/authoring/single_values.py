"""Batch normalisation where a training batch has a single value per channel."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm as BatchNorm  # the base of all of them, timm's included

_MARK = "_by_running_statistics"  # an attribute of a layer, set during a call
_OBSERVED: ContextVar[list[nn.Module] | None] = ContextVar("single_values", default=None)


def allow_single_values(network: nn.Module) -> None:
    """Let batch normalisation train on a single value per channel, in place; it may be called repeatedly.

    A single sample whose map is 1x1, or that is a vector, has no variance, and torch raises an error. Such a layer
    then normalises by its running statistics, as in testing, and leaves them unchanged. All other calls are as before,
    bit for bit. `training_loop.fit` takes no step by such a batch if the layer has seen larger ones.
    """
    for layer in network.modules():
        if isinstance(layer, BatchNorm) and _use_running_statistics not in layer._forward_pre_hooks.values():
            layer.register_forward_pre_hook(_use_running_statistics)
            layer.register_forward_hook(_train_again, always_call=True)


@contextmanager
def observed_single_values() -> Iterator[list[nn.Module]]:
    """Context manager: a list that receives the layers that had a single value per channel, after larger batches."""
    layers: list[nn.Module] = []
    token = _OBSERVED.set(layers)
    try:
        yield layers
    finally:
        _OBSERVED.reset(token)


def _use_running_statistics(layer: nn.Module, arguments: tuple[Any, ...]) -> None:
    x = arguments[0]
    if layer.training and layer.running_mean is not None and x.numel() == x.shape[1]:
        layer.training = False  # of the layer alone, not of its submodules
        setattr(layer, _MARK, True)
        if (layers := _OBSERVED.get()) is not None and layer.num_batches_tracked:
            layers.append(layer)


def _train_again(layer: nn.Module, arguments: object, outputs: object) -> None:
    if getattr(layer, _MARK, False):
        setattr(layer, _MARK, False)
        layer.training = True
