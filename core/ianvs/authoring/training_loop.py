"""Steps over the data of a round: the order, the optimiser, the learning rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torch import Tensor, nn

from ianvs.authoring.optimizers import build_optimizer
from ianvs.authoring.round_data import RoundData
from ianvs.errors import PluginError

__all__ = ["Schedule", "fit"]


@dataclass(frozen=True)
class Schedule:
    """How a round is learned. step_every: epochs after which the learning rate is multiplied by step_gamma."""

    learning_rate: float
    epochs: int
    batch_size: int
    optimizer: str
    momentum: float
    weight_decay: float
    step_every: int | None
    step_gamma: float

    def rate(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0."""
        steps = epoch // self.step_every if self.step_every else 0
        return self.learning_rate * self.step_gamma**steps if steps else self.learning_rate


def fit(
    parameters: Iterable[nn.Parameter],
    data: RoundData,
    schedule: Schedule,
    loss_of: Callable[[Tensor, Tensor], Tensor],
    adjust: Callable[[RoundData], None] | None = None,
    progress: Callable[[float], object] | None = None,
) -> None:
    """Go down `loss_of` a batch's x (B, ...), y (B,), with a new optimiser.

    adjust: called between the backward pass and the step. A loss without a gradient takes no step.
    """
    parameters = list(parameters)
    optimizer = build_optimizer(
        schedule.optimizer,
        parameters,
        learning_rate=schedule.learning_rate,
        momentum=schedule.momentum,
        weight_decay=schedule.weight_decay,
    )
    trainable = [p for group in optimizer.param_groups for p in group["params"]]
    order = data.generator("order")
    epochs = schedule.epochs if data.passes is None else min(schedule.epochs, data.passes)
    for epoch in range(epochs if len(data) else 0):
        if schedule.step_every:
            for group in optimizer.param_groups:
                group["lr"] = schedule.rate(epoch)
        for x, y in data.shuffled(schedule.batch_size, order):
            loss = loss_of(x, y)
            if not loss.requires_grad:  # a batch without any label, and a method that wants nothing of it
                continue
            for parameter in trainable:  # what optimizer.zero_grad() does, without its 7 microseconds
                parameter.grad = None
            loss.backward()  # type: ignore[no-untyped-call]
            if adjust is not None:
                adjust(data)
            optimizer.step()
        if progress is not None:
            progress((epoch + 1) / epochs)
    if not all(bool(p.isfinite().all()) for p in parameters):
        raise PluginError(
            f"the weights became infinite or nan in round {data.round}. A smaller learning_rate "
            f"(now {schedule.learning_rate:g}) or a weaker penalty keeps them finite."
        )
