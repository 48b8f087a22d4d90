"""A memory of exemplars: of each class the samples that together come closest to its mean."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ianvs.authoring.memory import Memory
from ianvs.authoring.round_data import gather
from ianvs.base.errors import PluginError

__all__ = ["HerdingMemory", "herding"]


def herding(features: Tensor, n: int) -> Tensor:
    """(min(n, N),) which rows of features (N, D) to take, and in what order (iCaRL; Rebuffi et al. 2017, algorithm 4).

    p_k = argmin_i |mu - (f_i + sum_{j<k} f_{p_j}) / k|, mu the mean of all rows: whatever number is kept of the first
    ones, their mean is close to mu. No row is taken twice; of rows that are equally good, the first.
    """
    features = features.double()
    mean, total = features.mean(0), torch.zeros_like(features[:1])
    taken = torch.zeros(len(features), dtype=torch.bool, device=features.device)
    order: list[int] = []
    for k in range(1, min(n, len(features)) + 1):
        distance = (mean - (total + features) / k).norm(dim=1).masked_fill(taken, torch.inf)
        order.append(int(distance.argmin()))
        taken[order[-1]] = True
        total = total + features[order[-1]]
    return torch.tensor(order, dtype=torch.int64)


class HerdingMemory(Memory):
    """capacity / (number of classes so far) samples of each class, rounded down, in the order of herding.

    When classes are added, the first ones of each class stay (algorithm 5). A class that comes again is chosen anew,
    from what is kept of it and what has come.
    """

    def add(self, x: Tensor, y: Tensor, features: Callable[[Tensor], Tensor], *more: Tensor) -> None:
        """Choose from the samples x (N, ...) with labels y (N,) and further columns (N, ...).

        features: of stored samples (B, ...), (B, D); it is asked again about exemplars of classes that come again.
        Raises PluginError where there are more classes than places.
        """
        self.seen += len(y)
        come, kept = set(y.tolist()), set(self.y.tolist())
        classes = sorted(come | kept)
        if 0 < self.capacity < len(classes):
            raise PluginError(
                f"a memory with a capacity of {self.capacity} can't hold an exemplar of each of {len(classes)} classes."
            )
        parts: list[tuple[Tensor, ...]] = []
        for c in classes:
            part = self._of(c, self._columns) if c in kept else ()
            new = self._of(c, (x, y, *more)) if c in come else ()
            if part and new:
                part = tuple(torch.cat([a.to(b.device), b]) for a, b in zip(part, new, strict=True))
            part = part or new
            n = self.capacity // len(classes)
            order = herding(features(part[0]), n) if c in come else torch.arange(min(n, len(part[0])))
            parts.append(tuple(gather(column, order.to(column.device)) for column in part))
        if parts:
            place = parts[-1][0].device
            self._columns = tuple(torch.cat([c.to(place) for c in column]) for column in zip(*parts, strict=True))

    @staticmethod
    def _of(label: int, columns: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        index = (columns[1] == label).nonzero()[:, 0]
        return tuple(gather(column, index.to(column.device)) for column in columns)
