"""Optimisers by name, with the fast path that keeps results bit for bit."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from ianvs.errors import PluginError, closest

__all__ = ["build_optimizer"]

CACHE_LINE = 64  # bytes


def build_optimizer(
    name: str,
    parameters: Iterable[nn.Parameter],
    *,
    learning_rate: float,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
) -> torch.optim.Optimizer:
    """A new optimiser: 'sgd' (the numbers of torch.optim.SGD bit for bit, faster) or 'adam' (without `momentum`)."""
    trainable = [p for p in parameters if p.requires_grad]
    fusible = [p for p in trainable if _fuses(p)]
    rest = [p for p in trainable if not _fuses(p)]
    groups = [{"params": fusible, "fused": True}] if fusible else []
    groups += [{"params": rest}] if rest else []
    match name:
        case "sgd":
            return torch.optim.SGD(groups, lr=learning_rate, momentum=momentum, weight_decay=weight_decay)
        case "adam":
            return torch.optim.Adam(groups, lr=learning_rate, weight_decay=weight_decay)
    raise PluginError(f"optimizer '{name}' is not known.{closest(name, ['sgd', 'adam'])} There are: sgd, adam.")


def _fuses(parameter: nn.Parameter) -> bool:
    # The fused CPU kernel works in cache lines; in a last line that is not full it rounds differently from the default.
    if not parameter.is_floating_point() or parameter.device.type not in ("cpu", "cuda"):
        return False
    return parameter.device.type == "cuda" or parameter.nbytes % CACHE_LINE == 0
