"""Learning without forgetting."""

import copy
from dataclasses import replace

import torch

from ianvs.authoring import TorchLearner, distillation_loss


class LwF(TorchLearner):
    """Learning without forgetting (Li & Hoiem 2017, eq. 2 and 3, fig. 3).

    L(theta) = L_new(theta) + alpha T^2 KL(softmax(z_old / T) || softmax(z / T)), z over classes of earlier rounds;
    z_old is what the model from before the round says about the new samples.

    alpha: weight of what was known; `alpha_growth` is added to it in each round after the second (CLEAR's runs let it
    grow evenly to 2). temperature: T, higher looks more at improbable classes. head_epochs: passes in which only the
    head is trained before a round after the first ("warm-up" of fig. 3).
    """

    memory = ()  # it keeps no samples

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        alpha_growth: float = 0.0,
        temperature: float = 2.0,
        head_epochs: int = 0,
        **training,
    ):
        super().__init__(**training)
        self.alpha, self.alpha_growth, self.temperature, self.known = alpha, alpha_growth, temperature, []
        self.head_epochs, self.rounds = head_epochs, 0  # rounds: that were learned

    def before_round(self, data):
        self.weight = self.alpha + self.alpha_growth * max(0, self.rounds - 1)
        self.teacher = copy.deepcopy(self.network).eval().requires_grad_(False) if self.known else None
        self.columns = torch.tensor(self.known, dtype=torch.int64, device=data.device)

    def training_data(self, data):
        first = self.head_epochs if self.known else 0
        if data.passes is not None:
            first = min(first, data.passes - 1)
            data = replace(data, passes=data.passes - first)
        if first:
            self.fit_head(data, first)
        return data

    def loss(self, batch):
        loss = super().loss(batch)
        if self.teacher is None:
            return loss
        z_old = self.logits(batch.x, network=self.teacher)
        old, new = (z.index_select(1, self.columns) for z in (z_old, batch.outputs))
        return loss + self.weight * distillation_loss(new, old, self.temperature)

    def after_round(self, data):
        self.teacher = None
        self.rounds += 1
        self.known = sorted({*self.known, *data.labelled().y.tolist()})

    def state(self):
        return {"known": self.known, "rounds": self.rounds}

    def restore(self, state):
        self.known, self.rounds = list(state["known"]), state["rounds"]
