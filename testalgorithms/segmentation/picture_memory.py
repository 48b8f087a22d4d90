"""A memory of images with labels, with equal shares for domains."""

from typing import Any

import torch
from torch import Tensor

from ianvs.authoring import ReservoirMemory


class DomainMemory:
    """At most `capacity` images, as many of each domain: a uniform random subset of what the domain had.

    When a domain comes, the others give up images drawn at random. Labels are outputs of the domain's head.
    """

    def __init__(self, capacity: int) -> None:
        ReservoirMemory(capacity)  # raises an error for an invalid capacity
        self.capacity = int(capacity)
        self.parts: dict[int, ReservoirMemory] = {}  # by domain
        self.weights: dict[int, Tensor] = {}  # of the classes, in the domain's whole data

    def __len__(self) -> int:
        return sum(map(len, self.parts.values()))

    @property
    def nbytes(self) -> int:
        """Bytes of the images and their labels."""
        return sum(part.nbytes for part in self.parts.values())

    def add(self, domain: int, x: Tensor, y: Tensor, weights: Tensor, generator: torch.Generator) -> None:
        """Offer images x (N, 3, H, W) with labels y (N, H, W) of `domain`; stored ones are copied."""
        self.parts.setdefault(domain, ReservoirMemory(0))
        self.weights[domain] = weights
        for d, part in self.parts.items():
            part.capacity = self.capacity // len(self.parts)
            if d == domain:
                part.add(x, y, generator)
            else:
                part.add(part.x[:0], part.y[:0], generator)  # those that still fit

    def state(self) -> dict[str, Any]:
        """Return the whole state, for `torch.save`."""
        parts = {domain: part.state() | {"capacity": part.capacity} for domain, part in self.parts.items()}
        return {"parts": parts, "weights": self.weights}

    def restore(self, state: dict[str, Any]) -> None:
        """Load the result of `state`."""
        self.weights = dict(state["weights"])
        self.parts = {domain: ReservoirMemory(part["capacity"]) for domain, part in state["parts"].items()}
        for domain, part in self.parts.items():
            part.restore(state["parts"][domain])
