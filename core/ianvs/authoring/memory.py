"""Memories of old samples with a budget."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from ianvs.authoring.round_data import gather, sent
from ianvs.base.errors import PluginError

__all__ = ["Memory", "PerRoundMemory", "ReservoirMemory", "State"]

State = dict[str, Any]
"""What `torch.save` keeps of a method or a memory: tensors, numbers, text, and lists or dicts of these, by name."""


class Memory:
    """At most `capacity` samples with what belongs to them, in the order of arrival. What stays is up to subclasses.

    x: (len, ...) samples, as they were added. y: (len,) their labels. Further columns are what a method adds to them.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 0:
            raise PluginError(f"the capacity of a memory is a number of samples, 0 or more; it can't be {capacity}.")
        self.capacity = int(capacity)
        self.seen = 0  # samples that were ever added
        self._columns: tuple[Tensor, ...] = ()

    def __len__(self) -> int:
        return len(self._columns[0]) if self._columns else 0

    @property
    def x(self) -> Tensor:
        """(len, ...) stored samples, as they were added."""
        return self._columns[0] if self._columns else torch.empty(0)

    @property
    def y(self) -> Tensor:
        """(len,) their labels."""
        return self._columns[1] if self._columns else torch.empty(0, dtype=torch.int64)

    @property
    def columns(self) -> tuple[Tensor, ...]:
        """x, y and whatever else is stored of each sample."""
        return self._columns

    @property
    def nbytes(self) -> int:
        """Bytes of everything that is stored of the samples."""
        return sum(column.nbytes for column in self._columns)

    def sample(self, n: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """(x, y, ...) of min(n, len) different samples, drawn uniformly."""
        return self.at(torch.randperm(len(self), generator=generator)[:n])

    def at(self, index: Tensor) -> tuple[Tensor, ...]:
        """(x, y, ...) of the samples at the places `index` (n,)."""
        return tuple(gather(column, sent(index, column.device)) for column in self._columns)

    def state(self) -> State:
        """Everything that it holds, for `torch.save`."""
        return {"seen": self.seen, "columns": list(self._columns)}

    def restore(self, state: State) -> None:
        """Take over what `state` returned."""
        self.seen, self._columns = state["seen"], tuple(state["columns"])

    def _keep(self, chosen: Tensor, columns: tuple[Tensor, ...]) -> None:
        """Hold the `chosen` of old and new samples: increasing positions, new ones counted on after the old ones."""
        before = len(self)
        old, new = chosen[chosen < before], chosen[chosen >= before] - before
        if self._columns and not len(new) and len(old) == before:
            return  # nothing goes and nothing comes: no copy of all of it
        kept = tuple(gather(column, sent(new, column.device)) for column in columns)
        if self._columns:
            pairs = zip(self._columns, kept, strict=True)
            kept = tuple(torch.cat([sent(gather(a, sent(old, a.device)), b.device), b]) for a, b in pairs)
        self._columns = kept


class ReservoirMemory(Memory):
    """At any time a uniform random subset of all that were ever added.

    Each sample draws one uniform key when it arrives, and those with the largest keys stay: equivalent to reservoir
    sampling (Vitter 1985, algorithm R), and it takes a whole round at once.

    in_place: what comes takes the places of what goes, which costs a few samples at a time little; the order of arrival
    is lost.
    """

    def __init__(self, capacity: int, *, in_place: bool = False) -> None:
        super().__init__(capacity)
        self.in_place = in_place
        self._keys = torch.empty(0, dtype=torch.float64)
        self._least: float | None = None  # of the keys; None: not looked for

    def add(
        self, x: Tensor | NDArray[Any], y: Tensor | NDArray[Any], generator: torch.Generator, *more: Tensor
    ) -> None:
        """Offer samples x (N, ...) with labels y (N,) and further columns (N, ...), tensors or arrays.

        `generator` (on the CPU) draws their keys.
        """
        x, y = torch.as_tensor(x), torch.as_tensor(y)
        self.seen += len(y)
        drawn = torch.rand(len(y), dtype=torch.float64, generator=generator)
        if self._none_stays(drawn):
            return
        self._least = None
        keys = torch.cat([self._keys, drawn])
        chosen = keys.topk(min(self.capacity, len(keys))).indices.sort().values
        if self.in_place and self._columns and len(self) == self.capacity:
            self._replace(chosen, keys, (x, y, *more))
            return
        self._keep(chosen, (x, y, *more))
        self._keys = keys[chosen]

    def _none_stays(self, drawn: Tensor) -> bool:
        """Whether all of these keys are below those that are kept, as mostly late in a stream: the quick answer."""
        if not len(self) or len(self) < self.capacity or not len(drawn):
            return False
        if self._least is None:
            self._least = float(self._keys.min())
        return float(drawn.max()) < self._least

    def _replace(self, chosen: Tensor, keys: Tensor, columns: tuple[Tensor, ...]) -> None:
        """Hold the `chosen` of old and new samples, new ones in the places of the old ones that go."""
        before = len(self)
        come = chosen[chosen >= before]
        goes = torch.ones(before, dtype=torch.bool)
        goes[chosen[chosen < before]] = False
        places = goes.nonzero()[:, 0]
        for kept, column in zip(self._columns, columns, strict=True):
            new = sent(gather(column, sent(come - before, column.device)), kept.device)
            kept.index_copy_(0, sent(places, kept.device), new)
        self._keys[places] = keys[come]

    def state(self) -> State:
        return {**super().state(), "keys": self._keys}

    def restore(self, state: State) -> None:
        super().restore(state)
        self._keys, self._least = state["keys"], None


class PerRoundMemory:
    """At most `samples_per_round` samples of each round, a uniform random subset of it (GEM)."""

    def __init__(self, samples_per_round: int) -> None:
        ReservoirMemory(samples_per_round)  # refuses what can't be a number of samples
        self.samples_per_round = int(samples_per_round)
        self.parts: list[ReservoirMemory] = []  # one per round

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def nbytes(self) -> int:
        """Bytes of the stored samples and labels."""
        return sum(part.nbytes for part in self.parts)

    def add(self, x: Tensor, y: Tensor, generator: torch.Generator, *more: Tensor) -> None:
        """Choose from the samples x (N, ...) with labels y (N,) and further columns (N, ...) of one round."""
        part = ReservoirMemory(self.samples_per_round)
        part.add(x, y, generator, *more)
        self.parts.append(part)

    def sample(self, n: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """(x, y, ...) of min(n, len) different samples of all rounds, drawn uniformly."""
        return self.at(torch.randperm(len(self), generator=generator)[:n])

    def at(self, index: Tensor) -> tuple[Tensor, ...]:
        """(x, y, ...) of the samples at the places `index` (n,), counted over all rounds."""
        columns = (torch.cat(column) for column in zip(*(part.columns for part in self.parts), strict=True))
        return tuple(gather(column, sent(index, column.device)) for column in columns)

    def state(self) -> list[State]:
        """Everything that it holds, for `torch.save`."""
        return [part.state() for part in self.parts]

    def restore(self, state: list[State]) -> None:
        """Take over what `state` returned."""
        self.parts = [ReservoirMemory(self.samples_per_round) for _ in state]
        for part, kept in zip(self.parts, state, strict=True):
            part.restore(kept)
