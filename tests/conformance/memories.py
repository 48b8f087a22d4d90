"""More memories, written out: the methods that use them are held against these."""

import torch

from tests.conformance.statements import Reservoir


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
