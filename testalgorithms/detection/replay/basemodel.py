"""Replay of images with their original boxes."""

from ianvs.testalgorithms.detection import DetectionLearner
from ianvs.testalgorithms.label_sets import LabelSetReplay


class DetectionReplay(DetectionLearner, LabelSetReplay):
    """Adds as many stored images as new ones to each batch, or `replay_batch`, from a reservoir of `capacity` images.

    An image keeps the boxes of its own round. Other objects in it count as background in later rounds, as do objects of
    old classes in new images: "foreground shift" (Liu et al. 2023, CL-DETR, section 1).
    """
