"""Samples with several labels: a base class, memories, losses, and methods to compare."""

from ianvs.testalgorithms.multilabel.multilabel_learner import MultilabelLearner

__all__ = ["MultilabelLearner"]
