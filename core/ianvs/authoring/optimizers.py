"""Optimisers by name, with a fast path that gives the same results bit for bit."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.sgd import sgd

from ianvs.base.errors import require_known

CACHE_LINE = 64  # bytes
OPTIMIZERS = ("sgd", "adam", "adamw")


class SGD:
    """SGD by torch's own step functions, without the overhead of torch.optim.SGD.

    Its hooks, profiler records and sorting of tensors take as long as the step of a small network, and creating
    torch's first optimiser imports torch's compiler: more than a second for every program. The same numbers, bit for
    bit; the same state_dict.
    """

    def __init__(
        self,
        groups: Iterable[Mapping[str, Any]],
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        """Make the optimiser.

        Args:
            groups: Each with parameters ("params"), their learning rate ("lr") and whether their step is one kernel's
                ("fused", by default not), for which they must be of one type on one device.
            momentum: As in torch.optim.SGD.
            weight_decay: As in torch.optim.SGD.
            nesterov: As in torch.optim.SGD.
        """
        self.param_groups: list[dict[str, Any]] = [{"fused": False, **group} for group in groups]
        self._momentum = momentum
        self._options: dict[str, Any] = {"momentum": momentum, "weight_decay": weight_decay}
        self._options |= {"dampening": 0.0, "nesterov": nesterov, "maximize": False}
        self.restart()

    def restart(self) -> None:
        """Forget the momentum."""
        # Either all parameters of a group have a momentum or none: the fused kernel fails otherwise.
        self._moving: list[list[Tensor | None]] = [[None] * len(group["params"]) for group in self.param_groups]

    def step(self) -> None:
        """Take a step."""
        with torch.no_grad():
            for group, moving in zip(self.param_groups, self._moving, strict=True):
                moved: list[Any] = group["params"]
                momenta: list[Any] = moving
                gradients: list[Any] = [p.grad for p in moved]
                if any(gradient is None for gradient in gradients):
                    self._fill(moved, moving)
                    present = [index for index, gradient in enumerate(gradients) if gradient is not None]
                    moved, gradients, momenta = ([column[i] for i in present] for column in (moved, gradients, moving))
                if not moved:
                    continue
                options = {**self._options, "lr": group["lr"]}
                if not group["fused"]:  # nor foreach: torch's choice on the CPU; on a GPU all are fused
                    sgd(moved, gradients, momenta, foreach=False, fused=False, **options)
                    continue
                first = self._momentum != 0 and momenta[0] is None
                if first:
                    momenta[:] = map(torch.empty_like, gradients)  # the kernel fills them
                buffers = momenta if self._momentum else []
                torch._fused_sgd_(moved, gradients, buffers, is_first_step=first, **options)

    def state_dict(self) -> dict[str, Any]:
        """Return the momentum by the index of the parameter, as torch.optim.SGD does."""
        numbers = iter(range(sum(map(len, self._moving))))
        groups = [{**group, "params": [next(numbers) for _ in group["params"]]} for group in self.param_groups]
        momenta = enumerate(momentum for moving in self._moving for momentum in moving)
        state = {number: {"momentum_buffer": momentum} for number, momentum in momenta if momentum is not None}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the momentum of another optimiser, but not its learning rates."""
        number = 0
        for group, moving in zip(self.param_groups, self._moving, strict=True):
            stored = [state_dict["state"].get(number + i, {}).get("momentum_buffer") for i in range(len(moving))]
            number += len(moving)
            if self._momentum and any(momentum is not None for momentum in stored):
                self._fill(group["params"], moving)
                for buffer, other in zip(moving, stored, strict=True):
                    if buffer is not None and other is not None:
                        buffer.copy_(other)

    def _fill(self, parameters: Sequence[nn.Parameter], moving: list[Tensor | None]) -> None:
        if self._momentum:
            moving[:] = [torch.zeros_like(p) if m is None else m for p, m in zip(parameters, moving, strict=True)]


Optimizer = SGD | torch.optim.Optimizer


def build_optimizer(
    name: str,
    parameters: Sequence[tuple[Iterable[nn.Parameter], float]],
    *,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
) -> Optimizer:
    """Build an optimiser of (parameters, learning rate) pairs.

    'sgd' gives the numbers of torch.optim.SGD bit for bit, faster; 'adam' and 'adamw' ignore `momentum`. In 'sgd'
    and 'adam' the decay is part of the gradient, in 'adamw' it is a separate step (Loshchilov & Hutter 2019).
    """
    require_known("optimizer", name, OPTIMIZERS)
    groups: list[dict[str, Any]] = []
    for some, rate in parameters:
        trainable = [p for p in some if p.requires_grad]
        fusible: dict[object, list[nn.Parameter]] = {}
        for p in filter(_fuses, trainable):
            fusible.setdefault((p.device, p.dtype), []).append(p)
        rest = [p for p in trainable if not _fuses(p)]
        groups += [{"params": alike, "fused": True, "lr": rate} for alike in fusible.values()]
        groups += [{"params": rest, "lr": rate}] if rest else []
    if name == "sgd":
        return SGD(groups, momentum, weight_decay, nesterov)
    kind = torch.optim.Adam if name == "adam" else torch.optim.AdamW
    return kind(groups, weight_decay=weight_decay)


class OptimizerMaker:
    """`build_optimizer`, but resets the last optimiser if it would build the same one again.

    A stream has thousands of rounds of one step each, and building an optimiser takes as long as the step.
    """

    def __init__(self) -> None:
        self._built_of: tuple[object, ...] = ()
        self._optimizer: Optimizer | None = None

    def __call__(
        self, name: str, parameters: Sequence[tuple[Iterable[nn.Parameter], float]], **options: Any
    ) -> Optimizer:
        """Return an optimiser. It may be the one that was returned before, with another state."""
        pairs = [(list(some), rate) for some, rate in parameters]
        facts = [(id(p), p.requires_grad, p.device, p.dtype, p.shape) for some, _ in pairs for p in some]
        built_of = (name, *options.items(), *((len(some), rate) for some, rate in pairs), *facts)
        if self._optimizer is None or built_of != self._built_of:
            self._optimizer = build_optimizer(name, pairs, **options)
            self._rates = [group["lr"] for group in self._optimizer.param_groups]
            self._built_of = built_of
            return self._optimizer
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate
        if isinstance(self._optimizer, SGD):
            self._optimizer.restart()
        else:
            self._optimizer.state.clear()
        return self._optimizer


def continue_from(optimizer: Optimizer, earlier: dict[int, Any] | None) -> None:
    """Take over the momentum and moments of an earlier optimiser of the same parameters, but not its learning rates."""
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
