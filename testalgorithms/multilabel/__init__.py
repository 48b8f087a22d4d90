"""Several labels for each picture: a base class, and methods to compare."""

from ianvs.testalgorithms.multilabel.multilabel_learner import MultilabelLearner

__all__ = ["MultilabelLearner"]
