"""A low-rank change of the keys and values of torch's attention, and the inputs that these see."""

import torch
from torch import nn
from torch.nn.utils import parametrize


class KeyValueChange(nn.Module):
    """The packed projection W (3D, D) of nn.MultiheadAttention plus [0; A B]: queries stay as they are.

    A: (2D, r) parameter. B: (r, D), M: (D, D), a basis in its first columns, `merged` (2D, D), the sum of the A B of
    earlier rounds, are buffers: they are saved with the network.
    """

    def __init__(self, width, rank):
        super().__init__()
        self.A = nn.Parameter(torch.zeros(2 * width, rank))
        self.register_buffer("B", torch.zeros(rank, width))
        self.register_buffer("M", torch.zeros(width, width))
        self.register_buffer("merged", torch.zeros(2 * width, width))

    @classmethod
    def of(cls, layer, rank):
        """One that changes the attention `layer`."""
        change = cls(layer.embed_dim, min(rank, layer.embed_dim))
        parametrize.register_parametrization(layer, "in_proj_weight", change, unsafe=True)
        return change

    def forward(self, weight):
        queries, rest = weight.split([weight.shape[1], 2 * weight.shape[1]])
        return torch.cat([queries, rest + self.merged + self.A @ self.B])

    def residual(self, moment):
        """(U, S) of (I - M M') C, the largest first; C (D, D) is sum h h'."""
        M = self.M.double()
        C = moment.to(M)
        U, S, _ = torch.linalg.svd(C - M @ (M.T @ C))
        return U, S

    @torch.no_grad()
    def aim(self, moment):
        """Choose B for the inputs of a round, with sum h h' `moment`; A begins at 0."""
        self.B.copy_(self.residual(moment)[0][:, : len(self.B)].T / 3**0.5)
        self.A.zero_()

    @torch.no_grad()
    def merge(self, moment, share):
        """Add A B for good, and to M as many directions as make it hold that share of |C|^2."""
        self.merged += self.A @ self.B
        self.A.zero_()
        U, S = self.residual(moment)
        total = moment.to(S).square().sum()
        outside = S.square().sum() - torch.cat([S.new_zeros(1), S.square().cumsum(0)])  # after 0, 1, ... of them
        enough = total - outside >= share * total
        used = int((self.M.square().sum(0) > 0.5).sum())
        new = int(enough.nonzero()[0, 0]) if bool(enough.any()) else len(S)
        new = min(new, len(S) - used)
        self.M[:, used : used + new] = U[:, :new].to(self.M)


def attention_inputs(learner, x):
    """[(D, D) float64 sum of h h'] of each attention of the learner's network, over all tokens of raw samples x."""
    layers = list(learner.network[0].body.attentions())
    sums = [torch.zeros(layer.embed_dim, layer.embed_dim, dtype=torch.float64) for layer in layers]

    def adds(total):
        def hook(layer, inputs):
            h = inputs[0].flatten(0, 1).double()
            total.add_((h.T @ h).cpu())

        return hook

    hooks = [layer.register_forward_pre_hook(adds(total)) for layer, total in zip(layers, sums, strict=True)]
    try:
        learner.each(x, learner.network[0])
    finally:
        for hook in hooks:
            hook.remove()
        learner.network.train()
    return sums
