"""Optimisers by name, with the fast path that keeps results bit for bit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim.sgd import sgd

from ianvs.errors import require_known

__all__ = ["OPTIMIZERS", "OptimizerMaker", "build_optimizer", "continue_from", "take_step"]

CACHE_LINE = 64  # bytes
OPTIMIZERS = ("sgd", "adam", "adamw")


def build_optimizer(
    name: str,
    parameters: Sequence[tuple[Iterable[nn.Parameter], float]],
    *,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
) -> torch.optim.Optimizer:
    """A new optimiser of (parameters, learning rate) pairs.

    'sgd' gives the numbers of torch.optim.SGD bit for bit, faster; 'adam' and 'adamw' are without `momentum`. In 'sgd'
    and 'adam' the decay is part of the gradient, in 'adamw' it is a step of its own (Loshchilov & Hutter 2019).
    """
    require_known("optimizer", name, OPTIMIZERS)
    groups: list[dict[str, Any]] = []
    for some, rate in parameters:
        trainable = [p for p in some if p.requires_grad]
        fusible = [p for p in trainable if _fuses(p)]
        rest = [p for p in trainable if not _fuses(p)]
        groups += [{"params": fusible, "fused": True, "lr": rate}] if fusible else []
        groups += [{"params": rest, "lr": rate}] if rest else []
    if name == "sgd":
        optimizer = torch.optim.SGD(groups, momentum=momentum, weight_decay=weight_decay)
        for group in optimizer.param_groups if momentum else ():
            for p in group["params"]:  # the fused kernel fails if one gets its first gradient after others
                optimizer.state[p]["momentum_buffer"] = torch.zeros_like(p)
        return optimizer
    kind = torch.optim.Adam if name == "adam" else torch.optim.AdamW
    return kind(groups, weight_decay=weight_decay)


@torch.no_grad()
def take_step(optimizer: torch.optim.Optimizer) -> None:
    """`optimizer.step()`, where that is SGD's by torch's function for it, without what an object does around.

    Hooks and notes for a profiler take as long as the step of a small network.
    """
    if type(optimizer) is not torch.optim.SGD:
        optimizer.step()
        return
    for group in optimizer.param_groups:
        moved = [p for p in group["params"] if p.grad is not None]
        kept = [optimizer.state[p] if group["momentum"] else {} for p in moved]
        buffers = [state.get("momentum_buffer") for state in kept]
        sgd(
            moved,
            [p.grad for p in moved],
            buffers,
            foreach=False,  # as torch chooses on the CPU; on a card all are fused
            fused=bool(group["fused"]),
            **{name: group[name] for name in ("weight_decay", "momentum", "lr", "dampening", "nesterov", "maximize")},
        )
        for state, buffer in zip(kept, buffers, strict=True):
            state["momentum_buffer"] = buffer


class OptimizerMaker:
    """`build_optimizer`, which makes the last one like new where it would build the same again.

    A stream has thousands of rounds of one step each, and to build an optimiser takes as long as the step.
    """

    def __init__(self) -> None:
        self._built_of: tuple[object, ...] = ()
        self._optimizer: torch.optim.Optimizer | None = None

    def __call__(
        self,
        name: str,
        parameters: Sequence[tuple[Iterable[nn.Parameter], float]],
        *,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
    ) -> torch.optim.Optimizer:
        """What was returned before may be changed by this."""
        pairs = [(list(some), rate) for some, rate in parameters]
        facts = [(id(p), p.requires_grad, p.device, p.dtype, p.shape) for some, _ in pairs for p in some]
        built_of = (name, momentum, weight_decay, *((len(some), rate) for some, rate in pairs), *facts)
        if self._optimizer is None or built_of != self._built_of:
            self._optimizer = build_optimizer(name, pairs, momentum=momentum, weight_decay=weight_decay)
            self._rates = [group["lr"] for group in self._optimizer.param_groups]
            self._built_of = built_of
            return self._optimizer
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate
        if name == "sgd":
            for kept in self._optimizer.state.values():
                kept["momentum_buffer"].zero_()
        else:
            self._optimizer.state.clear()
        return self._optimizer


def continue_from(optimizer: torch.optim.Optimizer, earlier: dict[int, Any] | None) -> None:
    """Take over the momentum and moments of an earlier optimiser of the same parameters; its rates are not taken."""
    if not earlier:
        return
    groups = optimizer.state_dict()["param_groups"]
    if max(earlier) < sum(len(group["params"]) for group in groups):
        optimizer.load_state_dict({"state": earlier, "param_groups": groups})


def _fuses(parameter: nn.Parameter) -> bool:
    # The fused CPU kernel works in cache lines; in a last line that is not full it rounds differently from the default.
    if not parameter.is_floating_point() or parameter.device.type not in ("cpu", "cuda"):
        return False
    return parameter.device.type == "cuda" or parameter.nbytes % CACHE_LINE == 0
