"""Class-incremental detection: orders of classes, which pictures a round has, and what is said of a round.

A picture may have objects of several rounds; in training it carries boxes of the classes of its round alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ianvs.testenv.data_types.detection.coco_evaluation import mean_over

__all__ = ["alphabetical", "disjoint", "forgetting_points", "old_and_new", "overlapping", "shuffled"]

Positions = NDArray[np.int64]
CL_DETR_SEED = 123


def alphabetical(names: Sequence[str]) -> list[int]:
    """Indices in the order of their names: VOC's own, in which ILOD has its classes (Shmelkov et al. 2017)."""
    return sorted(range(len(names)), key=lambda index: names[index])


def shuffled(num_classes: int, seed: int = CL_DETR_SEED) -> list[int]:
    """CL-DETR's order (Liu et al. 2023): numpy's legacy shuffle of the classes in the order of their ids."""
    return [int(label) for label in np.random.RandomState(seed).permutation(num_classes)]


def overlapping(pictures: Sequence[NDArray[np.int64]], rounds: Sequence[Iterable[int]]) -> list[Positions]:
    """ILOD's rule: round k has every picture with an object of its classes, so a picture may come again.

    pictures: the classes of each. rounds: the classes of each.
    """
    owners = np.repeat(np.arange(len(pictures)), [len(labels) for labels in pictures])
    labels = np.concatenate([*pictures, np.empty(0)])
    return [np.unique(owners[np.isin(labels, list(classes))]) for classes in rounds]


def disjoint(
    pictures: Sequence[NDArray[np.int64]], rounds: Sequence[Iterable[int]], seed: int = CL_DETR_SEED
) -> list[Positions]:
    """CL-DETR's rule: of the shuffled pictures each round gets a share in proportion to how many classes it has.

    As there, pictures of its share without an object of its classes are left out. Where shares are no whole numbers, a
    round has up to one picture more than in CL-DETR, which drops the remainder.
    """
    order = np.random.RandomState(seed).permutation(len(pictures))
    groups = [list(classes) for classes in rounds]
    sizes = np.cumsum([len(group) for group in groups])
    shares = np.split(order, (len(order) * sizes // sizes[-1])[:-1])
    having = overlapping(pictures, groups)
    return [np.intersect1d(share, found) for share, found in zip(shares, having, strict=True)]


def old_and_new(by_class: NDArray[np.float64], rounds: Sequence[Iterable[int]]) -> tuple[float, float]:
    """(AP_old, AP_new) after the last of these rounds: means of AP_c over classes of rounds before it, and of its own.

    by_class: (C,) AP_c after it. AP_old is nan where there is one round only.
    """
    return mean_over(by_class, [label for group in rounds[:-1] for label in group]), mean_over(by_class, rounds[-1])


def forgetting_points(first: NDArray[np.float64], last: NDArray[np.float64], classes: Iterable[int]) -> float:
    """FPP (CL-DETR): mean of AP_c over the classes of round 1, after round 1 minus after the last. (C,) each."""
    labels = list(classes)
    return mean_over(first, labels) - mean_over(last, labels)
