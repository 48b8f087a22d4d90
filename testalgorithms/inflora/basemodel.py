"""Interference-free low-rank adaptation."""

from dataclasses import replace

from torch import nn

from ianvs.authoring import FrozenBody, TorchLearner, own_classes_mask, token_network
from ianvs.testalgorithms.inflora.key_value import KeyValueChange, attention_inputs


class InfLoRA(TorchLearner):
    """InfLoRA (Liang & Li 2024, arXiv 2404.00228, eq. 3 to 9): W + A B at every attention's keys and values.

    B (r, D): before a round, the r main directions of the layer's inputs h, from which the span M of what earlier
    rounds need is taken out: eigenvectors of (I - M M') sum h h' (I - M M'). B stays and A (2D, r) is learned from 0,
    so that a step changes nothing for inputs in M. After the round W <- W + A B, and M takes up main directions of h
    until it holds the share `kept` of sum |h|^2 (DualGPM keeps M or its complement, whichever is smaller; M says the
    same).
    The loss looks at the round's own classes alone, as theirs does.

    rank: r. kept: share of what a round's inputs hold that later rounds leave alone.
    """

    networks = ("vit",)
    memory = ()  # it keeps no samples: M is of features

    def __init__(self, *, rank: int = 8, kept: float = 0.98, network: str = "vit", **training):
        super().__init__(network=network, **training)
        self.rank, self.kept = rank, kept

    def build_network(self, input_shape, num_classes):
        body, head = token_network(super().build_network(input_shape, num_classes))
        frozen = FrozenBody(body)
        self.changes = [KeyValueChange.of(layer, self.rank) for layer in body.attentions()]
        return nn.Sequential(frozen, head)

    def before_round(self, data):
        self.own = own_classes_mask(data, self.network[-1].out_features)
        for change, moment in zip(self.changes, attention_inputs(self, data.x), strict=True):
            change.aim(moment)

    def loss(self, batch):
        return super().loss(replace(batch, logits=batch.logits + self.own))

    def after_round(self, data):
        for change, moment in zip(self.changes, attention_inputs(self, data.x), strict=True):
            change.merge(moment, self.kept)
