"""Optimisers by name, with the fast path that keeps results bit for bit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim.sgd import sgd

from ianvs.errors import require_known

__all__ = ["OPTIMIZERS", "SGD", "Optimizer", "OptimizerMaker", "build_optimizer", "continue_from"]

CACHE_LINE = 64  # bytes
OPTIMIZERS = ("sgd", "adam", "adamw")


class Optimizer(Protocol):
    """What a round needs of one; those of torch are such, too."""

    param_groups: list[dict[str, Any]]

    def step(self) -> object: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> object: ...


class SGD:
    """torch's own function for the step of torch.optim.SGD, without what that object does around.

    Its hooks and notes for a profiler take as long as the step of a small network, and the first of torch's optimisers
    imports torch's compiler: more than a second for every program. The same numbers, bit for bit; the same state_dict.
    """

    def __init__(self, groups: Iterable[Mapping[str, Any]], momentum: float = 0.0, weight_decay: float = 0.0) -> None:
        """groups: of parameters ("params"), with their learning rate ("lr") and whether their step is one kernel's
        ("fused", no if not given)."""
        self.param_groups: list[dict[str, Any]] = [{"fused": False, **group} for group in groups]
        self._momentum, self._weight_decay = momentum, weight_decay
        # From the beginning: the fused kernel fails if one gets its first gradient after others.
        self._moving = [[torch.zeros_like(p) if momentum else None for p in g["params"]] for g in self.param_groups]

    @torch.no_grad()
    def step(self) -> None:
        """Of all parameters that have a gradient."""
        for group, moving in zip(self.param_groups, self._moving, strict=True):
            moved = [p for p in group["params"] if p.grad is not None]
            whole = len(moved) == len(moving)
            sgd(
                moved,
                [p.grad for p in moved],
                moving if whole else [m for p, m in zip(group["params"], moving, strict=True) if p.grad is not None],
                foreach=False,  # as torch chooses on the CPU; on a card all are fused
                fused=group["fused"],
                weight_decay=self._weight_decay,
                momentum=self._momentum,
                lr=group["lr"],
                dampening=0.0,
                nesterov=False,
                maximize=False,
            )

    def restart(self) -> None:
        """As if no step had been taken."""
        for buffer in self._buffers():
            buffer.zero_()

    def state_dict(self) -> dict[str, Any]:
        """As torch.optim.SGD gives it: what has been gathered, by the number of the parameter."""
        numbers = iter(range(sum(map(len, self._moving))))
        groups = [{**group, "params": [next(numbers) for _ in group["params"]]} for group in self.param_groups]
        return {
            "state": {number: {"momentum_buffer": buffer} for number, buffer in enumerate(self._buffers())},
            "param_groups": groups,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what another one has gathered; rates are not taken."""
        for number, buffer in enumerate(self._buffers()):
            kept = state_dict["state"].get(number, {}).get("momentum_buffer")
            if kept is not None:
                buffer.copy_(kept)

    def _buffers(self) -> list[Tensor]:
        return [buffer for moving in self._moving for buffer in moving if buffer is not None]


def build_optimizer(
    name: str,
    parameters: Sequence[tuple[Iterable[nn.Parameter], float]],
    *,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
) -> Optimizer:
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
        return SGD(groups, momentum, weight_decay)
    kind = torch.optim.Adam if name == "adam" else torch.optim.AdamW
    return kind(groups, weight_decay=weight_decay)


class OptimizerMaker:
    """`build_optimizer`, which makes the last one like new where it would build the same again.

    A stream has thousands of rounds of one step each, and to build an optimiser takes as long as the step.
    """

    def __init__(self) -> None:
        self._built_of: tuple[object, ...] = ()
        self._optimizer: Optimizer | None = None

    def __call__(
        self,
        name: str,
        parameters: Sequence[tuple[Iterable[nn.Parameter], float]],
        *,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
    ) -> Optimizer:
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
        if isinstance(self._optimizer, torch.optim.Optimizer):
            self._optimizer.state.clear()
        elif isinstance(self._optimizer, SGD):
            self._optimizer.restart()
        return self._optimizer


def continue_from(optimizer: Optimizer, earlier: dict[int, Any] | None) -> None:
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
