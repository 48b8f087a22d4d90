"""Replay of pictures with the boxes that they came with."""

import torch

from ianvs.authoring import ReplayLearner
from ianvs.base.errors import require_known
from ianvs.testalgorithms.detection import DetectionLearner


class DetectionReplay(DetectionLearner, ReplayLearner):
    """Each step's pictures are joined by as many old ones, or `replay_batch`, from a reservoir of `capacity`.

    A picture keeps the boxes of the round that it comes from. What else it shows counts as background in later rounds,
    as do old classes in new pictures: "foreground shift" (Liu et al. 2023, CL-DETR, section 1).
    """

    def __init__(self, *, selection="reservoir", **options):
        require_known("selection of a memory of boxes", selection, ("reservoir", "per_round"))
        super().__init__(selection=selection, **options)

    def extend(self, x, y):
        if not len(self.memory):
            return x, y
        old_x, old_y = self.recall(len(y))
        return torch.cat([x, old_x]), torch.cat([y, old_y])
