"""Steps over the data of a round: the order, the optimiser, the learning rate."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from ianvs.authoring.optimizers import Optimizer, build_optimizer, continue_from
from ianvs.authoring.round_data import RoundData, sent
from ianvs.authoring.single_values import observed_single_values
from ianvs.base.errors import PluginError, require_known

DECAYS = ("none", "cosine", "poly")
POWER = 0.9  # of "poly", as in DeepLab


@dataclass(frozen=True)
class Schedule:
    """Options for training on a round; `TorchLearner` explains each of them."""

    learning_rate: float
    epochs: int
    batch_size: int
    optimizer: str = "sgd"
    momentum: float = 0.0
    weight_decay: float = 0.0
    step_every: int | None = None
    step_gamma: float = 0.1
    milestones: tuple[int, ...] = ()
    decay: str = "none"
    warm_up: float = 0.0
    iterations: int | None = None
    clip_norm: float | None = None
    clip_value: float | None = None
    nesterov: bool = False
    updates_per_batch: int = 1

    def __post_init__(self) -> None:
        require_known("decay", self.decay, DECAYS)
        if self.nesterov and (self.optimizer != "sgd" or self.momentum <= 0):
            raise PluginError(
                "nesterov is a form of SGD's momentum: set `optimizer: sgd` and a `momentum` above 0.",
                code="conflicting-keys",
            )
        if self.updates_per_batch < 1:
            raise PluginError(
                f"updates_per_batch is a number of steps, 1 or more; it can't be {self.updates_per_batch}.",
                code="out-of-range",
            )
        if not 0 <= self.warm_up <= 1:
            raise PluginError(
                f"warm_up is the share of a round's steps, 0 to 1; it can't be {self.warm_up:g}.", code="out-of-range"
            )
        if self.iterations is not None and self.iterations < 0:
            raise PluginError(
                f"iterations are the steps of a round, 0 or more; it can't be {self.iterations}.", code="out-of-range"
            )

    def steps(self, samples: int, passes: int | None) -> int:
        """Number of steps in a round with this many samples and permitted passes."""
        each = math.ceil(samples / self.batch_size)
        wanted = self.epochs * each if self.iterations is None else self.iterations
        return min(wanted if each else 0, wanted if passes is None else passes * each)

    def stage(self, epochs: int, **changes: Any) -> "Schedule":
        """The schedule of another stage of the round, of `epochs`; `iterations` in proportion."""
        steps = self.iterations and round(self.iterations * epochs / max(1, self.epochs))
        return replace(self, epochs=epochs, iterations=steps, **changes)

    def of_first_round(self, changes: Mapping[str, Any]) -> "Schedule":
        """The same with the values of `first_round`. Raises PluginError for what it can't take."""
        names = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in changes.items():
            require_known("option of first_round", name, names)
            words = name in ("optimizer", "decay", "milestones")
            if not words and (not isinstance(value, int | float) or isinstance(value, bool) != (name == "nesterov")):
                raise PluginError(f"first_round's {name} can't be {value!r}: write a number.", code="refused-arguments")
        given = {**changes, "milestones": tuple(changes.get("milestones", self.milestones))}
        return replace(self, **given)

    @property
    def constant(self) -> bool:
        """Whether the learning rate never changes."""
        return not (self.step_every or self.milestones or self.warm_up) and self.decay == "none"

    def factor(self, epoch: int, step: int, steps: int) -> float:
        """The factor of the learning rate at a step, counted from 0, given the number of steps in the round."""
        drops = epoch // self.step_every if self.step_every else 0
        drops += sum(epoch >= milestone for milestone in self.milestones)
        factor = self.step_gamma**drops if drops else 1.0
        rising = self.warm_up * steps
        if step < rising:
            return factor * (step + 1) / (rising + 1)
        if self.decay == "cosine":
            factor *= 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1.0, steps - rising)))
        elif self.decay == "poly":
            factor *= (1 - (step - rising) / max(1.0, steps - rising)) ** POWER
        return factor


