"""Memory aware synapses."""

import torch
from torch.func import functional_call, grad, vmap

from ianvs.authoring import Anchor, TorchLearner, flat_parameters


class MAS(TorchLearner):
    """Memory aware synapses (Aljundi et al. 2018, arXiv 1711.09601).

    L(theta) = L_new(theta) + strength * sum_i Omega_i (theta_i - theta*_i)^2, theta* after the round before;
    Omega_i = sum over earlier rounds of the mean over their samples of |d |F(x; theta)|^2 / dtheta_i|, F the outputs
    for classes seen. It needs no labels: what the network says shall stay as it is, right or wrong.

    samples: of a round that are looked at, drawn at random; None for all.
    """

    memory = ()  # it keeps no samples

    def __init__(self, *, strength: float = 0.01, samples: int | None = None, **training):
        super().__init__(**training)
        self.strength, self.samples, self.anchor = strength, samples, None

    def before_round(self, data):
        self.anchor = self.anchor and self.anchor.to(data.device)

    def loss(self, batch):
        loss = super().loss(batch)
        if self.anchor is None:
            return loss
        return loss + self.strength * self.anchor.distance(flat_parameters(self.network))

    def after_round(self, data):
        data = data.some(self.samples, data.generator("importance"))
        if len(data):
            omega = self.importance(data) + (0.0 if self.anchor is None else self.anchor.fisher)
            self.anchor = Anchor.from_network(self.network, omega)

    def importance(self, data):
        """(P,) the mean over samples of |d |F(x)|^2 / dtheta|."""
        parameters = {name: p.detach() for name, p in self.network.named_parameters() if p.requires_grad}
        seen = 1.0 if data.mask is None else (data.mask == 0).float()
        size = max(1, min(256, 2**24 // sum(p.numel() for p in parameters.values())))  # 64 MiB of gradients at once

        def squared_length(parameters, x):
            return (functional_call(self.network, parameters, (x[None],)) * seen).square().sum()

        self.network.eval()
        total = 0.0
        for x, _ in data.batches(size):
            slopes = vmap(grad(squared_length), in_dims=(None, 0))(parameters, x).values()
            total = total + torch.cat([slope.abs().sum(0).reshape(-1) for slope in slopes])
        return total / len(data)

    def state(self):
        return {"anchor": self.anchor and self.anchor.state()}

    def restore(self, state):
        self.anchor = state["anchor"] and Anchor(**state["anchor"])
