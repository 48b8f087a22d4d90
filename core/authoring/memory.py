"""A memory of old samples with a budget."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from core.authoring.rounds import gather
from core.errors import PluginError

__all__ = ["ReservoirMemory"]


class ReservoirMemory:
    """At most `capacity` samples, at any time a uniform random subset of all that were ever added.

    Each sample draws one uniform key when it arrives, and those with the largest keys stay: equivalent to reservoir
    sampling (Vitter 1985, algorithm R), and it takes a whole round at once. Samples stay in the order of arrival.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 0:
            raise PluginError(f"the capacity of a memory is a number of samples, 0 or more; it can't be {capacity}.")
        self.capacity = int(capacity)
        self.seen = 0  # samples that were ever added
        self._x: Tensor | None = None
        self._y: Tensor | None = None
        self._keys = torch.empty(0, dtype=torch.float64)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def x(self) -> Tensor:
        """(len, ...) stored samples, as they were added."""
        return torch.empty(0) if self._x is None else self._x

    @property
    def y(self) -> Tensor:
        """(len,) their labels."""
        return torch.empty(0, dtype=torch.int64) if self._y is None else self._y

    @property
    def nbytes(self) -> int:
        """Bytes of the stored samples and labels."""
        return self.x.nbytes + self.y.nbytes

    def add(self, x: Any, y: Any, generator: torch.Generator) -> None:
        """Offer samples x (N, ...) with labels y (N,), tensors or arrays; `generator` (on the CPU) draws their keys."""
        x, y = torch.as_tensor(x), torch.as_tensor(y)
        self.seen += len(y)
        keys = torch.cat([self._keys, torch.rand(len(y), dtype=torch.float64, generator=generator)])
        kept = keys.topk(min(self.capacity, len(keys))).indices.sort().values
        old, new = kept[kept < len(self)], kept[kept >= len(self)] - len(self)
        x, y = gather(x, new.to(x.device)), y.index_select(0, new.to(y.device))
        if self._x is not None and self._y is not None:
            x = torch.cat([gather(self._x, old.to(self._x.device)).to(x.device), x])
            y = torch.cat([self._y.index_select(0, old.to(self._y.device)).to(y.device), y])
        self._x, self._y, self._keys = x, y, keys[kept]

    def sample(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """(x, y) of min(n, len) different samples, drawn uniformly."""
        index = torch.randperm(len(self), generator=generator)[:n]
        return gather(self.x, index.to(self.x.device)), self.y.index_select(0, index.to(self.y.device))

    def state(self) -> dict[str, Any]:
        """Everything that it holds, for `torch.save`."""
        return {"seen": self.seen, "x": self._x, "y": self._y, "keys": self._keys}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        self.seen, self._x, self._y, self._keys = state["seen"], state["x"], state["y"], state["keys"]
