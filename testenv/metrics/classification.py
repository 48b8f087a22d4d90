"""Scores of one evaluation, from counts of each class: accuracy, F1.

For class c: TP_c samples are of it and predicted as it, FN_c are of it and predicted otherwise, FP_c are predicted as
it and of another one. An answer that is no class is an FN, and an FP of none. Without any sample every score is nan.
"""

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import InvalidValue
from ianvs.exam.metrics.definition import mean, score_metric
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.metrics.ragged import Ragged


def ratio(numerator: NDArray[np.int64], denominator: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the elementwise ratio, nan where the denominator is 0."""
    ratio = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=ratio, where=denominator > 0)
    return ratio


def _mean_of_present(values: NDArray[np.float64]) -> float:
    return mean(values[~np.isnan(values)])


def _recalls(record: EvaluationRecord) -> NDArray[np.float64]:
    counts = record.class_counts
    return ratio(counts.hits, counts.true)


def _right(record: EvaluationRecord) -> NDArray[np.bool_]:
    return record.by_sample("accuracy", lambda whole: np.equal(*whole.class_indices))


@score_metric(
    "accuracy",
    aliases=("Accuracy", "acc", "pixel_accuracy"),
    formula="sum_c TP_c / N",
    source="Sokolova & Lapalme 2009",
    mean_of=_right,
)
def accuracy(record: EvaluationRecord) -> float:
    """Share of samples (pixels of segmentation masks) that are predicted right."""
    if record.counts is None:
        right = _right(record)
        hits, total = int(np.count_nonzero(right)), right.size
    else:
        hits, total = int(record.counts.trace()), int(record.counts.sum())
    return hits / total if total else float("nan")


@score_metric(
    "balanced_accuracy",
    formula="mean_c TP_c / (TP_c + FN_c) over classes with samples",
    source="Brodersen et al. 2010",
)
def balanced_accuracy(record: EvaluationRecord) -> float:
    """Mean of the per-class accuracies over classes that have samples."""
    return _mean_of_present(_recalls(record))


@score_metric(
    "f1",
    aliases=("F1", "f1_macro"),
    formula="mean_c 2 TP_c / (2 TP_c + FP_c + FN_c) over classes in truth or prediction",
    source="van Rijsbergen 1979; macro average as 'averaged F1' in Opitz & Burst 2019",
)
def f1(record: EvaluationRecord) -> float:
    """Macro F1 of each test set: mean over the classes that it has or that are predicted, which then count 0."""
    counts = record.class_counts
    return _mean_of_present(ratio(2 * counts.hits, counts.predicted + counts.true))


@score_metric(
    "exact_match",
    formula="|{n : y_pred[n] == y_true[n]}| / N",
    source="Rajpurkar et al. 2016, section 6.1, without its normalisation of text",
)
def exact_match(record: EvaluationRecord) -> float:
    """Share of predictions equal to their label, whatever labels are (texts too); nothing is normalised."""
    if record.y_true is None or record.y_pred is None:
        raise InvalidValue(
            "exact_match compares labels one by one, and only their confusion matrix is stored", "unfit-metric"
        )
    kind = getattr(record.y_true, "dtype", np.dtype(object)).kind
    numbers = kind == "f" and len(record.y_true) > 0
    if np.ndim(record.y_true) > 1 or numbers or isinstance(record.y_true, Ragged):
        raise InvalidValue(
            "exact_match is for one label or text a sample, and answers of the same kind", "unfit-metric"
        )
    if len(record.y_true) != len(record.y_pred):
        raise InvalidValue(
            f"there are {len(record.y_true)} labels and {len(record.y_pred)} predictions", "unfit-metric"
        )
    both = zip(record.y_true, record.y_pred, strict=True)
    return mean(record.by_sample("exact_match", lambda _: np.array([float(np.array_equal(*pair)) for pair in both])))


@score_metric(
    "linear_probe_accuracy",
    asks=("linear_probe",),
    formula="|{n : probe[n] == y_true[n]}| / N, probe a linear classifier trained on the learner's frozen features",
    source="Alain & Bengio 2016 (arXiv 1610.01644); of continual learners Davari et al. 2022 (CVPR, arXiv 2203.13381)",
)
def linear_probe_accuracy(record: EvaluationRecord) -> float:
    """Share of samples that a linear probe on the learner's frozen features predicts right; nan without a probe.

    It falls only if the representation forgets, whereas accuracy falls also if no more than the last layer does.
    """
    if record.probe is None or record.y_true is None:
        return float("nan")
    if len(record.y_true) != len(record.probe):
        raise InvalidValue(
            f"there are {len(record.y_true)} labels and {len(record.probe)} predictions of the probe", "unfit-metric"
        )
    return mean(np.equal(record.y_true, record.probe).astype(np.float64))


@score_metric(
    "per_class_accuracy",
    formula="TP_c / (TP_c + FN_c) for each class c with samples",
    source="Sokolova & Lapalme 2009 (recall)",
    mapping=True,
)
def per_class_accuracy(record: EvaluationRecord) -> dict[str, float]:
    """Share of each class's samples that are predicted right; a class without samples has none."""
    values = _recalls(record)
    present = np.flatnonzero(~np.isnan(values))
    return {
        record.classes[label]: value for label, value in zip(present.tolist(), values[present].tolist(), strict=True)
    }


@score_metric(
    "task_incremental_accuracy",
    asks=("task_scores",),
    aliases=("TIL_accuracy",),
    formula="|{n: argmax_{c in C_j} s_n(c) = y_n}| / N, s_n the learner's scores, C_j the classes of test set j",
    source="Task-IL beside Class-IL of one model, Buzzega et al. 2020 (DER, arXiv 2004.07211); the scenarios, van de "
    "Ven & Tolias 2019 (arXiv 1904.07734)",
)
def task_incremental_accuracy(record: EvaluationRecord) -> float:
    """Accuracy of answers chosen among the classes of the sample's own task, which the learner is not told."""
    labels = record.extras.get("task_labels")
    if labels is None or record.y_true is None or not len(labels):
        return float("nan")
    return float(np.mean(labels == record.y_true))


METRICS = (
    accuracy, balanced_accuracy, f1, exact_match, linear_probe_accuracy, per_class_accuracy, task_incremental_accuracy,
)  # fmt: skip
