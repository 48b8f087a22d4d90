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
from ianvs.authoring.round_data import RoundData, to_device
from ianvs.authoring.single_values import observed_single_values
from ianvs.base.errors import PluginError, require_known

DECAYS = ("none", "cosine", "poly")
POLY_POWER = 0.9  # of "poly", as in DeepLab


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
                f"updates_per_batch must be at least 1; it is {self.updates_per_batch}.",
                code="out-of-range",
            )
        if not 0 <= self.warm_up <= 1:
            raise PluginError(
                f"warm_up is a share of a round's steps, from 0 to 1; it is {self.warm_up:g}.", code="out-of-range"
            )
        if self.iterations is not None and self.iterations < 0:
            raise PluginError(
                f"iterations, the steps of a round, must be at least 0; it is {self.iterations}.", code="out-of-range"
            )

    def steps(self, samples: int, passes: int | None) -> int:
        """Return the number of steps in a round with this many samples and permitted passes."""
        steps_per_pass = math.ceil(samples / self.batch_size)
        requested_steps = self.epochs * steps_per_pass if self.iterations is None else self.iterations
        return min(
            requested_steps if steps_per_pass else 0, requested_steps if passes is None else passes * steps_per_pass
        )

    def for_stage(self, epochs: int, **changes: Any) -> "Schedule":
        """Return the schedule of a further stage of the round with `epochs`; `iterations` are scaled in proportion."""
        steps = self.iterations and round(self.iterations * epochs / max(1, self.epochs))
        return replace(self, epochs=epochs, iterations=steps, **changes)

    def for_first_round(self, changes: Mapping[str, Any]) -> "Schedule":
        """Return this schedule with the values of `first_round`. Raises PluginError for an invalid name or value."""
        names = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in changes.items():
            require_known("option of first_round", name, names)
            is_text = name in ("optimizer", "decay", "milestones")
            if not is_text and (not isinstance(value, int | float) or isinstance(value, bool) != (name == "nesterov")):
                raise PluginError(f"first_round's {name} can't be {value!r}: write a number.", code="refused-arguments")
        options = {**changes, "milestones": tuple(changes.get("milestones", self.milestones))}
        return replace(self, **options)

    @property
    def constant(self) -> bool:
        """Whether the learning rate never changes."""
        return not (self.step_every or self.milestones or self.warm_up) and self.decay == "none"

    def lr_factor(self, epoch: int, step: int, steps: int) -> float:
        """Return the factor of the learning rate at a step, counted from 0, given the number of steps in the round."""
        drops = epoch // self.step_every if self.step_every else 0
        drops += sum(epoch >= milestone for milestone in self.milestones)
        factor = self.step_gamma**drops if drops else 1.0
        warm_up_steps = self.warm_up * steps
        if step < warm_up_steps:
            return factor * (step + 1) / (warm_up_steps + 1)
        if self.decay == "cosine":
            factor *= 0.5 * (1 + math.cos(math.pi * (step - warm_up_steps) / max(1.0, steps - warm_up_steps)))
        elif self.decay == "poly":
            factor *= (1 - (step - warm_up_steps) / max(1.0, steps - warm_up_steps)) ** POLY_POWER
        return factor


def fit(
    parameters: Iterable[tuple[Iterable[nn.Parameter], float]],
    data: RoundData,
    schedule: Schedule,
    loss_fn: Callable[[Tensor, Tensor], Tensor],
    *,
    adjust_gradients: Callable[[RoundData], None] | None = None,
    after_step: Callable[[Tensor, Tensor, int, int], None] | None = None,
    progress: Callable[[float], object] | None = None,
    previous_state: dict[int, Any] | None = None,
    optimizer_factory: Callable[..., Optimizer] = build_optimizer,
    losses: list[Tensor] | None = None,
) -> Optimizer:
    """Minimise a loss over the data of a round.

    The step is skipped if the loss has no gradient, and for a batch of one sample if batch normalisation has one value
    per channel and has seen larger batches.

    Args:
        parameters: (parameters, learning rate) pairs.
        data: The data of the round.
        schedule: The optimiser, the steps and the learning rate.
        loss_fn: Returns the loss of a batch x (B, ...), y (B,).
        adjust_gradients: Called between the backward pass and the step.
        after_step: Called after the step with the stored samples x (B, ...), y (B,), the epoch and the batch in it,
            both counted from 0.
        progress: Called after each epoch with the share of the steps that are done.
        previous_state: The state of an earlier round's optimiser, to continue from.
        optimizer_factory: `build_optimizer`, or an equivalent.
        losses: Receives the mean loss of each epoch, on the device; None: it is not computed.

    Returns:
        The optimiser.

    Raises:
        PluginError: A weight is infinite or nan after the last step.
    """
    optimizer = optimizer_factory(
        schedule.optimizer,
        [(list(params), rate) for params, rate in parameters],
        momentum=schedule.momentum,
        weight_decay=schedule.weight_decay,
        nesterov=schedule.nesterov,
    )
    continue_from(optimizer, previous_state)
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
                factor = schedule.lr_factor(epoch, done, steps)
                for group, rate in groups:
                    group["lr"] = rate * factor
            done += 1
            for update in range(schedule.updates_per_batch):
                if update and data.views is not None:
                    x = data.views(to_device(stored, data.device))
                with observed_single_values() if len(y) == 1 else nullcontext() as single:
                    loss = loss_fn(x, y)
                if single:  # one value per channel can't be normalised, and running statistics would spoil the weights
                    loss = loss.detach()
                if loss.requires_grad:  # not for a batch without labels, if the method has no unsupervised loss
                    for parameter in trainable:  # as optimizer.zero_grad(), without its overhead of 7 us
                        parameter.grad = None
                    loss.backward()  # type: ignore[no-untyped-call]
                    if adjust_gradients is not None:
                        adjust_gradients(data)
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
    if steps > 1:  # rounds of a stream have one step each; their weights are checked when they are saved
        require_finite(trainable, data.round, schedule.learning_rate)
    return optimizer


@torch.no_grad()
def require_finite(parameters: Sequence[Tensor], round_: int, learning_rate: float) -> None:
    """Raise PluginError if any weight is infinite or nan. One synchronisation with the device."""
    sums = [p.sum(dtype=torch.float32 if p.element_size() < 4 else None) for p in parameters]
    if sums and not math.isfinite(torch.stack(sums).sum().item()):  # a sum of huge values overflows, too
        raise PluginError(
            f"the weights became infinite or nan in round {round_}. Try a smaller learning_rate "
            f"(now {learning_rate:g}) or a weaker penalty.",
            code="refused-arguments",
        )


def loss_stagnated(losses: Sequence[Tensor]) -> bool:
    """Return whether the mean loss of the last epoch is no lower than that of the first, and still large.

    False for fewer than three epochs, and for a loss below log 2, that of guessing between two classes, which has
    little room to fall. One synchronisation with the device.
    """
    if len(losses) < 3:
        return False
    first, last = torch.stack([losses[0], losses[-1]]).tolist()
    return bool(last >= first and last > math.log(2))
