"""Prompts that are weighted sums of components."""

from collections.abc import Sequence

import torch
from torch.nn.functional import normalize

from ianvs.base.errors import PluginError
from ianvs.testalgorithms.prompts import PromptLearner, PromptsOfRounds, blocks_of


class CODAPrompt(PromptLearner):
    """CODA-Prompt (Smith et al. 2023, arXiv 2211.13218, eq. 3 to 9).

    A block's prompt is sum_m cos(q(x) * A_m, K_m) P_m: q(x) is the frozen network's feature, * the product number by
    number, P_m a component, K_m its key, A_m its attention. Half of a prompt are keys and half are values, put before
    those of the block's attention. Each round learns components of its own, and the head; those of earlier rounds are
    used and stay. Added to the loss is orthogonality sum mean((B B' - I)^2), over B = P, K and A of each block; L looks
    at the round's own classes alone.

    per_round: new components (paper: 100 in all rounds together). length: of a prompt (paper: 8). blocks: that get one,
    counted from 1 (paper: 1 to 5, here as far as there are such). orthogonality: lambda, for the mean of the authors'
    code (there first 1e-7, then 0, since new components begin orthogonal). rounds: that get components of their own.
    """

    def __init__(
        self,
        *,
        per_round: int = 10,
        length: int = 8,
        blocks: Sequence[int] | None = None,
        orthogonality: float = 0.0,
        rounds: int = 10,
        **training,
    ):
        super().__init__(**{"learning_rate": 0.001, "decay": "cosine", **training})
        if length < 2 or length % 2:
            raise PluginError(
                f"length is of keys and values together, an even number; it can't be {length}.", code="out-of-range"
            )
        self.blocks, self.price, self.sizes = blocks, orthogonality, (per_round, length // 2, rounds)

    def prompted(self, body, features):
        return Decomposed(body, features, blocks_of(body, self.blocks, range(1, 6)), *self.sizes, self.price > 0)


class Decomposed(PromptsOfRounds):
    """A transformer with prefixes that are sums of all components so far, weighted by the sample."""

    def __init__(self, body, features, blocks, per_round, length, rounds, penalised):
        super().__init__(body, rounds)
        self.blocks, self.per_round, self.penalised = blocks, per_round, penalised
        shape = rounds, len(blocks), per_round
        self.add("components", torch.randn(*shape, 2, length, body.width))
        self.add("keys", torch.randn(*shape, features))
        self.add("attention", torch.randn(*shape, features))
        self.start(0)

    @torch.no_grad()
    def start(self, place):
        for name, shape in self.shapes.items():
            values = getattr(self, f"{name}_of_rounds")[: place + 1].unflatten(1, (*shape[:2], -1)).transpose(0, 1)
            new = [orthonormal(block[-1], block[:-1].flatten(0, 1)) for block in values]
            getattr(self, name).copy_(torch.cat(new).flatten())

    def forward(self, x):
        q = self.query(x)
        P, K, A = (self.every(name).transpose(0, 1).flatten(1, 2) for name in self.shapes)  # (blocks, M, ...)
        trained = (torch.arange(self.rounds, device=x.device) <= self.place).repeat_interleave(self.per_round)
        lengths = (q.square() @ A.square().mT).sqrt().clamp_min(1e-12)  # of q * A
        cosines = q @ (A * normalize(K, dim=-1)).mT / lengths  # (blocks, N, M)
        prompts = torch.einsum("bnm,bmsld->bsnld", cosines * trained, P)
        self.cost = sum(off_orthogonal(B.flatten(2), trained) for B in (P, K, A)) if self.penalised else q.new_zeros(())
        return self.frozen.body(x, {block: tuple(pair) for block, pair in zip(self.blocks, prompts, strict=True)})


def orthonormal(new, earlier):
    """(m, D) rows of length 1 out of `new`, each without its projections on `earlier` (n, D) and on those before it.

    Of rows after D others nothing would be left: they keep their direction.
    """
    rows = [*earlier]
    for row in new:
        if rows and len(rows) < len(row):
            before = torch.stack(rows)
            row = row - (before @ row / before.square().sum(1)) @ before
        rows.append(row / row.norm())
    return torch.stack(rows[len(earlier) :])


def off_orthogonal(B, rows):
    """sum over blocks of mean((B B' - I)^2), of those `rows` (M,) of B (blocks, M, D)."""
    B = B * rows[:, None]
    return (B @ B.mT - rows.to(B).diag()).square().sum() / rows.sum().square()
