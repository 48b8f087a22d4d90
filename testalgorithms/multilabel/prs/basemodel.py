"""Replay from a memory that is partitioned by label."""

from ianvs.testalgorithms.multilabel.label_memories import PartitioningReservoirMemory
from ianvs.testalgorithms.multilabel.replay.basemodel import MultilabelReplay


class MultilabelPRS(MultilabelReplay):
    """Partitioning reservoir sampling (Kim et al. 2020, arXiv 2009.03632): see PartitioningReservoirMemory.

    rho: 0 for equal parts for all labels, 1 for parts as in the stream. Samples are offered in each step of the first
    pass, as in the paper's stream, unless `fill` says otherwise.
    """

    def __init__(self, *, rho=0.0, fill="during_round", **options):
        super().__init__(fill=fill, **options)
        self.memory = PartitioningReservoirMemory(self.memory.capacity, rho)
