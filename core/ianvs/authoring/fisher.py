"""Fisher information and the quadratic penalty that anchors weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from ianvs.authoring.networks import flat_parameters
from ianvs.authoring.sample_gradients import LayerSquares
from ianvs.base.errors import require_known
from ianvs.base.former_names import former_names

FISHERS = ("empirical", "exact", "sampled", "batch", "weighted")
CHUNK = 256  # samples whose gradients are held at once, fewer for networks of more than 2^16 parameters
GRADIENTS = CHUNK * 2**16  # numbers, 64 MiB


def fisher_diagonal(
    network: nn.Module,
    batches: Iterable[tuple[Tensor, Tensor]],
    mask: Tensor | None = None,
    *,
    kind: str = "empirical",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Return the mean over samples of the squared gradient of -log p(label | x).

    For all kinds but "batch" each sample's gradient is squared separately, layer by layer where that is equivalent
    (`LayerSquares`). The network is in evaluation mode, so batch normalisation does not mix samples.

    Args:
        network: The network.
        batches: (x (B, ...), y (B,)), ready for the network.
        mask: (C,) added to logits; None: no mask.
        kind: Which label (Kunstner et al. 2019, eq. 2 and 3; van de Ven 2025, arXiv 2502.11756, compares them).
            "empirical": the sample's own. "exact": each class, weighted by its predicted probability. This is the
            Fisher information, and takes a backward pass for each class. "sampled": one drawn from the predicted
            distribution, an estimate of the exact one. "batch": the sample's own, but the mean gradient of a batch is
            squared. This is another quantity, smaller by up to the batch size, and faster. "weighted": the sample's
            own, weighted by its predicted probability, one term of the exact one (Buzzega et al. 2020, the code of
            their oEWC).
        generator: Draws the labels of "sampled", on the CPU.

    Returns:
        (P,) in the order of `flat_parameters`.
    """
    require_known("fisher", kind, FISHERS)
    parameters = {name: p.detach() for name, p in network.named_parameters() if p.requires_grad}
    find = _Squares(network, parameters, mask)
    total, count = torch.zeros_like(flat_parameters(network)).detach(), 0
    was_training = network.training
    network.eval()
    try:
        for x, y in batches:
            count += len(y)
            if kind == "batch":
                total += len(y) * find.of_the_mean(x, y)
                continue
            labels, weights = y[:, None], x.new_ones(len(y), 1)
            if kind != "empirical":
                shares = find.logits(parameters, x).softmax(1).detach()
            if kind == "exact":
                classes = (shares > 0).any(0).nonzero()[:, 0]  # the others are masked
                labels, weights = classes.expand(len(x), -1), shares[:, classes]
            elif kind == "weighted":
                weights = shares.gather(1, labels)
            elif kind == "sampled":
                labels = torch.multinomial(shares.cpu(), 1, generator=generator).to(x.device)
            find.add(x, labels, weights, total)
    finally:
        network.train(was_training)
    return total / max(count, 1)


