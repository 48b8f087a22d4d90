"""Modelling the background."""

import torch
from torch.nn.functional import log_softmax, nll_loss, softmax

from ianvs.testalgorithms.class_segmentation import DenseLearner
from ianvs.testalgorithms.class_segmentation.dense_learner import IGNORE


class MiB(DenseLearner):
    """Modelling the background (MiB; Cermelli et al. 2020, arXiv 2002.00718, eq. 5 to 10).

    L = -log q(y) + distillation L_KD. q(c) is the softmax for a new class c, and for the background b the sum over b
    and all old classes: a pixel that is called background may be of any of them. L_KD = -mean over the old classes and
    b of p_old(c) log p'(c), p'(c) the softmax for an old class, and for b the sum over b and the new classes, of which
    the old network knew nothing. New outputs begin as the background's, with its probability shared among all.
    """

    def __init__(self, *, distillation=10.0, **training):
        super().__init__(**training)
        self.distillation = distillation

    def before_round(self, data):
        super().before_round(data)
        self.teacher = self.copied() if self.later else None
        if self.later and self.new:
            self.network.start_from_background(self.new, self.background)

    def loss(self, batch):
        if not self.later:
            return super().loss(batch)
        with torch.no_grad():
            z_old = self.logits(batch.x, network=self.teacher)
        old, new = self.old_index, self.new_index
        loss = unbiased_cross_entropy(batch.outputs, batch.y, old, new, self.background)
        return loss + self.distillation * unbiased_distillation(batch.outputs, z_old, old, new)

    def after_round(self, data):
        super().after_round(data)
        self.teacher = None


def unbiased_cross_entropy(z, y, old, new, background):
    """Mean over pixels y (B, H, W) that are not 255. Labels of old classes count as the background.

    z: (B, C, H, W) logits. old, new: (K,) class indices, the background first.
    """
    logs = log_softmax(z[:, torch.cat([old, new])], 1)
    q = torch.full(z.shape, -torch.inf, dtype=z.dtype, device=z.device)  # nll_loss has no channels_last gradient
    q = q.index_copy(1, old[:1], logs[:, : len(old)].logsumexp(1, keepdim=True))
    q = q.index_copy(1, new, logs[:, len(old) :])
    y = torch.where((y[..., None] == old).any(-1), background, y)
    return nll_loss(q, y, ignore_index=IGNORE)


def unbiased_distillation(z, z_old, old, new):
    """Mean over all pixels and old classes, the background first.

    z_old: (B, C, H, W) logits of the network of before the round. old, new: (K,) class indices.
    """
    logs = log_softmax(z[:, torch.cat([old, new])], 1)
    p = softmax(z_old[:, old], 1)
    background = torch.cat([logs[:, :1], logs[:, len(old) :]], 1).logsumexp(1, keepdim=True)
    return -(p * torch.cat([background, logs[:, 1 : len(old)]], 1)).mean(1).mean()
