"""Maximally interfered retrieval."""

import copy

import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring import Batch, ReplayLearner


class MIR(ReplayLearner):
    """Maximally interfered retrieval (Aljundi et al. 2019, arXiv 1908.04742, section 3.1, algorithm 1).

    Replay of those old samples that the step on the new ones alone would harm most: of `candidates` drawn from the
    memory, the `replay_batch` (else as many as are new) with the largest s = l(x, y; theta_v) - l(x, y; theta), l the
    cross-entropy, theta_v = theta - learning_rate * gradient of L(B_new; theta).

    The algorithm's memory has the round's samples, too (`fill: during_round`); in the code they don't come back.
    """

    def __init__(self, *, candidates: int = 50, replay_batch: int | None = None, **options):
        super().__init__(replay_batch=candidates, **options)  # as many come back, to choose from
        self.chosen = replay_batch

    def extend(self, x, y):
        if not len(self.memory):
            return x, y
        old_x, old_y = self.recall(len(y))
        worst = self.interference(x, y, old_x, old_y).topk(min(self.chosen or len(y), len(old_y))).indices
        return torch.cat([x, old_x[worst]]), torch.cat([y, old_y[worst]])

    def interference(self, x, y, old_x, old_y):
        """(N,) s of old samples, when (x, y) is what the step brings; all 0 where that has no labels."""
        ahead = copy.deepcopy(self.network)  # also so that the running means of its normalisation don't count twice
        outputs = self.logits(x, network=ahead)
        batch = Batch(x, y, self.data.masked(outputs, y), outputs, self.data.complete)
        loss = self.loss(batch)
        if not loss.requires_grad:
            return torch.zeros(len(old_y), device=old_y.device)
        before = self.losses(ahead, old_x, old_y)
        gradients = torch.autograd.grad(loss, [*ahead.parameters()])
        with torch.no_grad():
            for parameter, gradient in zip(ahead.parameters(), gradients, strict=True):
                parameter -= self.schedule.learning_rate * gradient
        return self.losses(ahead, old_x, old_y) - before

    @torch.no_grad()
    def losses(self, network, x, y):
        return cross_entropy(self.data.masked(self.logits(x, network=network), y), y, reduction="none")
