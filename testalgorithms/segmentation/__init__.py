"""Continual semantic segmentation: a base class with a head per domain, and methods to compare with."""

from testalgorithms.segmentation.data import Batch, DomainData, DomainLabels
from testalgorithms.segmentation.learner import SegmentationLearner
from testalgorithms.segmentation.options import one_of

__all__ = ["Batch", "DomainData", "DomainLabels", "SegmentationLearner", "one_of"]
