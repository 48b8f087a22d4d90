"""Weight aligning."""

import torch
from torch import nn

from ianvs.authoring import ExemplarLearner, body_and_head, distillation_loss


class WA(ExemplarLearner):
    """Weight aligning (Zhao et al. 2020, arXiv 1911.07053).

    L(theta) = lambda L_KD + (1 - lambda) L_CE over the round's samples and the exemplars, lambda = C_old / C_seen;
    L_KD = KL(q_old || q), q = softmax(z / T) over classes of earlier rounds, q_old of the network of before the round;
    there is no factor T^2. After the round the head's vectors of new classes are multiplied by
    gamma = mean |w_old| / mean |w_new|: what had more samples no longer wins by length.

    The head has no bias. positive: no weight of the head falls below 0, so that longer ones mean larger outputs.
    """

    def __init__(self, *, temperature: float = 2.0, positive: bool = True, **options):
        super().__init__(**options)
        self.temperature, self.positive = temperature, positive

    def build_network(self, input_shape, num_classes):
        body, head = body_and_head(super().build_network(input_shape, num_classes))
        return nn.Sequential(*body, nn.Linear(head.in_features, num_classes, bias=False))

    def loss(self, batch):
        loss = super().loss(batch)
        if self.teacher is None or batch.pretraining:
            return loss
        share = len(self.known_classes) / (len(self.known_classes) + len(self.new_classes))
        teacher, student = self.teacher_logits(batch.x)[:, self.known_index], batch.outputs[:, self.known_index]
        listened = distillation_loss(student, teacher, self.temperature) / self.temperature**2
        return share * listened + (1 - share) * loss

    def after_step(self, x, y, epoch, step):
        if self.positive and not self.data.pretraining:
            with torch.no_grad():
                self.network[-1].weight.clamp_(min=0)

    def after_round(self, data):
        if self.known_classes and self.new_classes:
            with torch.no_grad():
                weight = self.network[-1].weight
                length = weight.norm(dim=1)
                ratio = length[self.known_classes].mean() / length[self.new_classes].mean().clamp_min(1e-12)
                weight[self.new_classes] *= ratio
        super().after_round(data)
