"""Fisher information and the quadratic penalty that anchors weights where they were."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from ianvs.authoring.networks import flat_parameters

__all__ = ["Anchor", "fisher_diagonal", "with_anchor"]

CHUNK = 256  # samples whose gradients are held at once, fewer for networks of more than 2^16 parameters
GRADIENTS = CHUNK * 2**16  # numbers, 64 MiB


def fisher_diagonal(network: nn.Module, batches: Iterable[tuple[Tensor, Tensor]], mask: Tensor | None = None) -> Tensor:
    """(P,) mean over samples of the squared gradient of -log p(y | x), in the order of `flat_parameters`.

    The label is the sample's own ("empirical" Fisher; the true one would take the mean over labels drawn from the
    model). Each sample's gradient is squared by itself: the square of a batch's mean gradient is another, smaller
    quantity. The network is in evaluation mode, so that batch normalisation does not mix samples.

    batches: (x (B, ...), y (B,)), ready for the network. mask: (C,) added to logits, None for nothing.
    """

    def negative_log_likelihood(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        logits: Tensor = functional_call(network, parameters, (x.unsqueeze(0),))
        return cross_entropy(logits if mask is None else logits + mask, y.unsqueeze(0))

    parameters = {name: p.detach() for name, p in network.named_parameters() if p.requires_grad}
    gradients = vmap(grad(negative_log_likelihood), in_dims=(None, 0, 0))
    size = sum(p.numel() for p in parameters.values())
    chunk = max(1, min(CHUNK, GRADIENTS // max(size, 1)))
    total, count = torch.zeros_like(flat_parameters(network)).detach(), 0
    was_training = network.training
    network.eval()
    try:
        for x, y in batches:
            for some_x, some_y in zip(torch.split(x, chunk), torch.split(y, chunk), strict=True):
                squares = [g.square().sum(0).reshape(-1) for g in gradients(parameters, some_x, some_y).values()]
                total += torch.cat(squares)
            count += len(y)
    finally:
        network.train(was_training)
    return total / max(count, 1)


@dataclass(frozen=True)
class Anchor:
    """A quadratic well around earlier weights. theta: (P,) where it is, fisher: (P,) how steep, per weight."""

    theta: Tensor
    fisher: Tensor

    @classmethod
    def of(cls, network: nn.Module, fisher: Tensor) -> Anchor:
        """An anchor at the network's present weights."""
        return cls(flat_parameters(network).detach().clone(), fisher)

    def distance(self, theta: Tensor) -> Tensor:
        """sum_i F_i (theta_i - theta*_i)^2, a scalar; theta: (P,) as from `flat_parameters`."""
        return (self.fisher * (theta - self.theta) ** 2).sum()

    def to(self, device: torch.device) -> Anchor:
        """The same on another device."""
        return Anchor(self.theta.to(device), self.fisher.to(device))

    def state(self) -> dict[str, Tensor]:
        """What `torch.save` keeps."""
        return {"theta": self.theta, "fisher": self.fisher}


def with_anchor(anchors: Sequence[Anchor], new: Anchor, gamma: float | None) -> list[Anchor]:
    """The anchors after another round: all of them (Kirkpatrick et al. 2017), or with `gamma` a single one.

    gamma: 0 to 1; the one stands at the latest weights, with F <- gamma F + F_new (online EWC; Schwarz et al. 2018,
    section 4).
    """
    if gamma is None:
        return [*anchors, new]
    past = gamma * anchors[0].fisher if anchors else 0.0
    return [Anchor(new.theta, past + new.fisher)]
