"""Learning without forgetting."""

import copy

import torch

from ianvs.authoring import TorchLearner, distillation_loss


class LwF(TorchLearner):
    """Learning without forgetting (Li & Hoiem 2017, eq. 2 and 3, fig. 3).

    L(theta) = L_new(theta) + alpha T^2 KL(softmax(z_old / T) || softmax(z / T)), z over classes of earlier rounds;
    z_old is what the model from before the round says about the new samples.

    alpha: weight of what was known. temperature: T, higher looks more at improbable classes.
    """

    memory = ()  # it keeps no samples

    def __init__(self, *, alpha: float = 1.0, temperature: float = 2.0, **training):
        super().__init__(**training)
        self.alpha, self.temperature, self.known = alpha, temperature, []

    def before_round(self, data):
        self.teacher = copy.deepcopy(self.network).eval().requires_grad_(False) if self.known else None
        self.columns = torch.tensor(self.known, dtype=torch.int64, device=data.device)

    def loss(self, batch):
        loss = super().loss(batch)
        if self.teacher is None:
            return loss
        z_old = self.logits(batch.x, network=self.teacher)
        old, new = (z.index_select(1, self.columns) for z in (z_old, batch.outputs))
        return loss + self.alpha * distillation_loss(new, old, self.temperature)

    def after_round(self, data):
        self.teacher = None
        self.known = sorted({*self.known, *data.labelled().y.tolist()})

    def state(self):
        return {"known": self.known}

    def restore(self, state):
        self.known = list(state["known"])
