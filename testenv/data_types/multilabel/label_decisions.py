"""Scores of labels that are answered or not: by class, over all pairs, and by sample.

truth, answered: (N, C) whether a sample has the label, and whether it was answered with it. TP_c, FP_c and FN_c are
counted for each class c. A ratio is 0 where TP is 0; every score is nan without a sample or a class.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Threshold", "answered_labels", "class_f1", "class_f1_macro", "class_precision", "class_recall", "example_f1",
    "example_jaccard", "hamming_loss", "overall_f1", "overall_precision", "overall_recall", "pw_jaccard",
    "subset_accuracy",
]  # fmt: skip

Labels = NDArray[np.uint8] | NDArray[np.bool_]
Counts = NDArray[np.int64]
Values = NDArray[np.float64]
Threshold = float | Literal["zero"]


def answered_labels(scores: NDArray[Any], threshold: Threshold = 0.5) -> NDArray[np.bool_]:
    """(N, C) where the score is above the threshold, not at it. "zero" is that of logits."""
    above: NDArray[np.bool_] = scores > (0.0 if threshold == "zero" else threshold)
    return above


def _counts(truth: Labels, answered: Labels, axis: int = 0) -> tuple[Counts, Counts, Counts]:
    """TP, answered and true labels of each class; with axis 1, of each sample."""
    hits = np.logical_and(truth, answered)
    right, said, true = (np.count_nonzero(each, axis=axis).astype(np.int64) for each in (hits, answered, truth))
    return right, said, true


def _shares(part: Counts, whole: Counts, empty: float = 0.0) -> Values:
    shares = np.full(part.shape, empty)
    np.divide(part, whole, out=shares, where=whole > 0)
    return shares


def _mean(values: Values, of: Labels) -> float:
    return float(values.mean()) if of.size else float("nan")


def _harmonic_mean(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a + b else a + b  # nan stays nan


def class_precision(truth: Labels, answered: Labels) -> float:
    """Class precision (CP): the mean over classes of TP_c / (TP_c + FP_c)."""
    right, said, _ = _counts(truth, answered)
    return _mean(_shares(right, said), truth)


def class_recall(truth: Labels, answered: Labels) -> float:
    """Class recall (CR): the mean over classes of TP_c / (TP_c + FN_c)."""
    right, _, true = _counts(truth, answered)
    return _mean(_shares(right, true), truth)


def class_f1(truth: Labels, answered: Labels) -> float:
    """Class F1 (CF1) of most papers: the harmonic mean of CP and CR."""
    return _harmonic_mean(class_precision(truth, answered), class_recall(truth, answered))


def class_f1_macro(truth: Labels, answered: Labels) -> float:
    """Class F1 (CF1_macro) of KRT's code, and of scikit-learn: the mean over classes of their F1."""
    right, said, true = _counts(truth, answered)
    return _mean(_shares(2 * right, said + true), truth)


def overall_precision(truth: Labels, answered: Labels) -> float:
    """Overall precision (OP): TP / (TP + FP), each summed over classes."""
    right, said, _ = _counts(truth, answered)
    return _mean(_shares(right.sum(), said.sum()), truth)


def overall_recall(truth: Labels, answered: Labels) -> float:
    """Overall recall (OR): TP / (TP + FN), each summed over classes."""
    right, _, true = _counts(truth, answered)
    return _mean(_shares(right.sum(), true.sum()), truth)


def overall_f1(truth: Labels, answered: Labels) -> float:
    """Overall F1 (OF1): 2 TP / (2 TP + FP + FN), each summed over classes."""
    right, said, true = _counts(truth, answered)
    return _mean(_shares(2 * right.sum(), said.sum() + true.sum()), truth)


def example_f1(truth: Labels, answered: Labels) -> float:
    """Mean over samples of the F1 of their sets of labels, 1 where both are empty."""
    right, said, true = _counts(truth, answered, axis=1)
    return _mean(_shares(2 * right, said + true, empty=1.0), truth)


def example_jaccard(truth: Labels, answered: Labels) -> float:
    """Mean over samples of intersection over union of their sets of labels, 1 where both are empty."""
    right, said, true = _counts(truth, answered, axis=1)
    return _mean(_shares(right, said + true - right, empty=1.0), truth)


def subset_accuracy(truth: Labels, answered: Labels) -> float:
    """Share of samples whose labels are all answered, and no others."""
    right, said, true = _counts(truth, answered, axis=1)
    return _mean(((right == said) & (right == true)).astype(np.float64), truth)


def hamming_loss(truth: Labels, answered: Labels) -> float:
    """Share of all pairs of sample and class that are answered wrong."""
    right, said, true = _counts(truth, answered)
    return _mean((said + true - 2 * right) / max(len(truth), 1), truth)


def pw_jaccard(truth: Labels, answered: Labels, seen: Collection[int] | None = None) -> float:
    """Precision-weighted Jaccard similarity: mean over samples of |Y & P| / |Y | P| * |Y & P| / |P|, 0 if P is empty.

    seen: classes that were taught by then, to which the truths Y are limited (Abdelsalam et al. 2021, section 4);
    None: all. The answers P are not.
    """
    if seen is not None:
        truth = truth * np.isin(np.arange(truth.shape[1]), list(seen))
    right, said, true = _counts(truth, answered, axis=1)
    return _mean(_shares(right, said + true - right) * _shares(right, said), truth)
