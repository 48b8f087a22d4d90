"""Dynamically expandable representation."""

from dataclasses import replace

import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring import some_of_each
from ianvs.authoring.training_loop import fit
from ianvs.base.errors import require_known
from ianvs.testalgorithms.side_by_side import GrowingLearner


class DynamicER(GrowingLearner):
    """Dynamically expandable representation (Yan et al. 2021, arXiv 2103.16788), without its masks and pruning.

    A round with new classes fixes the bodies so far and adds one, a copy of the last; the head sees the features of
    all. L = L_CE(H(f_1, ..., f_t), y) + auxiliary * L_CE(H_a(f_t), y_a) over the round's samples and the exemplars; y_a
    is 0 for classes of earlier rounds, the new ones are counted from 1; H_a ends with the round. Then the head, which
    has seen more of new classes, is balanced.

    balance: "finetune", the paper's: the head is drawn anew and trained alone for `head_epochs` on equally many samples
    of each class, on outputs divided by `temperature`; "align", PyCIL's: its rows of new classes get the mean length of
    the others (weight aligning); or "none".
    """

    def __init__(
        self,
        *,
        auxiliary: float = 1.0,
        balance: str = "finetune",
        head_epochs: int = 30,
        temperature: float = 5.0,
        **options,
    ):
        super().__init__(**options)
        require_known("balance", balance, ("finetune", "align", "none"))
        self.auxiliary, self.balance = auxiliary, balance
        self.head_epochs, self.temperature = head_epochs, temperature

    def before_round(self, data):
        super().before_round(data)
        self.teacher = None  # the fixed bodies are one
        if self.grows:
            self.grow()
            width, bodies = self.network[-1].in_features, len(self.network[0].parts)
            self.second_head = self.new_head(width // bodies, len(self.new_classes) + 1, "auxiliary head")
            self.place = torch.zeros(self.network[-1].out_features, dtype=torch.int64, device=data.device)
            self.place[self.new_classes] = torch.arange(1, len(self.new_classes) + 1, device=data.device)

    def training_data(self, data):
        shown = super().training_data(data)
        return self.later_stage(shown, self.head_epochs) if self.grows and self.balance == "finetune" else shown

    def loss(self, batch):
        loss = super().loss(batch)
        if self.second_head is None:
            return loss
        newest = self.f[:, -self.second_head.in_features :]
        return loss + self.auxiliary * cross_entropy(self.second_head(newest), self.place[batch.y])

    def after_round(self, data):
        if self.grows and self.balance == "finetune":
            self.finetune(self.shown)
        elif self.grows and self.balance == "align":
            with torch.no_grad():
                weight = self.network[-1].weight
                length = weight.norm(dim=1)
                ratio = length[self.known_classes].mean() / length[self.new_classes].mean().clamp_min(1e-12)
                weight[self.new_classes] *= ratio
        super().after_round(data)

    def finetune(self, shown):
        """The head alone, on a balanced part of the samples."""
        some = some_of_each(shown.y, None, shown.generator("balanced"))
        balanced = replace(shown, x=shown.x[some], y=shown.y[some], passes=self.later_passes)
        schedule = self.schedule.for_stage(self.head_epochs, milestones=(self.head_epochs // 2,), step_every=None)
        if not schedule.steps(len(balanced), balanced.passes):
            return
        body, head = self.network[:-1].eval(), self.network[-1]
        drawn = self.new_head(head.in_features, head.out_features, "balanced head")
        head.load_state_dict(drawn.state_dict())

        def loss_of(x, y):
            with torch.no_grad():
                f = self.logits(self.augmented(x), network=body)
            return cross_entropy(shown.masked(head(f), y) / self.temperature, y)

        rate = self.head_learning_rate or self.schedule.learning_rate
        fit([(head.parameters(), rate)], balanced, schedule, loss_of)
