"""Experience replay from a reservoir."""

import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring import ReplayLearner
from ianvs.base.errors import require_known

WEIGHTINGS = ("samples", "rounds")


class Replay(ReplayLearner):
    """Each step's batch is joined by old samples (Chaudhry et al. 2019, arXiv 1902.10486, algorithm 1).

    Step on the mean of -log p(y | x; theta) over B_new + B_memory, |B_memory| = `replay_batch`, else |B_new|, or all of
    the memory where that is smaller.

    weighting: "samples", as above; or "rounds", in round k 1/k of the mean over B_new and 1 - 1/k of that over B_memory
    (van de Ven et al. 2022, "Three types of incremental learning", Methods).
    """

    def __init__(self, *, weighting: str = "samples", **options):
        super().__init__(**options)
        require_known("weighting", weighting, WEIGHTINGS)
        self.weighting, self.new = weighting, 0

    def extend(self, x, y):
        self.new = len(y)
        if not len(self.memory):
            return x, y
        old_x, old_y = self.recall(len(y))
        return torch.cat([x, old_x]), torch.cat([y, old_y])

    def loss(self, batch):
        if self.weighting == "samples" or batch.pretraining or self.new == len(batch.y):
            return super().loss(batch)
        losses = cross_entropy(batch.logits, batch.y, ignore_index=-1, reduction="none")
        share = 1 / self.data.round
        return share * losses[: self.new].mean() + (1 - share) * losses[self.new :].mean()
