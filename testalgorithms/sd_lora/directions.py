"""Low-rank changes of a transformer, of which each round adds one and all have a magnitude of their own."""

import torch
from torch import nn
from torch.nn.utils import parametrize


class Directions(nn.Module):
    """W[rows] + sum_(i < t) a_i B_i A_i / (|B_i| |A_i|) + a_t B A: a weight (out, in) that is parametrised.

    A: (r, in), B: (out, r), parameters of round t, B = 0 at first. earlier_A: (t - 1, r, in), earlier_B:
    (t - 1, out, r), of length 1 each, are buffers. a (t,) is the weight of `magnitudes`, the same for all weights.
    """

    def __init__(self, weight, rows, rank, magnitudes):
        super().__init__()
        self.rows, self._shared = rows, (magnitudes,)  # in a tuple: it is not a part of this module
        outputs, inputs = weight[rows].shape
        earlier = len(magnitudes.weight) - 1
        self.A, self.B = nn.Parameter(torch.empty(rank, inputs)), nn.Parameter(torch.empty(outputs, rank))
        self.register_buffer("earlier_A", torch.zeros(earlier, rank, inputs))
        self.register_buffer("earlier_B", torch.zeros(earlier, outputs, rank))
        self.begin()

    @torch.no_grad()
    def begin(self):
        """A is drawn, B is 0."""
        nn.init.kaiming_uniform_(self.A, a=5**0.5)
        self.B.zero_()

    @torch.no_grad()
    def keep(self):
        """What was learned becomes a direction of an earlier round."""
        for name, part in (("earlier_A", self.A), ("earlier_B", self.B)):
            setattr(self, name, torch.cat([getattr(self, name), (part / part.norm().clamp_min(1e-12))[None]]))
        self.begin()

    def forward(self, weight):
        a = self._shared[0].weight
        change = a[-1] * (self.B @ self.A)
        if len(self.earlier_A):
            scaled = (a[:-1, None, None] * self.earlier_B).transpose(0, 1).flatten(1)  # (out, (t - 1) r)
            change = change + scaled @ self.earlier_A.flatten(0, 1)
        start, stop, _ = self.rows.indices(len(weight))
        return torch.cat([weight[:start], weight[start:stop] + change, weight[stop:]])


class Magnitudes(nn.Module):
    """a (t,), which begin at `first` in each round."""

    def __init__(self, rounds, first):
        super().__init__()
        self.weight = nn.Parameter(torch.full((rounds,), first))


class Decoupled(nn.Module):
    """(N, C, H, W) -> (N, F): a frozen transformer whose queries and values have `Directions`, for `rounds` rounds."""

    def __init__(self, frozen, rank, first, rounds):
        super().__init__()
        self.frozen, self.magnitudes, self.first = frozen, Magnitudes(rounds, first), first
        for block in frozen.body.blocks:
            for which in ("query", "value"):
                module, name, rows = block.weight_location(which)
                change = Directions(getattr(module, name), rows or slice(None), rank, self.magnitudes)
                parametrize.register_parametrization(module, name, change, unsafe=True)
                module.parametrizations[name].original.requires_grad_(False)

    def changes(self):
        """All `Directions`, from the first block to the last."""
        return [part for part in self.frozen.modules() if isinstance(part, Directions)]

    def add_round(self):
        """New directions beside those so far; all magnitudes begin anew."""
        old = self.magnitudes.weight
        self.magnitudes.weight = nn.Parameter(old.new_full((len(old) + 1,), self.first))
        for change in self.changes():
            change.keep()

    def forward(self, x):
        return self.frozen(x)
