"""Learning without forgetting."""

import copy

import torch

from ianvs.authoring import TorchLearner, distillation_loss
from ianvs.base.errors import require_known


class LwF(TorchLearner):
    """Learning without forgetting (Li & Hoiem 2017, eq. 2 and 3, fig. 3).

    L(theta) = L_new(theta) + alpha * sum over old heads of T^2 KL(softmax(z_old / T) || softmax(z / T)), z over the
    classes of a head: those of each earlier task, where answers are chosen among the classes of a task; else of all
    earlier rounds. z_old is what the model from before the round says about the new samples. The paper has no T^2.

    alpha: weight of what was known; `alpha_growth` is added to it in each round after the second (CLEAR's runs let it
    grow evenly to 2). temperature: T, higher looks more at improbable classes. head_epochs: passes in which only the
    head is trained before a round after the first ("warm-up" of fig. 3). weighting: "sum", or "rounds" for what van de
    Ven et al. 2022 do with a single head: z is over all classes that may be answered now, z_old over those of before;
    and a round that brings no new class has alpha times the number of rounds before it.
    """

    memory = ()  # it keeps no samples

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        alpha_growth: float = 0.0,
        temperature: float = 2.0,
        head_epochs: int = 0,
        weighting: str = "sum",
        **training,
    ):
        super().__init__(**training)
        require_known("weighting", weighting, ("sum", "rounds"))
        self.alpha, self.alpha_growth, self.temperature, self.weighting = alpha, alpha_growth, temperature, weighting
        self.head_epochs, self.rounds = head_epochs, 0  # rounds: that were learned
        # Classes; (H, classes) 0 for those of an old head, -1e30 for the others.
        self.known_classes, self.heads = ([], None)

    def before_round(self, data):
        self.weight = self.alpha + self.alpha_growth * max(0, self.rounds - 1)
        self.teacher = copy.deepcopy(self.network).eval().requires_grad_(False) if self.known_classes else None
        # What this round will leave.
        self.round_head = torch.zeros(1, self.network[-1].out_features, device=data.device)
        if data.mask is not None:
            self.round_head = data.mask[None].clamp_min(-1e30)  # 0 times -inf would be no number
        self.then = self.now = self.round_head if self.heads is None else self.heads.to(data.device)
        if self.weighting == "rounds" and data.task_masks is None:
            self.now = self.round_head
            self.weight *= self.rounds if {*data.labelled().y.tolist()} <= {*self.known_classes} else 1

    def training_data(self, data):
        return self.fit_head(data, self.head_epochs) if self.known_classes else data

    def loss(self, batch):
        loss = super().loss(batch)
        if self.teacher is None:
            return loss
        z_old, z = self.logits(batch.x, network=self.teacher)[:, None], batch.outputs[:, None]  # (B, 1, classes)
        return loss + self.weight * distillation_loss(z + self.now, z_old + self.then, self.temperature)

    def after_round(self, data):
        self.teacher, self.rounds = None, self.rounds + 1
        self.known_classes = sorted({*self.known_classes, *data.labelled().y.tolist()})
        heads = self.round_head.cpu()
        if data.task_masks is not None and self.heads is not None:
            heads = torch.cat([self.heads, heads]).unique(dim=0)
        elif data.task_masks is None and self.weighting == "sum":
            heads = torch.full_like(heads, -1e30).index_fill(
                1, torch.tensor(self.known_classes, dtype=torch.int64), 0.0
            )
        self.heads = heads

    def state(self):
        return {"known": self.known_classes, "rounds": self.rounds, "heads": self.heads}

    def restore(self, state):
        self.known_classes, self.rounds, self.heads = list(state["known"]), state["rounds"], state["heads"]
