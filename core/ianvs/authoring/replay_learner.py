"""A learner with a memory of old samples."""

import copy
from collections import deque
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import kl_div, log_softmax, normalize, softmax

from ianvs.authoring.memory import (
    ClassBalancedMemory,
    HerdingMemory,
    PerRoundMemory,
    ReservoirMemory,
    State,
    memory_options,
)
from ianvs.authoring.round_data import Batch, RoundData, block_bytes, to_device
from ianvs.authoring.torch_learner import TorchLearner
from ianvs.base.errors import PluginError, require_known
from ianvs.base.former_names import former_names

FILLS = ("after_round", "during_round", "every_step")
_MEMORIES: dict[str, type[ReservoirMemory | ClassBalancedMemory | PerRoundMemory | HerdingMemory]] = {
    "reservoir": ReservoirMemory,
    "balanced": ClassBalancedMemory,
    "per_round": PerRoundMemory,
    "herding": HerdingMemory,
}
_AHEAD = 16  # steps for which old samples are drawn at once


@former_names(columns="stored_with", directions="unit_features")
class ReplayLearner(TorchLearner):
    """Base class of methods with a memory. It fills the memory but does not use it.

    A method calls `recall` in a step. `stored_with` defines what is stored besides samples and labels.

    Args:
        capacity: Number of stored samples, of all classes together.
        memory_total: Another name of `capacity`.
        memory_per_class: Number of samples of each class instead, for selection "balanced" or "herding". The memory
            grows.
        replay_batch: Old samples in a step; None: as many as new ones.
        fill: "after_round": all replayed samples are from earlier rounds. "during_round": each sample is stored in the
            round's first pass, as in a stream, so new samples are replayed, too. "every_step": each
            sample is offered in every pass; what is stored with it (such as logits) is of the pass in which it was
            stored. A sample may be stored twice.
        selection: "reservoir": a uniform random subset of all samples so far (Vitter 1985). "balanced": equally many of
            each class. "per_round": a uniform subset of each round, of `capacity` samples each. "herding": equally many
            of each class, those whose mean feature is closest to the mean of the class (Rebuffi et al. 2017). The last
            two are filled after the round.
        **training: Options of TorchLearner.
    """

    def __init__(
        self,
        *,
        capacity: int = 200,
        memory_total: int | None = None,
        memory_per_class: int | None = None,
        replay_batch: int | None = None,
        fill: str = "after_round",
        selection: str = "reservoir",
        **training: Any,
    ) -> None:
        super().__init__(**training)
        require_known("fill of a memory", fill, FILLS)
        require_known("selection of a memory", selection, _MEMORIES)
        if fill != "after_round" and selection in ("per_round", "herding"):
            raise PluginError(
                f"a memory with selection '{selection}' is filled after each round: set `fill: after_round`.",
                code="conflicting-keys",
            )
        if replay_batch is not None and replay_batch < 1:
            raise PluginError(
                f"replay_batch is a number of samples, 1 or more; it can't be {replay_batch}.", code="out-of-range"
            )
        self.replay_batch, self.fill = replay_batch, fill
        more = memory_options(selection, memory_total, memory_per_class)
        if selection == "reservoir":
            more["in_place"] = fill != "after_round"
        self.memory = _MEMORIES[selection](capacity if memory_total is None else memory_total, **more)
        self._draws = self._keys = torch.Generator()
        self._steps = 1  # in the round
        self._offered = -1, -1  # epoch and batch that were added to the memory last
        self._planned: deque[tuple[Tensor, tuple[Tensor, ...]]] = deque()  # (order of a draw, its samples)

    # What a method may override.

    def stored_with(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        """Return what is stored besides samples and labels.

        It is called when samples are stored: during a round after their step, otherwise after the round, with the
        network in evaluation mode and without gradients.

        Args:
            x: (B, ...) samples.
            y: (B,) labels.

        Returns:
            Tensors (B, ...).
        """
        return ()

    # For methods to use.

    def recall(self, n: int) -> tuple[Tensor, ...]:
        """Draw old samples from the memory. It may be empty: check `len(self.memory)` first.

        Args:
            n: How many, unless `replay_batch` is set. If the memory has fewer, all are returned.

        Returns:
            (x, y, ...) on the network's device; x is ready for the network.
        """
        n = self.replay_batch or n
        if self.fill != "after_round" or self._steps == 1:
            return self._ready_for_use(self.memory.sample(n, self._draws))
        if not self._planned:
            self._plan(n)
        order, stored = self._planned.popleft()
        if n <= len(stored[0]) or len(stored[0]) == len(order):
            return tuple(part[:n] for part in stored)
        return self._ready_for_use(self.memory.at(order[:n]))  # more samples than were planned

    def _plan(self, n: int) -> None:
        """Draw, gather and prepare old samples for some steps at once, while the memory does not change."""
        count = len(self.memory)
        block = block_bytes(torch.device("cpu") if self.data is None else self.data.device)
        some = min(self._steps, _AHEAD, max(1, block * count // (n * self.memory.nbytes or 1)))
        orders = [torch.randperm(count, generator=self._draws) for _ in range(some)]
        drawn = self._ready_for_use(self.memory.at(torch.cat([order[:n] for order in orders])))
        each = (torch.split(part, min(n, count)) for part in drawn)
        self._planned.extend(zip(orders, zip(*each, strict=True), strict=True))

    def _ready_for_use(self, stored: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        x, y, *more = stored
        x = self.views(x)
        return x, to_device(y, x.device), *(to_device(part, x.device) for part in more)

    def unit_features(self, x: Tensor) -> Tensor:
        """Return (B, D) features of unit length of stored samples (B, ...), by the network in evaluation mode."""
        return self.each(x, lambda part: normalize(self.representation(part)))

    def recall_batch(self, n: int) -> Batch:
        """Draw old samples as `recall` does, augmented like those of a step, with the network's outputs for them."""
        assert self.data is not None
        x, y, *_ = self.recall(n)
        return self.batch(self.data, self.augmented(x), y)

    # What TorchLearner calls.

    def before_round(self, data: RoundData) -> None:
        """Prepare the random streams of the memory."""
        self._draws, self._keys = data.generator("replay"), data.generator("memory")
        self._planned.clear()
        self._offered = -1, -1
        self._steps = self.schedule.steps(len(data), data.passes)

    def after_step(self, x: Tensor, y: Tensor, epoch: int, step: int) -> None:
        """Store the samples of the step, if `fill` says so."""
        offered = self.fill == "every_step" or (self.fill == "during_round" and epoch == 0)
        again, self._offered = self._offered == (epoch, step), (epoch, step)  # a further update of the same batch
        if offered and not again and self.data is not None:
            stored = x, y, *self.stored_with(x, y)
            if not (self.data.complete or self.data.pretraining):
                labelled = y >= 0
                stored = tuple(part[labelled.to(part.device)] for part in stored)
            self._store(stored)

    def after_round(self, data: RoundData) -> None:
        """Store the samples of the round, if `fill` says so."""
        if self.fill == "after_round":
            samples = data.samples_to_store()
            if len(samples):
                self._store((samples.x, samples.y, *self._stored_with_all(samples)))

    def _stored_with_all(self, samples: RoundData) -> tuple[Tensor, ...]:
        if type(self).stored_with is ReplayLearner.stored_with:
            return ()
        self.network.eval()
        with torch.no_grad():
            parts = zip(torch.split(samples.x, 1024), torch.split(samples.y, 1024), strict=True)
            more = [self.stored_with(x, y) for x, y in parts]
        return tuple(torch.cat(part) for part in zip(*more, strict=True))

    def _store(self, stored: tuple[Tensor, ...]) -> None:
        x, y, *more = stored
        if isinstance(self.memory, HerdingMemory):
            self.memory.add(x, y, self.unit_features, *more)
        else:
            self.memory.add(x, y, self._keys, *more)

    def state(self) -> State:
        """Return the memory's state."""
        return {"memory": self.memory.state()}

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""
        self.memory.restore(state["memory"])


@former_names(told="teacher_logits", known="known_classes", new="new_classes", old="absent_classes")
class ExemplarLearner(ReplayLearner):
    """Base class of iCaRL and its successors (Rebuffi et al. 2017, algorithm 3). By itself it only replays.

    The training data of a round are its own labelled samples and the whole memory. An exam's limit on passes applies to
    both. Options are those of ReplayLearner. The memory selects by herding.

    Attributes:
        teacher: The network from before the round, in evaluation mode; None in the first round.
        known_classes: Classes of earlier rounds.
        new_classes: Classes that first occur in this round.
        absent_classes: Classes of earlier rounds that do not occur in this one.
        known_index: `known_classes` as a tensor on the round's device. Indexing by a list would wait for the GPU.
    """

    def __init__(self, *, selection: str = "herding", **options: Any) -> None:
        super().__init__(selection=selection, **options)
        if isinstance(self.memory, PerRoundMemory) or self.fill != "after_round":
            raise PluginError(
                "exemplars are chosen after a round, from all rounds: take out `fill` or `selection`.",
                code="conflicting-keys",
            )
        self.known_classes: list[int] = []
        self.new_classes: list[int] = []
        self.absent_classes: list[int] = []
        self.known_index = torch.empty(0, dtype=torch.int64)
        self.teacher: nn.Module | None = None

    def before_round(self, data: RoundData) -> None:
        """Set the classes of the round, and copy the network as its teacher."""
        super().before_round(data)
        labels = set(data.labelled().y.tolist())
        self.new_classes, self.absent_classes = (
            sorted(labels.difference(self.known_classes)),
            sorted(set(self.known_classes) - labels),
        )
        self.known_index = torch.tensor(self.known_classes, dtype=torch.int64, device=data.device)
        self.teacher = copy.deepcopy(self.network).eval().requires_grad_(False) if self.known_classes else None

    def training_data(self, data: RoundData) -> RoundData:
        """Return the round's labelled samples and the memory."""
        data = data.samples_to_store()
        if isinstance(self.memory, PerRoundMemory) or not len(self.memory):
            return data
        x, y = self.memory.x.to(data.x.device), self.memory.y.to(data.y.device)
        return replace(data, x=torch.cat([data.x, x]), y=torch.cat([data.y, y]))

    def teacher_logits(self, x: Tensor) -> Tensor:
        """Return (B, num_classes) the teacher's unmasked logits for prepared samples x (B, ...)."""
        return self.logits(x, network=self.teacher)

    def after_round(self, data: RoundData) -> None:
        """Store exemplars, and discard the teacher."""
        super().after_round(data)
        self.known_classes, self.teacher = sorted({*self.known_classes, *self.new_classes}), None

    def state(self) -> State:
        """Return the state of the memory and the known classes."""
        return {**super().state(), "known": self.known_classes}

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""
        super().restore(state)
        self.known_classes = list(state["known"])


def distillation_loss(student: Tensor, teacher: Tensor, temperature: float = 2.0) -> Tensor:
    """Return T^2 KL(softmax(teacher / T) || softmax(student / T)) (Hinton et al. 2015, section 2).

    The factor T^2 makes the size of the gradient independent of the temperature.

    Args:
        student: (B, ..., C) finite logits.
        teacher: (B, ..., C) finite logits over the same classes.
        temperature: T.

    Returns:
        A scalar in nats: the mean over the batch. The losses of one sample are summed.
    """
    target = softmax(teacher / temperature, dim=-1)
    answer = log_softmax(student / temperature, dim=-1)
    return kl_div(answer, target, reduction="batchmean") * temperature**2
