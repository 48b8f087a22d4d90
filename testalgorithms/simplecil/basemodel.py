"""Prototypes of a frozen network."""

from ianvs.testalgorithms.ncm.basemodel import NCM


class SimpleCIL(NCM):
    """SimpleCIL (Zhou et al. 2023, arXiv 2303.07338, eq. 5): argmax_c m_c.f / |m_c|, m_c the mean feature of class c.

    It is NCM by cosine: nothing is trained, and the order of classes does not matter.
    """

    def __init__(self, **training):
        super().__init__(distance="cosine", **training)
