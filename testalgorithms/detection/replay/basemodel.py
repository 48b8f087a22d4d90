"""Replay of images with the boxes that they came with."""

from ianvs.testalgorithms.detection import DetectionLearner
from ianvs.testalgorithms.label_sets import LabelSetReplay


class DetectionReplay(DetectionLearner, LabelSetReplay):
    """Each step's images are joined by as many old ones, or `replay_batch`, from a reservoir of `capacity`.

    An image keeps the boxes of the round that it comes from. What else it shows counts as background in later rounds,
    as do old classes in new pictures: "foreground shift" (Liu et al. 2023, CL-DETR, section 1).
    """
