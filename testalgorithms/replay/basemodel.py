"""Experience replay from a reservoir."""

import torch

from ianvs.authoring import ReplayLearner


class Replay(ReplayLearner):
    """Each step's batch is joined by old samples (Chaudhry et al. 2019, arXiv 1902.10486, algorithm 1).

    Step on the mean of -log p(y | x; theta) over B_new + B_memory, |B_memory| = `replay_batch`, else |B_new|, or all of
    the memory where that is smaller.
    """

    def extend(self, x, y):
        if not len(self.memory):
            return x, y
        old_x, old_y = self.recall(len(y))
        return torch.cat([x, old_x]), torch.cat([y, old_y])
