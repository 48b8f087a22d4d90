"""Feature extraction: the encoder stays as the first domain made it."""

from ianvs.testalgorithms.segmentation import SegmentationLearner


class FeatureExtraction(SegmentationLearner):
    """From the second domain on, only the new decoder learns (baseline FE of Garg et al. 2022).

    keep_statistics=False: the encoder's batch normalisations still take up the new domain's statistics, as in the
    authors' code, so that old domains lose even here. True keeps them.
    initialise: whether the new decoder begins as the last one stands. In the authors' code not.
    """

    def __init__(self, *, keep_statistics=False, **training):
        super().__init__(**training)
        self.keep_statistics = keep_statistics

    def rates(self, domain):
        return (0.0 if domain else self.learning_rate), self.learning_rate

    def step(self, batch):
        if self.keep_statistics and batch.domain:
            self.network.units.eval()
        super().step(batch)
