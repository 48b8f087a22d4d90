"""Scalable decoupled low-rank adaptation."""

from dataclasses import replace

from torch import nn

from ianvs.authoring import FrozenBody, own_classes_mask, transformer_of
from ianvs.testalgorithms.growing import Growing
from ianvs.testalgorithms.sd_lora.directions import Decoupled


class SDLoRA(Growing):
    """Scalable decoupled LoRA (SD-LoRA; Wu et al. 2025, arXiv 2501.13198), without its shrinking ranks.

    Queries and values of each block are W + sum_(i < t) a_i B_i A_i / (|B_i| |A_i|) + a_t B_t A_t in round t, which
    learns the magnitudes a_1, ..., a_t, A_t and B_t, and the head, by the cross-entropy of the round's own classes. As
    in the authors' code, there is one a_i for all weights, and all begin at `magnitude` in each round.

    rank: r. head_from_zero: whether the head begins at 0 (code: it is drawn): what a round's rows of the head have in
    common is never trained.
    """

    memory = ()  # it keeps no samples

    def __init__(self, *, rank: int = 10, magnitude: float = 0.8, head_from_zero: bool = False, **training):
        theirs = {"learning_rate": 0.008, "epochs": 20, "batch_size": 128}
        super().__init__(**{"network": "vit", **theirs, **training})
        self.rank, self.magnitude, self.head_from_zero = rank, magnitude, head_from_zero

    def build_network(self, input_shape, num_classes):
        transformer, head = transformer_of(super().build_network(input_shape, num_classes))
        for values in head.parameters() if self.head_from_zero else ():
            nn.init.zeros_(values)
        return nn.Sequential(Decoupled(FrozenBody(transformer), self.rank, self.magnitude, max(1, self.grown)), head)

    def before_round(self, data):
        self.class_mask = own_classes_mask(data, self.network[-1].out_features)
        if not data.pretraining and len(data.labelled()):
            if self.grown:
                self.network[0].add_round()
            self.grown += 1

    def loss(self, batch):
        return super().loss(replace(batch, logits=batch.logits + self.class_mask))
