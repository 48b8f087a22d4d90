"""Naive statements that several methods share: memories, written out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Reservoir:
    """Those of all that were offered whose random keys are the largest: a uniform subset (Vitter 1985).

    Mammoth 7ab9db9, utils/buffer.py:12-28, draws a place for each sample instead; test_memories.py beside this compares
    the two in distribution. in_place: what comes takes the places of what goes, else it stands behind.
    """

    def __init__(self, capacity: int, *, in_place: bool = False) -> None:
        self.capacity, self.in_place, self.rows = capacity, in_place, []  # rows: (key, columns of one sample)

    def __len__(self) -> int:
        return len(self.rows)

    def offer(self, draws: torch.Generator, *columns: Tensor) -> None:
        keys = torch.rand(len(columns[0]), dtype=torch.float64, generator=draws).tolist()
        new = [(key, tuple(c[i].clone() for c in columns)) for i, key in enumerate(keys)]
        least = sorted((key for key, _ in self.rows + new), reverse=True)[: self.capacity][-1]
        come = [row for row in new if row[0] >= least]
        if self.in_place and len(self.rows) == self.capacity:
            self.rows = [row if row[0] >= least else come.pop(0) for row in self.rows]
        else:
            self.rows = [row for row in self.rows if row[0] >= least] + come

    @property
    def columns(self) -> list[Tensor]:
        return [torch.stack(column) for column in zip(*(c for _, c in self.rows), strict=True)]

    def drawn(self, n: int, draws: torch.Generator) -> Any:
        """Columns of n different ones, or of all where there are fewer."""
        some = torch.randperm(len(self.rows), generator=draws)[:n]
        return [column[some] for column in self.columns]


class Balanced(Reservoir):
    """Prabhu et al. 2020, algorithm 1: a sample is kept if its class has less than an even share of the capacity; one
    of the class that has most makes room. Of several such, the class that stands first when the round comes.
    """

    def offer(self, draws, *columns):
        x, y = columns
        classes = list(dict.fromkeys(int(label) for _, (_, label) in self.rows))
        for i, label in enumerate(y.tolist()):
            classes += [label] * (label not in classes)
            labels = [int(kept) for _, (_, kept) in self.rows]
            if label in labels and labels.count(label) >= self.capacity / len(classes):
                continue
            if len(self.rows) == self.capacity:
                fullest = max(classes, key=labels.count)
                places = [place for place, kept in enumerate(labels) if kept == fullest]
                self.rows.pop(places[int(torch.randint(len(places), (1,), generator=draws))])
            self.rows.append((0, (x[i].clone(), y[i].clone())))


class PerRound(Reservoir):
    """A reservoir of `capacity` samples for each round."""

    def __init__(self, capacity):
        super().__init__(capacity)
        self.parts = []

    def offer(self, draws, *columns):
        part = Reservoir(self.capacity)
        part.offer(draws, *columns)
        self.parts.append(part)
        self.rows = [row for some in self.parts for row in some.rows]
