"""A low-rank change of the keys and values of a transformer's attentions, and the inputs that these see."""

import torch
from torch import nn
from torch.nn.utils import parametrize


class KeyValueChange(nn.Module):
    """W + merged + A B for the keys' and values' projections [W_k; W_v] (2D, D) of an attention.

    A: (2D, r) parameter. B: (r, D), M: (D, D), a basis in its first columns, `merged` (2D, D), the sum of the A B of
    earlier rounds, are buffers: they are saved with the network.
    """

    def __init__(self, width, rank):
        super().__init__()
        self.A = nn.Parameter(torch.zeros(2 * width, rank))
        self.register_buffer("B", torch.zeros(rank, width))
        self.register_buffer("M", torch.zeros(width, width))
        self.register_buffer("merged", torch.zeros(2 * width, width))

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


class Half(nn.Module):
    """W[rows] + the `half`, slice, of a `KeyValueChange`: parametrises the keys or the values."""

    def __init__(self, change, half, rows):
        super().__init__()
        self._change, self.half, self.rows = (change,), half, rows  # in a tuple: it is not a part of this module

    def forward(self, weight):
        change = self._change[0]
        start, stop, _ = self.rows.indices(len(weight))
        moved = weight[start:stop] + change.merged[self.half] + change.A[self.half] @ change.B
        return torch.cat([weight[:start], moved, weight[stop:]])


class Changed(nn.Module):
    """(N, C, H, W) -> (N, F): a frozen transformer with such a change in every block."""

    def __init__(self, frozen, rank):
        super().__init__()
        self.frozen, width = frozen, frozen.body.width
        self.changes = nn.ModuleList(KeyValueChange(width, min(rank, width)) for _ in frozen.body.blocks)
        for block, change in zip(frozen.body.blocks, self.changes, strict=True):
            for which, half in (("key", slice(0, width)), ("value", slice(width, None))):
                module, name, rows = block.weight_location(which)
                half = Half(change, half, rows or slice(None))
                parametrize.register_parametrization(module, name, half, unsafe=True)
                module.parametrizations[name].original.requires_grad_(False)

    def forward(self, x):
        return self.frozen(x)


def attention_inputs(learner, x):
    """[(D, D) float64 sum of h h'] of each attention of the learner's network, over all tokens of raw samples x."""
    transformer = learner.network[0].frozen.body
    sums = [torch.zeros(transformer.width, transformer.width, dtype=torch.float64) for _ in transformer.blocks]

    def add(part):
        for total, h in zip(sums, transformer.attention_inputs(transformer.tokens(part)), strict=True):
            h = h.flatten(0, 1).double()
            total.add_((h.T @ h).cpu())
        return part.new_zeros(len(part))

    learner.each(x, add)
    learner.network.train()
    return sums
