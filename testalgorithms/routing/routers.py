"""Routers by how sure the edge model is, and one that draws."""

import numpy as np

from ianvs.base.errors import PluginError


def _required(probabilities, caller):
    if probabilities is None:
        raise PluginError(
            f"{caller} looks at what the edge says: set `hard_example_mining_mode: inference-then-mining`.",
            code="refused-arguments",
        )
    return probabilities


class ThresholdRouter:
    """A sample is hard if its most probable class is less probable than `threshold` (Ianvs's IBT and Threshold)."""

    def __init__(self, *, threshold: float = 0.9):
        self.threshold = threshold

    def hard(self, data, probabilities):
        return _required(probabilities, "ThresholdRouter").max(axis=1) < self.threshold


class CrossEntropyRouter:
    """A sample is hard if the edge model's confidence is below `threshold` (Ianvs's CrossEntropy).

    Confidence is 1 - H(p) / log C: 0 where all C classes of the exam are equally probable, 1 where one is certain.
    """

    def __init__(self, *, threshold: float = 0.7):
        self.threshold = threshold

    def hard(self, data, probabilities):
        p = _required(probabilities, "CrossEntropyRouter")
        entropy = -np.sum(p * np.log(np.where(p > 0, p, 1.0)), axis=1)
        return 1 - entropy / np.log(p.shape[1]) < self.threshold


class RandomRouter:
    """The share `share` of samples is sent to the cloud, whichever they are: what any other router has to beat.

    0 answers everything at the edge, 1 everything in the cloud. Knows how to do so in both modes.
    """

    def __init__(self, *, share: float = 0.5):
        self.share = share

    def hard(self, data, probabilities, *, generator):
        return generator.random(len(data)) < self.share
