"""Fine-tuning: what happens if nothing is done against forgetting."""

from ianvs.testalgorithms.segmentation import SegmentationLearner


class FineTuning(SegmentationLearner):
    """Every domain trains the whole encoder and a decoder of its own (baseline FT of Garg et al. 2022).

    Old decoders are frozen and not run. The encoder's batch normalisations are shared: they follow the new domain.
    A new decoder begins as the last one stands; in the authors' code as it is drawn, `initialise: false`.
    """