class _Squares:
    """Sums of squared gradients over samples, a chunk at a time: layer by layer if all layers are supported."""

    def __init__(self, network: nn.Module, parameters: dict[str, Tensor], mask: Tensor | None) -> None:
        self.network, self.parameters, self.mask = network, parameters, mask
        self.chunk = max(1, min(CHUNK, GRADIENTS // max(sum(p.numel() for p in parameters.values()), 1)))
        layers = LayerSquares(network)
        self.layers = layers if layers.supported else None
        self.tried = False

    def logits(self, parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        outputs: Tensor = functional_call(self.network, parameters, (x,))
        return outputs if self.mask is None else outputs + self.mask

    def loss(self, parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(self.logits(parameters, x.unsqueeze(0)), y.unsqueeze(0))

    def add(self, x: Tensor, labels: Tensor, weights: Tensor, total: Tensor) -> None:
        """Add to total (P,) the squared gradients of samples x for labels (B, L), times their weights (B, L)."""
        if self.layers is not None and not self.tried:
            self.tried = True
            if not self.layers_do(x[:2], labels[:2], weights[:2], torch.zeros_like(total)):
                self.layers = None
        for part in (slice(begin, begin + CHUNK) for begin in range(0, len(x), CHUNK)):
            if self.layers is None or not self.by_layer(x[part], labels[part], weights[part], total):
                self.by_sample(x[part], labels[part], weights[part], total)

    def layers_do(self, x: Tensor, labels: Tensor, weights: Tensor, zero: Tensor) -> bool:
        """Return whether `by_layer` equals `by_sample`. It does not if a layer's weight is also used elsewhere."""
        squares, expected = zero.clone(), zero
        for n in range(len(x)):  # not `by_sample`: the first vmap imports torch's compiler, more than a second
            for y, share in zip(labels[n], weights[n], strict=True):
                expected += share * self.of_the_mean(x[n : n + 1], y[None])
        done = self.by_layer(x, labels, weights, squares)
        return done and torch.allclose(squares, expected, rtol=1e-3, atol=1e-4 * float(expected.max()))

    def by_layer(self, x: Tensor, labels: Tensor, weights: Tensor, total: Tensor) -> bool:
        """`add` with one backward pass for each label. Returns False if a layer is not supported."""

        def losses(outputs: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
            logits = outputs if self.mask is None else outputs + self.mask
            for y, share in zip(labels.T, weights.T, strict=True):
                yield cross_entropy(logits, y, reduction="sum"), share

        return self.layers is not None and self.layers.add(x, losses, total)

    def by_sample(self, x: Tensor, labels: Tensor, weights: Tensor, total: Tensor) -> None:
        """`add` for any network, with the gradients of some samples in memory at once."""
        gradients = vmap(grad(self.loss), in_dims=(None, 0, 0))
        for part in (slice(begin, begin + self.chunk) for begin in range(0, len(x), self.chunk)):
            for y, share in zip(labels[part].T, weights[part].T, strict=True):
                squares = [g.square() for g in gradients(self.parameters, x[part], y).values()]
                total += torch.cat([torch.einsum("n...,n->...", s, share.to(s.dtype)).reshape(-1) for s in squares])

    def of_the_mean(self, x: Tensor, y: Tensor) -> Tensor:
        """Return (P,) the squared gradient of the mean over the batch."""
        with torch.enable_grad():
            parameters = {name: p.detach().requires_grad_() for name, p in self.parameters.items()}
            loss = cross_entropy(self.logits(parameters, x), y)
            gradients = torch.autograd.grad(loss, list(parameters.values()), materialize_grads=True)
        return torch.cat([g.square().reshape(-1) for g in gradients])


@former_names(of="from_network")
@dataclass(frozen=True)
class Anchor:
    """A quadratic penalty around earlier weights.

    Attributes:
        theta: (P,) the weights.
        fisher: (P,) the importance of each.
    """

    theta: Tensor
    fisher: Tensor

    @classmethod
    def from_network(cls, network: nn.Module, fisher: Tensor) -> Anchor:
        """Return an anchor at the network's current weights."""
        return cls(flat_parameters(network).detach().clone(), fisher)

    def distance(self, theta: Tensor) -> Tensor:
        """Return sum_i F_i (theta_i - theta*_i)^2, a scalar; theta: (P,) as from `flat_parameters`."""
        return (self.fisher * (theta - self.theta) ** 2).sum()

    def to(self, device: torch.device) -> Anchor:
        """Return the same anchor on another device."""
        return Anchor(self.theta.to(device), self.fisher.to(device))

    def state(self) -> dict[str, Tensor]:
        """Return the state, for `torch.save`."""
        return {"theta": self.theta, "fisher": self.fisher}


def with_anchor(anchors: Sequence[Anchor], new: Anchor, gamma: float | None) -> list[Anchor]:
    """Return the anchors after another round.

    Args:
        anchors: Those so far.
        new: That of the round.
        gamma: None: all anchors are kept (Kirkpatrick et al. 2017). 0 to 1: a single anchor at the latest weights, with
            F <- gamma F + F_new (online EWC; Schwarz et al. 2018, section 4).
    """
    if gamma is None:
        return [*anchors, new]
    past = gamma * anchors[0].fisher if anchors else 0.0
    return [Anchor(new.theta, past + new.fisher)]
