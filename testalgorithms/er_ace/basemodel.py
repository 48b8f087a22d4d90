"""Experience replay with asymmetric cross-entropy."""

from dataclasses import replace

import torch

from ianvs.authoring import ReplayLearner


class ERACE(ReplayLearner):
    """Experience replay with asymmetric cross-entropy (Caccia et al. 2022, arXiv 2104.05025).

    L(theta) = L(B_new; classes of B_new) + L(B_memory; all classes seen), L(B; C) the mean over B of
    -log(exp z_y / sum_{c in C} exp z_c): new samples push no old class away, only samples from the memory do.

    mask_unseen: false leaves classes to come in both sums, as the authors' code does.
    fill: the memory has to hold new samples too, or nothing would ever hold new classes against old ones.
    """

    def __init__(self, *, fill: str = "during_round", **options):
        super().__init__(fill=fill, **options)

    def before_round(self, data):
        super().before_round(data)
        classes = self.network[-1].out_features
        absent = torch.full((classes + 1,), self.mask_unseen)  # the last place is for withheld labels, which are -1
        if not self.mask_unseen:
            absent[list(data.classes_seen)] = True
        self.absent = absent.to(data.device)

    def loss(self, batch):
        absent = self.absent.index_fill(0, batch.y % len(self.absent), False)
        loss = super().loss(replace(batch, logits=batch.logits.masked_fill(absent[:-1], -torch.inf)))
        if not len(self.memory):
            return loss
        return loss + super().loss(self.recall_batch(len(batch.y)))
