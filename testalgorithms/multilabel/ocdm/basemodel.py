"""Replay from a memory whose labels are as evenly distributed as they can be."""

from ianvs.testalgorithms.multilabel.label_memories import DistributionMatchingMemory
from ianvs.testalgorithms.multilabel.replay.basemodel import MultilabelReplay


class MultilabelOCDM(MultilabelReplay):
    """Optimizing class distribution in memory (Liang & Li 2022, arXiv 2209.11469): see DistributionMatchingMemory.

    rho: 0 for equal shares of the labels, 1 for those of the stream. Samples are offered in each step of the first
    pass, as in the paper's stream, unless `fill` says otherwise.
    """

    def __init__(self, *, rho=0.0, fill="during_round", **options):
        super().__init__(fill=fill, **options)
        self.memory = DistributionMatchingMemory(self.memory.capacity, rho)
