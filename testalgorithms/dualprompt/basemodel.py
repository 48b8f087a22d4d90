"""Prompts of all rounds and prompts of each."""

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn.functional import normalize

from ianvs.base.errors import PluginError
from ianvs.testalgorithms.prompts import PromptLearner, PromptsOfRounds, blocks_of


class DualPrompt(PromptLearner):
    """DualPrompt (Wang et al. 2022, arXiv 2204.04799, eq. 2 to 6), with prefixes.

    min over G-prompts g, a round's E-prompts e_t and key k_t and the head of L(f(x; g, e_t), y) + pull d(q(x), k_t): g
    is of all rounds, e_t begins as e_{t-1} ended; q(x) is the frozen network's feature, d the cosine distance. In
    testing, a sample gets the e_t of the nearest key. A prompt of length l is l keys and l values, put before those of
    a block's attention. L looks at the round's own classes alone, as the authors' code does.

    general, expert: blocks that get G- and E-prompts, counted from 1 (paper: 1 and 2; 3 to 5, here as far as there are
    such). general_length, length: l of each (code: 5 and 5; on ImageNet-R 5 and 20). pull: lambda (code: 1). rounds:
    those that get E-prompts of their own. between: bounds of the first prompts and keys, as in L2P.
    """

    head_from_zero = True  # as in the authors' code, models/vit.py

    def __init__(
        self,
        *,
        general: Sequence[int] | None = None,
        expert: Sequence[int] | None = None,
        general_length: int = 5,
        length: int = 5,
        pull: float = 1.0,
        rounds: int = 10,
        between: Sequence[float] = (-1.0, 1.0),
        **training,
    ):
        super().__init__(**{"learning_rate": 0.004, "clip_norm": 1.0, **training})
        self.general, self.expert, self.price = general, expert, pull
        self.sizes = general_length, length, rounds, between

    def prompted(self, body, features):
        general, expert = blocks_of(body, self.general, (1, 2)), blocks_of(body, self.expert, (3, 4, 5))
        if both := {*general} & {*expert}:
            raise PluginError(
                f"block {min(both) + 1} can't be in both `general` and `expert`.", code="conflicting-keys"
            )
        return Complementary(body, features, general, expert, *self.sizes)


class Complementary(PromptsOfRounds):
    """A transformer with the same prefixes for all samples in some blocks, and in others those of a round."""

    def __init__(self, body, features, general, expert, general_length, length, rounds, between):
        super().__init__(body, rounds)
        self.general, self.expert, self.length = general, expert, general_length

        def drawn(*shape):
            return torch.empty(shape).uniform_(*between)

        self.shared = nn.Parameter(drawn(len(general), 2, general_length * body.width))
        self.add("prompts", drawn(rounds, len(expert), 2, length, body.width))
        self.add("keys", drawn(rounds, features))

    def start(self, place):
        self.keys.copy_(self.keys_of_rounds[place])  # the prompts go on from those of the round before

    def forward(self, x):
        near = normalize(self.query(x)) @ normalize(self.every("keys")).T  # (N, rounds)
        which = self.place.expand(len(x))
        if not self.training:
            trained = torch.arange(self.rounds, device=x.device) <= self.place
            which = near.masked_fill(~trained, -torch.inf).argmax(1)
        self.cost = 1 - near.gather(1, which[:, None]).mean()
        chosen = self.every("prompts")[which].unbind(1)  # of each block (N, 2, l, D)
        shared = self.shared.unflatten(2, (1, self.length, -1))
        prefixes = {block: tuple(pair) for block, pair in zip(self.general, shared, strict=True)}
        prefixes |= {block: pair.unbind(1) for block, pair in zip(self.expert, chosen, strict=True)}
        return self.frozen.body(x, prefixes)
