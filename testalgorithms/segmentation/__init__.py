"""Continual semantic segmentation: a base class with a head per domain, and methods to compare with."""

from ianvs.testalgorithms.segmentation.data import Batch, DomainData, DomainLabels
from ianvs.testalgorithms.segmentation.segmentation_learner import SegmentationLearner

__all__ = ["Batch", "DomainData", "DomainLabels", "SegmentationLearner"]
