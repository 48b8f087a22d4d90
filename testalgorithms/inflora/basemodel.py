"""Interference-free low-rank adaptation."""

from dataclasses import replace

import torch
from torch import nn

from ianvs.authoring import FrozenBody, TorchLearner, own_classes_mask, transformer_of
from ianvs.testalgorithms.inflora.key_value import Changed, attention_inputs


class InfLoRA(TorchLearner):
    """InfLoRA (Liang & Li 2024, arXiv 2404.00228, eq. 3 to 9): W + A B at every attention's keys and values.

    B (r, D): before a round, the r main directions of the layer's inputs h, from which the span M of what earlier
    rounds need is taken out, over sqrt(3): left singular vectors of (I - M M') C, C = sum h h'. B stays and A (2D, r)
    is learned from 0, so that a step changes nothing for inputs in M. After the round W <- W + A B, and M takes up main
    directions until it holds a share of |C|^2 (DualGPM keeps M or its complement, whichever is smaller; M says the
    same). The paper has the inputs themselves in place of C; C is what its code takes. The loss looks at the round's
    own classes alone, as theirs does.

    rank: r. kept: that share in the first round. rounds: over how many it rises in even steps, so that it would be 1
    after the last; None: it does not rise. head_from_zero: whether the head begins at 0 (code: it is drawn): what a
    round's rows of the head have in common is never trained.
    """

    memory = ()  # it keeps no samples: M is of features

    def __init__(
        self,
        *,
        rank: int = 10,
        kept: float = 0.98,
        rounds: int | None = None,
        head_from_zero: bool = False,
        **training,
    ):
        super().__init__(**{"network": "vit", **training})
        self.rank, self.kept, self.rounds, self.head_from_zero = rank, kept, rounds, head_from_zero

    def build_network(self, input_shape, num_classes):
        transformer, head = transformer_of(super().build_network(input_shape, num_classes))
        for values in head.parameters() if self.head_from_zero else ():
            nn.init.zeros_(values)
        return nn.Sequential(Changed(FrozenBody(transformer), self.rank), head)

    def before_round(self, data):
        self.class_mask = own_classes_mask(data, self.network[-1].out_features)
        for change, moment in zip(self.network[0].changes, attention_inputs(self, data.x), strict=True):
            change.aim(moment)

    def loss(self, batch):
        return super().loss(replace(batch, logits=batch.logits + self.class_mask))

    def after_round(self, data):
        share = self.kept + (1 - self.kept) * min(1.0, (data.round - 1) / (self.rounds or torch.inf))
        for change, moment in zip(self.network[0].changes, attention_inputs(self, data.x), strict=True):
            change.merge(moment, share)
