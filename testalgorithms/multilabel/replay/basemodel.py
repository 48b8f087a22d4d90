"""Replay of samples with the labels that they came with."""

from ianvs.testalgorithms.label_sets import LabelSetReplay
from ianvs.testalgorithms.multilabel import MultilabelLearner


class MultilabelReplay(MultilabelLearner, LabelSetReplay):
    """Each step's samples are joined by as many old ones, or `replay_batch`, from a reservoir of `capacity`.

    A sample keeps the labels of the round that it comes from; those of other rounds are 0 in it.
    """
