"""Class-incremental segmentation: one head over all classes, and a background that changes its meaning."""

from ianvs.testalgorithms.class_segmentation.dense_learner import DenseLearner

__all__ = ["DenseLearner"]
