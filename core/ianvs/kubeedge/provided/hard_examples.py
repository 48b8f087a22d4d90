"""Built-in hard-example filters: called with a result, they return True if the sample is hard."""

import math
import random
from collections.abc import Sequence

from ianvs.kubeedge.provided.class_factory import ClassFactory, ClassType

__all__ = ["CrossEntropyFilter", "IBTFilter", "RandomFilter", "ThresholdFilter"]


def _box_scores(result: Sequence[Sequence[float]] | None) -> list[float] | None:
    """Return entry 4 of each box; None if there is no box, or one has fewer than five entries."""
    if result is None or not len(result) or any(len(box) <= 4 for box in result):
        return None
    return [float(box[4]) for box in result]


def _probabilities(values: list[float]) -> bool:
    return all(0 <= value <= 1 for value in values)


@ClassFactory.register(ClassType.HEM, alias="Threshold")
class ThresholdFilter:
    """A sample is hard if the mean score of the boxes is below `threshold`."""

    def __init__(self, threshold: float = 0.5, **_: object) -> None:
        self.threshold = float(threshold)

    def __call__(self, infer_result: Sequence[Sequence[float]] | None = None) -> bool:
        scores = _box_scores(infer_result)
        return scores is not None and sum(scores) / len(scores) < self.threshold


@ClassFactory.register(ClassType.HEM, alias="CrossEntropy")
class CrossEntropyFilter:
    """A sample is hard if 1 - H(p) / ln n is below `threshold_cross_entropy`, H the entropy of the n class
    probabilities.
    """

    def __init__(self, threshold_cross_entropy: float = 0.5, **_: object) -> None:
        self.threshold_cross_entropy = float(threshold_cross_entropy)

    def __call__(self, infer_result: Sequence[float] | None = None) -> bool:
        p = [] if infer_result is None else [float(value) for value in infer_result]
        if len(p) < 2 or not _probabilities(p):
            return False
        certainty = 1 + sum(value * math.log(value) for value in p if value > 0) / math.log(len(p))
        return certainty < self.threshold_cross_entropy


@ClassFactory.register(ClassType.HEM, alias="IBT")
class IBTFilter:
    """A sample is hard if at least a share of 1 - `threshold_img` of the boxes scores `threshold_box` or less."""

    def __init__(self, threshold_img: float = 0.5, threshold_box: float = 0.5, **_: object) -> None:
        self.threshold_img, self.threshold_box = float(threshold_img), float(threshold_box)

    def __call__(self, infer_result: Sequence[Sequence[float]] | None = None) -> bool:
        scores = _box_scores(infer_result)
        if scores is None or not _probabilities(scores):
            return False
        return sum(score <= self.threshold_box for score in scores) / len(scores) >= 1 - self.threshold_img


@ClassFactory.register(ClassType.HEM, alias="Random")
class RandomFilter:
    """A sample is hard at random, a share of `random_ratio`."""

    def __init__(self, random_ratio: float = 0.3, **_: object) -> None:
        self.random_ratio = float(random_ratio)

    def __call__(self, *_: object, **__: object) -> bool:
        return random.random() < self.random_ratio