def fit(
    parameters: Iterable[tuple[Iterable[nn.Parameter], float]],
    data: RoundData,
    schedule: Schedule,
    loss_of: Callable[[Tensor, Tensor], Tensor],
    *,
    adjust: Callable[[RoundData], None] | None = None,
    after_step: Callable[[Tensor, Tensor, int, int], None] | None = None,
    progress: Callable[[float], object] | None = None,
    earlier: dict[int, Any] | None = None,
    make: Callable[..., Optimizer] = build_optimizer,
    losses: list[Tensor] | None = None,
) -> Optimizer:
    """Minimise `loss_of` a batch's x (B, ...), y (B,), with an optimiser of (parameters, learning rate) pairs.

    adjust: called between the backward pass and the step. after_step: called after it with the stored samples
    x (B, ...), y (B,), the epoch and the batch in it, counted from 0. Either is None if a method adds nothing.
    earlier: the optimiser state of another round, to continue from. make: `build_optimizer`, or an equivalent.
    losses: receives the mean loss of each epoch, on the device; None saves its computation.
    A loss without a gradient takes no step, nor does a batch of one sample that batch normalisation can't normalise
    by itself (one value per channel), if it has learned from larger batches.
    """
    optimizer = make(
        schedule.optimizer,
        [(list(some), rate) for some, rate in parameters],
        momentum=schedule.momentum,
        weight_decay=schedule.weight_decay,
        nesterov=schedule.nesterov,
    )
    continue_from(optimizer, earlier)
    groups = [(group, group["lr"]) for group in optimizer.param_groups]
    trainable = [p for group, _ in groups for p in group["params"]]
    order = data.generator("order")
    steps = schedule.steps(len(data), data.passes)
    done = 0
    for epoch in count():
        if done >= steps:
            break
        epoch_losses: list[Tensor] = []
        for step, (x, y, stored) in enumerate(data.shuffled(schedule.batch_size, order)):
            if done >= steps:
                break
            if not schedule.constant:
                factor = schedule.factor(epoch, done, steps)
                for group, rate in groups:
                    group["lr"] = rate * factor
            done += 1
            for update in range(schedule.updates_per_batch):
                if update and data.views is not None:
                    x = data.views(sent(stored, data.device))
                with observed_single_values() if len(y) == 1 else nullcontext() as single:
                    loss = loss_of(x, y)
                if single:  # weights learned with statistics of batches: running ones spoil them, or it diverges
                    loss = loss.detach()
                if loss.requires_grad:  # else a batch without any label, and a method that wants nothing of it
                    for parameter in trainable:  # what optimizer.zero_grad() does, without its 7 microseconds
                        parameter.grad = None
                    loss.backward()  # type: ignore[no-untyped-call]
                    if adjust is not None:
                        adjust(data)
                    if schedule.clip_norm is not None:
                        clip_grad_norm_(trainable, schedule.clip_norm)
                    if schedule.clip_value is not None:
                        clip_grad_value_(trainable, schedule.clip_value)
                    optimizer.step()
                    if losses is not None:
                        epoch_losses.append(loss.detach())
                if after_step is not None:
                    after_step(stored, y, epoch, step)
        if losses is not None and epoch_losses:
            losses.append(torch.stack(epoch_losses).mean())
        if progress is not None:
            progress(done / steps)
    if steps > 1:  # a stream takes one at a time, and is looked at when it is saved
        require_finite(trainable, data.round, schedule.learning_rate)
    return optimizer


@torch.no_grad()
def require_finite(parameters: Sequence[Tensor], round_: int, learning_rate: float) -> None:
    """Raises PluginError if any weight is infinite or nan. One synchronisation with the device."""
    sums = [p.sum(dtype=torch.float32 if p.element_size() < 4 else None) for p in parameters]
    if sums and not math.isfinite(torch.stack(sums).sum().item()):  # of anything infinite, and of giants
        raise PluginError(
            f"the weights became infinite or nan in round {round_}. A smaller learning_rate "
            f"(now {learning_rate:g}) or a weaker penalty keeps them finite.",
            code="refused-arguments",
        )


def did_not_fall(losses: Sequence[Tensor]) -> bool:
    """Whether the mean loss of the last epoch is no lower than that of the first, and still large.

    Fewer than three epochs say nothing. A loss below log 2, that of guessing between two classes, has little room to
    fall. One synchronisation with the device.
    """
    if len(losses) < 3:
        return False
    first, last = torch.stack([losses[0], losses[-1]]).tolist()
    return bool(last >= first and last > math.log(2))
