"""Experience replay from a reservoir."""

import torch

from ianvs.authoring import ReservoirMemory, TorchLearner


class Replay(TorchLearner):
    """Each step's batch is joined by as many old samples (Chaudhry et al. 2019, arXiv 1902.10486, algorithm 1).

    Step on the mean of -log p(y | x; theta) over B_new + B_memory, |B_memory| = min(|B_new|, samples in memory).
    The memory is filled after the round, so that B_memory is always of earlier rounds.

    capacity: samples that are kept, a uniform random subset of all that were seen (Vitter 1985).
    """

    def __init__(self, *, capacity: int = 200, **training):
        super().__init__(**training)
        self.memory = ReservoirMemory(capacity)

    def before_round(self, data):
        self.draws = data.generator("replay")

    def extend(self, x, y):
        if not len(self.memory):
            return x, y
        old_x, old_y = self.memory.sample(len(y), self.draws)
        return torch.cat([x, self.prepare(old_x.to(x.device))]), torch.cat([y, old_y.to(y.device)])

    def after_round(self, data):
        kept = data.worth_keeping()
        self.memory.add(kept.x, kept.y, data.generator("memory"))

    def state(self):
        return self.memory.state()

    def restore(self, state):
        self.memory.restore(state)
