"""The data of one round as tensors, gathered by index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ianvs.authoring.randomness import torch_generator
from ianvs.base.former_names import former_module_names, former_names
from ianvs.plugins.contract import TrainData

if not TYPE_CHECKING:
    __getattr__ = former_module_names(__name__, sent="to_device")


def block_bytes(device: torch.device) -> int:
    """Return how many bytes of raw samples are gathered and prepared at once. Results don't depend on it.

    On a CPU they fit in its cache, also as float32. On a GPU they are enough to justify the kernel launches.
    """
    return 2**19 if device.type == "cpu" else 2**22


@dataclass(slots=True)
class Batch:
    """The samples of one step.

    Attributes:
        x: (B, ...) input of the network.
        y: (B,) int64, -1 where the label is hidden.
        logits: (B, num_classes), -inf for classes that are not allowed.
        outputs: The same unmasked, all finite.
        complete: Every sample has its label.
        pretraining: No sample has a label, by design.
    """

    x: Tensor
    y: Tensor
    logits: Tensor
    outputs: Tensor
    complete: bool = True
    pretraining: bool = False


@former_names(worth_keeping="samples_to_store")
@dataclass(frozen=True)
class RoundData:
    """The data of a round, as passed to the hooks of a method.

    x and y are on `device`, or in the host's memory if they do not fit there.

    Attributes:
        x: (N, ...) samples as the source yields them; images are uint8 (N, C, H, W).
        y: (N,) int64, -1 where the label is hidden.
        round: Its number, from 1.
        seed: The seed of the case.
        classes_seen: Classes so far, this round's included.
        device: Where the network is.
        prepare: Converts raw samples to the network's input.
        mask: (num_classes,) 0 for classes seen so far and -inf for the others; None when all are seen. If predictions
            are restricted to the classes of a task, it is 0 for those.
        task_masks: (num_classes + 1, num_classes), only if predictions are restricted to a task: row c is the mask of
            the task that taught class c, the last row is `mask`. A sample of an earlier task is restricted to the
            classes of its own task.
        passes: Permitted number of passes over these samples; None: unlimited.
        complete: Every sample has its label.
        pretraining: No sample has a label, by design.
        views: As `prepare`, with random augmentation, for the samples of a step; None: `prepare`. Code that replaces
            `prepare` sets it to None.
    """

    x: Tensor
    y: Tensor
    round: int
    seed: int
    classes_seen: tuple[int, ...]
    device: torch.device
    prepare: Callable[[Tensor], Tensor]
    mask: Tensor | None = None
    task_masks: Tensor | None = None
    passes: int | None = None
    complete: bool = True
    pretraining: bool = False
    views: Callable[[Tensor], Tensor] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def masked(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return outputs (B, num_classes) of samples with labels y (B,), with -inf for classes that are not allowed."""
        if self.task_masks is not None:
            return outputs + self.task_masks[y]
        return outputs if self.mask is None else outputs + self.mask

    def labelled(self) -> RoundData:
        """Return the samples that have a label."""
        if self.complete:
            return self
        labelled = (self.y >= 0).nonzero()[:, 0]
        return replace(self, x=gather(self.x, labelled), y=self.y.index_select(0, labelled), complete=True)

    def some(self, n: int | None, generator: torch.Generator) -> RoundData:
        """Return at most n of the samples, drawn uniformly; None: all."""
        if n is None or n >= len(self):
            return self
        index = to_device(torch.randperm(len(self), generator=generator)[:n], self.x.device)
        return replace(self, x=gather(self.x, index), y=self.y.index_select(0, index))

    def nothing(self) -> RoundData:
        """Return the same data without samples."""
        return replace(self, x=self.x[:0], y=self.y[:0])

    def samples_to_store(self) -> RoundData:
        """Return the samples that a later step can learn from: in pre-training all, otherwise those with a label."""
        return self if self.pretraining else self.labelled()

    def generator(self, purpose: str) -> torch.Generator:
        """Return the random stream of this seed, this round and `purpose`."""
        return torch_generator(self.seed, self.round, purpose)

    def shuffled(self, batch_size: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Iterate once over the samples in random order.

        Samples are gathered for many batches at once, in small blocks, to keep steps fast.

        Args:
            batch_size: Samples of a batch.
            generator: Draws the order.

        Yields:
            (x (B, ...), y (B,)) ready for the network, on the device, and the samples (B, ...) in their stored form.
        """
        plan = to_device(torch.randperm(len(self), generator=generator), self.x.device)
        ready = self.views or self.prepare
        if len(plan) <= batch_size:  # as mostly in a stream
            stored = gather(self.x, plan)
            yield ready(to_device(stored, self.device)), to_device(self.y.index_select(0, plan), self.device), stored
            return
        batch_bytes = batch_size * (self.x[:1].nbytes or 1)
        for block in torch.split(plan, batch_size * max(1, block_bytes(self.device) // batch_bytes)):
            stored = gather(self.x, block)
            x = ready(to_device(stored, self.device))
            y = to_device(self.y.index_select(0, block), self.device)
            parts = (torch.split(column, batch_size) for column in (x, y, stored))
            yield from zip(*parts, strict=True)

    def batches(self, size: int = 1024) -> Iterator[tuple[Tensor, Tensor]]:
        """Iterate once over (x, y) in the order of the data, ready for the network."""
        for x, y in zip(torch.split(self.x, size), torch.split(self.y, size), strict=True):
            yield self.prepare(to_device(x, self.device)), to_device(y, self.device)


class Joined:
    """Training data of several rounds combined, for a reference that may see them all."""

    def __init__(self, rounds: tuple[TrainData, ...]) -> None:
        self.rounds = rounds

    def __len__(self) -> int:
        return sum(len(part) for part in self.rounds)

    def tensors(self, device: str = "cpu") -> tuple[Tensor, Tensor]:
        """Return (x, y) of all rounds, in the order of the rounds."""
        parts = [part.tensors(device) for part in self.rounds]
        return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])


def gather(x: Tensor, index: Tensor) -> Tensor:
    """Return x[index]. Rows of a channels_last tensor are copied whole, which is 7 to 12 times faster than x[index]."""
    if x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last):
        return x.permute(0, 2, 3, 1).index_select(0, index).permute(0, 3, 1, 2)
    return x.index_select(0, index)


def to_device(x: Tensor, device: torch.device) -> Tensor:
    """Return x on `device`, without waiting for computations there.

    Only for transfers to the device: host memory is copied before this returns, or is pinned.
    """
    if x.device == device:
        return x
    return x.to(device, non_blocking=x.device.type == "cpu")


def output_mask(classes_seen: tuple[int, ...], num_classes: int, device: torch.device) -> Tensor | None:
    """Return (num_classes,) to be added to logits: -inf for classes not yet seen.

    None if there is nothing to mask: all classes are seen, or none is (the untrained model is tested).
    """
    if not classes_seen or len(set(classes_seen)) == num_classes:
        return None
    mask = torch.full((num_classes,), -torch.inf)
    mask[list(classes_seen)] = 0.0
    return to_device(mask, device)


class TaskMasks:
    """The permitted classes for samples of each class: those of the task that taught it last.

    Attributes:
        allowed: (num_classes, num_classes) bool, row c for samples of class c; None before the first task.
    """

    def __init__(self, allowed: Tensor | None = None) -> None:
        self.allowed = allowed

    def teach(self, task_classes: tuple[int, ...], num_classes: int, device: torch.device) -> Tensor:
        """Add a task.

        Returns:
            (num_classes + 1, num_classes) to be added to logits; the last row is this task's.
        """
        if self.allowed is None:
            self.allowed = torch.ones(num_classes, num_classes, dtype=torch.bool)
        mask = torch.zeros(num_classes, dtype=torch.bool)
        mask[list(task_classes)] = True
        self.allowed[list(task_classes)] = mask
        rows = torch.cat([self.allowed, mask[None]])
        return to_device(torch.zeros(rows.shape).masked_fill_(~rows, -torch.inf), device)


def resident(x: Tensor, device: torch.device) -> bool:
    """Return whether all of `x` is kept on `device`: it may use a quarter of the accelerator's free memory."""
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return x.nbytes <= free // 4


def own_classes_mask(data: RoundData, num_classes: int) -> Tensor:
    """Return (num_classes,) to be added to logits: -inf for classes without a label in the round.

    It is 0 if there are no labels. A head trained with it does not learn that old classes are absent. This is common in
    methods on pretrained networks.
    """
    labels = torch.unique(data.labelled().y)
    mask = torch.full((num_classes,), -torch.inf if len(labels) else 0.0, device=data.device)
    mask[to_device(labels, data.device)] = 0.0
    return mask


def some_of_each(y: Tensor, n: int | None, generator: torch.Generator) -> Tensor:
    """Draw samples of each label.

    Args:
        y: (N,) labels.
        n: How many of each label; None: as many as the rarest label has. Of a label that has fewer, all are taken.
        generator: On the CPU.

    Returns:
        (M,) positions, sorted by label.
    """
    rows = [(y.cpu() == c).nonzero()[:, 0] for c in torch.unique(y).tolist()]
    n = min(map(len, rows), default=0) if n is None else n
    drawn = [row[torch.randperm(len(row), generator=generator)[:n]] for row in rows]
    return to_device(torch.cat(drawn) if drawn else torch.empty(0, dtype=torch.int64), y.device)
