"""Learning without forgetting, on the answers of a detector."""

import copy

import torch
from torch.nn.functional import l1_loss

from ianvs.testalgorithms.detection import DetectionLearner
from ianvs.testalgorithms.label_sets import KnownClasses


class DetectionLwF(DetectionLearner, KnownClasses):
    """Distillation of what the old detector answers (ILOD; Shmelkov et al. 2017, eq. 1 to 3), for heatmaps.

    L = L_new + alpha (sum over cells and old classes of (p - p_old)^2 + sum over cells of w |b - b_old|) / n. p and b
    are heatmaps and boxes, p_old and b_old those of the detector from before the round, w the largest p_old of a cell,
    n the sum of w, 1 at least. L_new is the loss of the round's own classes: the absence of a label says nothing of
    others. In the paper the squares are those of the logits of proposals.

    alpha: weight of what was known.
    """

    networks = ("centernet",)

    def __init__(self, *, alpha=1.0, **training):
        super().__init__(**training)
        self.alpha = alpha

    def before_round(self, data):
        present = data.y[..., 4].unique().long().tolist()
        self.new = torch.tensor([c for c in present if c >= 0], dtype=torch.int64, device=data.device)
        self.old = torch.tensor(
            [c for c in self.known_classes if c not in present], dtype=torch.int64, device=data.device
        )
        self.teacher = copy.deepcopy(self.network).eval().requires_grad_(False) if len(self.old) else None

    def loss(self, batch):
        loss = self.network.loss(batch.outputs, batch.y, self.new)
        return loss if self.teacher is None else loss + self.alpha * self.distillation(batch)

    def distillation(self, batch):
        """What alpha weighs, a scalar."""
        z, z_old = batch.outputs, self.logits(batch.x, network=self.teacher)
        p, p_old = z[:, self.old].sigmoid(), z_old[:, self.old].sigmoid()
        weight = p_old.amax(1, keepdim=True)
        boxes = weight * l1_loss(z[:, -4:], z_old[:, -4:], reduction="none")
        return ((p - p_old).square().sum() + boxes.sum()) / weight.sum().clamp_min(1)

    def taught(self, data):
        return self.new.tolist()

    def after_round(self, data):
        super().after_round(data)
        self.teacher = None
