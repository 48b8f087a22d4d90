"""A learner that trains on the round's samples and its exemplars together, and listens to its former self."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ianvs.authoring.memory import PerRoundMemory, State
from ianvs.authoring.replay_learner import ReplayLearner
from ianvs.authoring.round_data import RoundData
from ianvs.base.errors import PluginError

__all__ = ["ExemplarLearner"]


class ExemplarLearner(ReplayLearner):
    """What iCaRL and the methods after it share (Rebuffi et al. 2017, algorithm 3). By itself it only replays.

    A round's training data are its own samples that have a label, and all of the memory; `passes` of an exam hold for
    both. Options are those of ReplayLearner; the memory chooses by herding.

    For methods to use in a round: `teacher`, the network as the round found it, in evaluation mode; None before
    anything is known. `known`: classes of earlier rounds. `new`: classes that the round is the first to bring. `old`:
    classes of earlier rounds that it does not bring.
    """

    def __init__(self, *, selection: str = "herding", **options: Any) -> None:
        super().__init__(selection=selection, **options)
        if isinstance(self.memory, PerRoundMemory) or self.fill != "after_round":
            raise PluginError("exemplars are chosen after a round, from all rounds: take out `fill` or `selection`.")
        self.known: list[int] = []
        self.new: list[int] = []
        self.old: list[int] = []
        self.teacher: nn.Module | None = None

    def before_round(self, data: RoundData) -> None:
        super().before_round(data)
        own = set(data.labelled().y.tolist())
        self.new, self.old = sorted(own.difference(self.known)), sorted(set(self.known) - own)
        self.teacher = copy.deepcopy(self.network).eval().requires_grad_(False) if self.known else None

    def training_data(self, data: RoundData) -> RoundData:
        data = data.worth_keeping()
        if isinstance(self.memory, PerRoundMemory) or not len(self.memory):
            return data
        x, y = self.memory.x.to(data.x.device), self.memory.y.to(data.y.device)
        return replace(data, x=torch.cat([data.x, x]), y=torch.cat([data.y, y]))

    def told(self, x: Tensor) -> Tensor:
        """(B, num_classes) what the teacher says about prepared samples x (B, ...), without any mask."""
        return self.logits(x, network=self.teacher)

    def after_round(self, data: RoundData) -> None:
        super().after_round(data)
        self.known, self.teacher = sorted({*self.known, *self.new}), None

    def state(self) -> State:
        return {**super().state(), "known": self.known}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.known = list(state["known"])
