"""Dark experience replay."""

import torch

from ianvs.authoring import ReservoirMemory, TorchLearner


class DERpp(TorchLearner):
    """Dark experience replay ++ (Buzzega et al. 2020, eq. 6).

    L(theta) = L_new(theta) + alpha * mean |z' - h(x'; theta)|^2 + beta * L(x'', y''; theta), where (x', z') and
    (x'', y'') are two draws from the memory, h are outputs before any mask, the mean is over samples and classes.
    Here z is what the network said after the sample's round, when it is stored (the paper: at the step that brought it,
    which is the same in a stream).

    capacity: samples that are kept with their z, a uniform random subset of all of earlier rounds.
    """

    def __init__(self, *, capacity: int = 200, alpha: float = 0.5, beta: float = 0.5, **training):
        super().__init__(**training)
        self.alpha, self.beta = alpha, beta
        self.memory = ReservoirMemory(capacity)

    def before_round(self, data):
        self.data, self.draws = data, data.generator("replay")

    def loss(self, batch):
        loss = super().loss(batch)
        if not len(self.memory):
            return loss
        x, _, z = self.memory.sample(len(batch.y), self.draws)
        drift = (z.to(self.data.device) - self.logits(self.ready(x))).square().mean()
        x, y, _ = self.memory.sample(len(batch.y), self.draws)
        old = self.batch(self.data, self.ready(x), y.to(self.data.device))
        return loss + self.alpha * drift + self.beta * super().loss(old)

    def ready(self, x):
        return self.prepare(x.to(self.data.device))

    def after_round(self, data):
        kept = data.worth_keeping()
        self.network.eval()
        with torch.no_grad():
            z = torch.cat([self.logits(x) for x, _ in kept.batches()])
        self.memory.add(kept.x, kept.y, data.generator("memory"), z)
        self.data = None  # it ends with the round

    def state(self):
        return self.memory.state()

    def restore(self, state):
        self.memory.restore(state)
