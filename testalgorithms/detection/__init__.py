"""Continual object detection: a base class with two kinds of networks, and methods to compare."""

from ianvs.testalgorithms.detection.detection_learner import DetectionLearner
from ianvs.testalgorithms.detection.targets import box_iou, rows_of

__all__ = ["DetectionLearner", "box_iou", "rows_of"]
