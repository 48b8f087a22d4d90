"""Incremental classifier and representation learning."""

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, normalize, one_hot

from ianvs.authoring import ExemplarLearner


class ICaRL(ExemplarLearner):
    """Incremental classifier and representation learning (Rebuffi et al. 2017, arXiv 1611.07725, algorithms 1 to 5).

    L(theta) = mean over the round's samples, the exemplars and the classes c seen so far of BCE(t_c, sigmoid(z_c));
    t_c = sigmoid(what the network said before the round) for classes of earlier rounds, else 1 if c is y, else 0.
    The paper writes a sum over c; its code takes the mean, so that a step does not grow with the number of classes.
    A class that the round brings again learns from its labels. Exemplars are chosen by herding.
    An answer is the class with the nearest mean of exemplars: argmin_c |f(x) - mu_c|.

    normalise: features and means have length 1, in herding and in answers, as in the paper; Mammoth leaves them.
    """

    def __init__(self, *, normalise: bool = True, **options):
        super().__init__(**options)
        self.normalise, self.means = normalise, {}  # class -> (features,)

    def unit(self, f):
        """f (..., D), of length 1 where that is wanted."""
        return normalize(f, dim=-1) if self.normalise else f

    def unit_features(self, x):
        return self.each(x, lambda part: self.unit(self.representation(part)))

    def before_round(self, data):
        super().before_round(data)
        seen = [*self.known_classes, *self.new_classes]
        self.old_index, self.seen_index = (
            torch.tensor(some, device=data.device).long() for some in (self.absent_classes, seen)
        )

    def loss(self, batch):
        if batch.pretraining:
            return super().loss(batch)
        target = one_hot(batch.y, batch.outputs.shape[1]).float()
        if self.teacher is not None:
            target[:, self.old_index] = self.teacher_logits(batch.x).sigmoid()[:, self.old_index]
        return binary_cross_entropy_with_logits(batch.outputs[:, self.seen_index], target[:, self.seen_index])

    def after_round(self, data):
        super().after_round(data)
        if len(self.memory):
            features, y = self.unit_features(self.memory.x).cpu(), self.memory.y.cpu()
            classes = y[y >= 0].unique().tolist()
            self.means = {c: self.unit(features[y == c].mean(0)) for c in classes}

    def answers(self, x, mask):
        allowed = [c for c in self.means if mask is None or mask[c] == 0]
        z = super().answers(x, mask)
        if not allowed:  # nothing was taught of what is asked for
            return z
        means = torch.stack([self.means[c] for c in allowed]).to(x.device)
        distances = torch.cdist(self.unit(self.representation(x)), means)
        return torch.full_like(z, -torch.inf).index_copy(1, torch.tensor(allowed, device=x.device), -distances.square())

    def state(self):
        return {**super().state(), "means": self.means}

    def restore(self, state):
        super().restore(state)
        self.means = dict(state["means"])
