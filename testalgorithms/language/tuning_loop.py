"""The training loop: batches of similar length, accumulation, warm-up and cosine decay."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from ianvs.authoring.training_loop import require_finite
from ianvs.testalgorithms.language.batches import Batch, RoundOfTalk, grouped_by_length
from ianvs.testalgorithms.language.conversation import Encoded
from ianvs.testalgorithms.language.numbers import above, at_least, within


class Tuned(Protocol):
    """The attributes of a learner that the loop uses."""

    @property
    def device(self) -> torch.device: ...
    @property
    def weights(self) -> Mapping[str, torch.nn.Parameter]: ...
    @property
    def rates(self) -> Mapping[str, float]: ...
    def extend(self, conversations: list[Encoded]) -> list[Encoded]: ...
    def batch(self, conversations: list[Encoded]) -> Batch: ...
    def loss(self, batch: Batch) -> Tensor: ...
    def before_step(self) -> None: ...
    def after_step(self) -> None: ...
    def held_out_loss(self) -> float | None: ...


@dataclass(frozen=True)
class Descent:
    """A new AdamW in each round, with a linear warm-up over a share of the steps and a cosine decay."""

    learning_rate: float
    epochs: int
    batch_size: int
    accumulation: int
    warmup: float
    weight_decay: float
    max_grad_norm: float

    def __post_init__(self) -> None:
        at_least(1, epochs=self.epochs, batch_size=self.batch_size, accumulation=self.accumulation)
        above(0, learning_rate=self.learning_rate)
        within(0, 1, warmup=self.warmup)
        within(0, math.inf, weight_decay=self.weight_decay, max_grad_norm=self.max_grad_norm)

    def run(self, learner: Tuned, data: RoundOfTalk, passes: int | None, progress: Callable[..., Any] | None) -> None:
        """Go down the learner's loss, `epochs` times over the data, or as often as the exam allows."""
        epochs = self.epochs if passes is None else min(self.epochs, passes)
        named, rates = learner.weights, learner.rates
        weights = list(named.values())
        groups = [{"params": [parameter for name, parameter in named.items() if name not in rates]}]
        groups += [{"params": [named[name]], "lr": rate} for name, rate in rates.items()]  # type: ignore[dict-item]
        optimizer = torch.optim.AdamW(
            groups, lr=self.learning_rate, weight_decay=self.weight_decay, fused=learner.device.type in ("cpu", "cuda")
        )
        each = math.ceil(math.ceil(len(data) / self.batch_size) / self.accumulation)
        warmup = math.ceil(self.warmup * epochs * each)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, partial(warm_cosine, epochs * each, warmup))
        order = data.generator("order")
        meter = Meter(epochs * each, progress)
        for epoch in range(epochs):
            for parts in self._steps(data, order):
                optimizer.zero_grad(set_to_none=True)
                extended = [learner.extend(part) for part in parts]
                batches = [learner.batch(part) for part in extended]
                tokens = sum(len(batch.targets) for batch in batches)
                for batch in batches:  # each as much as its share of the tokens, so that the step's mean is one mean
                    share = len(batch.targets) / tokens
                    loss = share * learner.loss(batch)
                    loss.backward()  # type: ignore[no-untyped-call]
                    meter.loss += loss.detach()
                learner.before_step()
                if self.max_grad_norm:
                    torch.nn.utils.clip_grad_norm_(weights, self.max_grad_norm)
                optimizer.step()
                rate = optimizer.param_groups[0]["lr"]
                schedule.step()
                learner.after_step()
                meter.step(sum(len(encoded) for part in extended for encoded in part), rate)
            if progress is not None and (held_out := learner.held_out_loss()) is not None:
                progress((epoch + 1) / epochs, held_out_loss=held_out)
        require_finite(weights, data.round, self.learning_rate)

    def _steps(self, data: RoundOfTalk, order: torch.Generator) -> Iterator[list[list[Encoded]]]:
        """One pass: for each step the batches of which it consists."""
        lengths = [len(conversation) for conversation in data.encoded]
        batches = [[data.encoded[i] for i in rows] for rows in grouped_by_length(lengths, self.batch_size, order)]
        for start in range(0, len(batches), self.accumulation):
            yield batches[start : start + self.accumulation]


class Meter:
    """Reports the progress about a hundred times, with means over the steps since then; a GPU is synchronised as often.

    loss: the sum of their losses.
    """

    def __init__(self, steps: int, progress: Callable[..., Any] | None) -> None:
        self._steps, self._progress, self._done = steps, progress, 0
        self._begin()

    def _begin(self) -> None:
        self.loss: Tensor | float = 0.0
        self._count, self._tokens, self._since = 0, 0, time.perf_counter()

    def step(self, tokens: int, rate: float) -> None:
        """Count a step with `tokens` tokens, without padding, at this learning rate."""
        before, self._done = self._done, self._done + 1
        self._count, self._tokens = self._count + 1, self._tokens + tokens
        if self._progress is None or 100 * before // self._steps == 100 * self._done // self._steps:
            return
        loss = float(self.loss) / self._count
        speed = self._tokens / max(1e-9, time.perf_counter() - self._since)
        self._progress(self._done / self._steps, loss=loss, learning_rate=rate, tokens_per_second=speed)
        self._begin()


def warm_cosine(steps: int, warmup: int, step: int) -> float:
    """Return the share of the learning rate at `step`: linear warm-up, then half a cosine; it is never 0."""
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(steps - warmup, 1)))
