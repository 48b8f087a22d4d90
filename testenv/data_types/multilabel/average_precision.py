"""Average precision: how well scores rank the samples with a label before those without it.

truth: (N, C) 0 or 1. scores: (N, C), higher is more likely; a sample with -inf is never answered with the class, so a
class without any answer has an AP of 0. Scores are neither nan nor +inf.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Rule = Literal["groups", "voc07", "krt"]
"""How AP is computed. "groups": samples of equal scores are answered together, as in scikit-learn.

"voc07": the mean over 11 recalls of the best precision from there on (Everingham et al. 2010, section 4.2); of equal
scores, the earlier sample comes first. "krt": the code of KRT (Dong et al. 2023): equal scores are in the order of
numpy's argsort, reversed, 1e-8 is added to the number of positives, -inf is a score as any other, and a class without
positives has 0.
"""

Truth = NDArray[np.uint8] | NDArray[np.bool_]
Scores = NDArray[np.floating[Any]]
Values = NDArray[np.float64]


def average_precisions(truth: Truth, scores: Scores, rule: Rule = "groups") -> Values:
    """Average precision (AP) of each class, (C,); nan without positives."""
    precision_of = {"groups": _of_groups, "voc07": _of_eleven_points, "krt": _as_krt}[rule]
    return np.array(
        [precision_of(truth[:, c].astype(bool), scores[:, c]) for c in range(truth.shape[1])], dtype=np.float64
    )


def mean_average_precision(truth: Truth, scores: Scores, rule: Rule = "groups") -> float:
    """Mean average precision: the mean of AP over classes that have positives; nan if none has."""
    values = average_precisions(truth, scores, rule)
    present = values[~np.isnan(values)]
    return float(present.mean()) if present.size else float("nan")


def micro_average_precision(truth: Truth, scores: Scores, rule: Rule = "groups") -> float:
    """AP of all pairs of sample and class as one list; nan without positives."""
    return mean_average_precision(truth.reshape(-1, 1), scores.reshape(-1, 1), rule)


def _best_first(scores: Scores) -> NDArray[np.int64]:
    """Return the positions of the answered samples, by falling score; of equal scores, the earlier one first."""
    answered = np.flatnonzero(scores > -np.inf)
    return answered[np.argsort(-scores[answered], kind="stable")]


def _of_groups(truth: NDArray[np.bool_], scores: Scores) -> float:
    positives = np.count_nonzero(truth)
    if not positives:
        return float("nan")
    order = _best_first(scores)
    ends = np.flatnonzero(np.diff(scores[order], append=-np.inf))  # the last sample of each group
    right = np.cumsum(truth[order])[ends]
    return float((np.diff(right, prepend=0) * right / (ends + 1)).sum() / positives)


def _of_eleven_points(truth: NDArray[np.bool_], scores: Scores) -> float:
    positives = np.count_nonzero(truth)
    if not positives:
        return float("nan")
    right = np.cumsum(truth[_best_first(scores)])
    precision = right / np.arange(1, len(right) + 1)
    # The precision is 0 at recalls that are never reached.
    best = np.append(np.maximum.accumulate(precision[::-1])[::-1], 0.0)
    return float(best[np.searchsorted(10 * right, np.arange(11) * positives)].mean())  # exact, as these are integers


def _as_krt(truth: NDArray[np.bool_], scores: Scores) -> float:
    hits = truth[np.argsort(scores)[::-1]]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precision[hits].sum() / (np.count_nonzero(hits) + 1e-8))
