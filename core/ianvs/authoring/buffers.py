"""Memories that choose: balanced over classes, or biased towards recent data."""

from __future__ import annotations

import torch
from torch import Tensor

from ianvs.authoring.memory import Memory, State
from ianvs.base.errors import PluginError, closest

__all__ = ["BiasedReservoirMemory", "ClassBalancedMemory"]

FORMULAS = ("alpha_over_n", "constant")


class ClassBalancedMemory(Memory):
    """As many samples of each class as possible, greedily (GDumb; Prabhu et al. 2020, algorithm 1).

    A sample is stored if its class is new or has fewer than capacity / (number of classes so far); when the memory is
    full, a random sample of the class that has most makes room.
    """

    def add(self, x: Tensor, y: Tensor, generator: torch.Generator, *more: Tensor) -> None:
        """Offer samples x (N, ...) with labels y (N,) and further columns, one after the other.

        `generator` is on the CPU.
        """
        slots: dict[int, list[int]] = {}  # class -> positions of its samples, new ones counted on after the old ones
        for position, label in enumerate(self.y.tolist()):
            slots.setdefault(label, []).append(position)
        stored, before = len(self), len(self)
        for position, label in enumerate(y.tolist(), start=before):
            own = slots.setdefault(label, [])
            if self.capacity == 0 or len(own) * len(slots) >= max(self.capacity, len(slots)):
                continue  # it has its share; a class that has none always gets one
            if stored == self.capacity:
                most = max(slots.values(), key=len)
                most.pop(int(torch.randint(len(most), (1,), generator=generator)))
            else:
                stored += 1
            own.append(position)
        self.seen += len(y)
        self._keep(torch.tensor(sorted(p for own in slots.values() for p in own), dtype=torch.int64), (x, y, *more))


class BiasedReservoirMemory(Memory):
    """A reservoir that favours recent buckets of data (CLEAR; Lin et al. 2021).

    The first bucket fills it. Of bucket i >= 1 (counted from 0), each sample is accepted with probability
    p = alpha / (i + 1), formula "alpha_over_n", or p = alpha, formula "constant"; p is at most 1. Accepted samples take
    the place of old ones, which are drawn uniformly. A bucket larger than the memory is first cut to its size, at
    random; while there is room, samples are stored without being asked.
    With buckets of the memory's size, alpha 1 over n gives every bucket the same expected share, and a constant 1 keeps
    the newest bucket alone.
    """

    def __init__(self, capacity: int, formula: str = "alpha_over_n", alpha: float = 1.0) -> None:
        super().__init__(capacity)
        if formula not in FORMULAS:
            hint = closest(formula, FORMULAS)
            raise PluginError(f"formula '{formula}' of a biased reservoir is not known.{hint} {' or '.join(FORMULAS)}.")
        if alpha < 0:
            raise PluginError(f"alpha of a biased reservoir can't be negative, but is {alpha:g}.")
        self.formula, self.alpha = formula, alpha
        self.buckets = 0

    @property
    def probability(self) -> float:
        """p of a sample of the next bucket, when the memory is full."""
        return min(1.0, self.alpha / (self.buckets + 1) if self.formula == "alpha_over_n" else self.alpha)

    def add(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        """Offer a bucket: samples x (N, ...) with labels y (N,); `generator` is on the CPU."""
        before = len(self)
        offered = torch.randperm(len(y), generator=generator)[: self.capacity]
        room = min(self.capacity - before, len(offered))
        stored, asked = offered[:room], offered[room:]
        accepted = asked[torch.rand(len(asked), generator=generator, dtype=torch.float64) < self.probability]
        # Only old samples make room, or else a bucket would push out its own; where they are too few, those stay out.
        accepted = accepted[:before]
        old = torch.randperm(before, generator=generator)[len(accepted) :]
        self._keep(torch.cat([old, before + stored, before + accepted]).sort().values, (x, y))
        self.seen += len(y)
        self.buckets += 1

    def state(self) -> State:
        return {**super().state(), "buckets": self.buckets}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.buckets = state["buckets"]
