"""Learning a unified classifier incrementally via rebalancing."""

import torch
from torch import nn
from torch.nn.functional import cosine_similarity, normalize

from ianvs.authoring import Batch, ExemplarLearner, body_and_head


class UnitLength(nn.Module):
    """f / |f| times a scale that is learned."""

    def __init__(self, scale: float):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(float(scale)))

    def forward(self, f):
        return self.scale * normalize(f, dim=1)


class LUCIR(ExemplarLearner):
    """Learning a unified classifier incrementally via rebalancing (Hou et al. 2019, eq. 4 to 8).

    L(theta) = L_CE(eta cos(w_c, f)) + lambda (1 - cos(f, f_old)) + max(0, m - cos(w_y, f) + cos(w_n, f)), means over
    the round's samples and exemplars; the last one over exemplars of old classes and the `rivals` new classes n with
    the largest cosines. lambda = less_forget * sqrt(C_old / C_new), as in the authors' code; eq. 7 has it inverted.
    Vectors w_c have length 1, as each step brings them back to it; those of old classes stay where they are, those of
    new ones begin at the mean direction of their features. margin: m. scale: the first eta (authors: 1), it is learned.
    """

    def __init__(self, *, less_forget: float = 5.0, margin: float = 0.5, rivals: int = 2, scale: float = 10, **options):
        super().__init__(**options)
        self.less_forget, self.margin, self.rivals, self.scale = less_forget, margin, rivals, scale

    def build_network(self, input_shape, num_classes):
        body, head = body_and_head(super().build_network(input_shape, num_classes))
        return nn.Sequential(*body, UnitLength(self.scale), nn.Linear(head.in_features, num_classes, bias=False))

    def before_round(self, data):
        super().before_round(data)
        w, own = normalize(self.network[-1].weight.data), data.labelled()
        for c in self.new if self.known else []:
            w[c] = normalize(self.directions(own.x[own.y == c]).mean(0), dim=0)
        self.network[-1].weight.data.copy_(w)
        self.fixed, self.of_old = w[self.old], torch.tensor(self.old, device=w.device)
        self.network.train()

    def batch(self, data, x, y):
        self.f = self.representation(x)  # of this step, for the loss
        outputs = self.network[-1](self.f)
        return Batch(x, y, data.masked(outputs, y), outputs, data.complete, data.pretraining)

    def loss(self, batch):
        loss = super().loss(batch)
        if self.teacher is None or batch.pretraining:
            return loss
        moved = 1 - cosine_similarity(self.f, self.logits(batch.x, network=body_and_head(self.teacher)[0]))
        weight = self.less_forget * (len(self.known) / max(1, len(self.new))) ** 0.5
        return loss + weight * moved.mean() + self.separation(batch)

    def separation(self, batch):
        """The third term."""
        cosines = batch.outputs / self.network[-2].scale
        old = torch.isin(batch.y, self.of_old)
        if not self.new or not bool(old.any()):
            return cosines.new_zeros(())
        own = cosines[old].gather(1, batch.y[old, None])
        hard = cosines[old][:, self.new].topk(min(self.rivals, len(self.new))).values
        return (self.margin - own + hard).clamp_min(0).mean()

    def after_step(self, x, y, epoch, step):
        if not self.data.pretraining:
            w = normalize(self.network[-1].weight.data)
            w[self.old] = self.fixed
            self.network[-1].weight.data.copy_(w)

    def after_round(self, data):
        super().after_round(data)
        self.f = None  # it ends with the round
