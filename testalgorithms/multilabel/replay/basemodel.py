"""Replay of samples with the labels that they came with."""

import torch

from ianvs.authoring import ReplayLearner
from ianvs.base.errors import require_known
from ianvs.testalgorithms.multilabel import MultilabelLearner


class MultilabelReplay(MultilabelLearner, ReplayLearner):
    """Each step's samples are joined by as many old ones, or `replay_batch`, from a reservoir of `capacity`.

    A sample keeps the labels of the round that it comes from; those of other rounds are 0 in it.
    """

    def __init__(self, *, selection="reservoir", **options):
        require_known("selection of a memory of several labels", selection, ("reservoir", "per_round"))
        super().__init__(selection=selection, **options)

    def extend(self, x, y):
        if not len(self.memory):
            return x, y
        old_x, old_y = self.recall(len(y))
        return torch.cat([x, old_x]), torch.cat([y, old_y])
