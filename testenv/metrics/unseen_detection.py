"""How well a learner recognises samples of classes that it was not taught, if an exam asks for them.

All measures are over the samples of all test sets together, after each round: a sample is unseen if the round that
teaches it is still to come. The score of a sample is the extra `unseen`, higher for samples more unlike the learned
ones; for a learner without it that answers -1, scores are 1 for these answers and 0 for others. Rounds after which a
measure is undefined, because nothing is unseen any more, are left out of the mean.
"""

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.metrics.definition import score_metric
from ianvs.exam.metrics.metric import EvaluationRecord

Array = NDArray[np.float64]
NAN = float("nan")


def _scores(record: EvaluationRecord) -> tuple[Array, Array] | None:
    """Return the scores of (seen, unseen) samples; None if there are no samples of one kind, or no scores."""
    scores = record.extras.get("unseen")
    if record.unseen is None:
        return None
    if scores is None:
        if not isinstance(record.y_pred, np.ndarray) or not (record.y_pred == -1).any():
            return None  # a learner that never answers -1
        scores = record.y_pred == -1
    scores = scores.astype(np.float64)
    seen, unseen = scores[~record.unseen], scores[record.unseen]
    return (seen, unseen) if len(seen) and len(unseen) else None


def _right(record: EvaluationRecord) -> tuple[NDArray[np.bool_], NDArray[np.bool_]] | None:
    """Return whether each (seen, unseen) sample is answered right: by its class, or by -1."""
    if record.unseen is None or not isinstance(record.y_true, np.ndarray) or not isinstance(record.y_pred, np.ndarray):
        return None
    right = np.where(record.unseen, record.y_pred == -1, record.y_pred == record.y_true)
    return right[~record.unseen], right[record.unseen]


@score_metric(
    "AUROC",
    formula="(|{(u, s): a_u > a_s}| + |{(u, s): a_u = a_s}| / 2) / (U S) over unseen u and seen s, a the score "
    "`unseen`; mean over rounds",
    source="Hendrycks & Gimpel 2017 (ICLR, arXiv 1610.02136); the area by ranks, Hanley & McNeil 1982",
    pooled=True,
    over_rounds="mean",
)
def auroc(record: EvaluationRecord) -> float:
    """Area under the ROC curve of telling unseen samples from seen ones; .5 is by chance."""
    if (scores := _scores(record)) is None:
        return NAN
    seen, unseen = scores
    ordered = np.sort(seen)
    below, upto = np.searchsorted(ordered, unseen, "left"), np.searchsorted(ordered, unseen, "right")
    return float((below + upto).sum() / (2 * len(seen) * len(unseen)))


@score_metric(
    "FPR95",
    aliases=("FPR_at_95_TPR",),
    formula="|{u: a_u <= t}| / U, t the lowest threshold with |{s: a_s <= t}| / S >= 0.95; mean over rounds",
    source="Liang et al. 2018 (ODIN, ICLR, arXiv 1706.02690), FPR at 95 % TPR, seen samples being the positives",
    higher_is_better=False,
    pooled=True,
    over_rounds="mean",
)
def fpr95(record: EvaluationRecord) -> float:
    """Share of unseen samples that pass for seen where 95 % of the seen ones do."""
    if (scores := _scores(record)) is None:
        return NAN
    seen, unseen = scores
    threshold = np.sort(seen)[-(-95 * len(seen) // 100) - 1]  # ceil(0.95 S) seen samples, in integer arithmetic
    return float((unseen <= threshold).mean())


@score_metric(
    "open_set_accuracy",
    formula="(|{seen n: y_pred[n] = y_true[n]}| + |{unseen n: y_pred[n] = -1}|) / N; mean over rounds",
    source="Bendale & Boult 2015 (open world recognition, CVPR), unknown as one class more",
    pooled=True,
    over_rounds="mean",
)
def open_set_accuracy(record: EvaluationRecord) -> float:
    """Share of samples that are answered right: seen ones by their class, unseen ones by "unseen"."""
    if (right := _right(record)) is None:
        return NAN
    return float(np.concatenate(right).mean())


@score_metric(
    "open_set_balanced_accuracy",
    formula="(share of seen samples answered by their class + share of unseen samples answered -1) / 2; mean over "
    "rounds",
    source="Mendes Junior et al. 2017 (Machine Learning 106), normalized accuracy with lambda_r = 0.5",
    pooled=True,
    over_rounds="mean",
)
def open_set_balanced_accuracy(record: EvaluationRecord) -> float:
    """Mean of the accuracies on seen and on unseen samples, so that who rejects everything, or nothing, gets half."""
    right = _right(record)
    if right is None or not len(right[0]) or not len(right[1]):
        return NAN
    return float((right[0].mean() + right[1].mean()) / 2)
