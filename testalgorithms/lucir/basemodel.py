"""Learning a unified classifier incrementally via rebalancing."""

import torch
from torch import nn
from torch.nn.functional import cosine_similarity, linear, normalize

from ianvs.authoring import Batch, ExemplarLearner, body_and_head
from ianvs.testalgorithms.lucir.features import UnitLength, without_last_relu


class LUCIR(ExemplarLearner):
    """Learning a unified classifier incrementally via rebalancing (Hou et al. 2019, eq. 4 to 8).

    L(theta) = L_CE(eta cos(w_c, f)) + lambda (1 - cos(f, f_old)) + max(0, m - cos(w_y, f) + cos(w_n, f)), means over
    the round's samples and exemplars; the last one over exemplars of old classes and the `rivals` new classes n with
    the largest cosines. lambda = less_forget * sqrt(C_old / C_new), as in the authors' code; eq. 7 has it inverted.
    Vectors w_c of old classes stay; new ones begin at the mean direction of their features with the mean length of old
    ones (the longer, the slower it turns). There is no ReLU behind f. margin: m. scale: the first eta, it is learned.
    """

    def __init__(self, *, less_forget: float = 5.0, margin: float = 0.5, rivals: int = 2, scale: float = 1, **options):
        super().__init__(**options)
        self.less_forget, self.margin, self.rivals, self.scale = less_forget, margin, rivals, scale
        self.lengths = None  # |w| (C,) as a round left them; between rounds all w have length 1

    def build_network(self, input_shape, num_classes):
        body, head = body_and_head(super().build_network(input_shape, num_classes))
        head = nn.Linear(head.in_features, num_classes, bias=False)
        return nn.Sequential(*without_last_relu(body), UnitLength(self.scale), head)

    def before_round(self, data):
        super().before_round(data)
        w, labelled = self.network[-1].weight.data, data.labelled()
        if self.lengths is not None:
            w *= self.lengths.to(w.device)[:, None]
        for c in self.new_classes if self.known_classes else []:
            mean = self.unit_features(labelled.x[labelled.y == c]).mean(0)
            w[c] = normalize(mean, dim=0) * w[self.known_classes].norm(dim=1).mean()
        self.old_index, self.new_index = (
            torch.tensor(some, device=w.device).long() for some in (self.absent_classes, self.new_classes)
        )
        self.fixed = w[self.old_index]
        self.network.train()

    def batch(self, data, x, y):
        self.f = self.representation(x)  # of this step, for the loss
        outputs = linear(self.f, normalize(self.network[-1].weight))
        return Batch(x, y, data.masked(outputs, y), outputs, data.complete, data.pretraining)

    def loss(self, batch):
        loss = super().loss(batch)
        if self.teacher is None or batch.pretraining:
            return loss
        moved = 1 - cosine_similarity(self.f, self.logits(batch.x, network=body_and_head(self.teacher)[0]))
        weight = self.less_forget * (len(self.known_classes) / max(1, len(self.new_classes))) ** 0.5
        return loss + weight * moved.mean() + self.separation(batch)

    def separation(self, batch):  # the third term
        cosines = batch.outputs / self.network[-2].scale
        old = torch.isin(batch.y, self.old_index).nonzero()[:, 0]
        if not self.new_classes or not len(old):
            return cosines.new_zeros(())
        true = cosines[old].gather(1, batch.y[old, None])
        hard = cosines[old][:, self.new_index].topk(min(self.rivals, len(self.new_classes))).values
        return (self.margin - true + hard).clamp_min(0).mean()

    def after_step(self, x, y, epoch, step):
        self.network[-1].weight.data[self.old_index] = self.fixed

    def after_round(self, data):
        w = self.network[-1].weight.data
        self.lengths = w.norm(dim=1)
        w /= self.lengths[:, None]
        super().after_round(data)
        self.f = None  # it ends with the round

    def state(self):
        return {**super().state(), "lengths": self.lengths}

    def restore(self, state):
        super().restore(state)
        self.lengths = state["lengths"]
