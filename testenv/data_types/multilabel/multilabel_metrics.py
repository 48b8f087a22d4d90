"""Metrics of several labels, from labels and scores (N, C), over the classes of a record.

TP_c, FP_c and FN_c are counted for each class c. A ratio is 0 if TP is 0; every score is nan without a sample or a
class.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat

from ianvs.base.errors import InvalidValue, closest
from ianvs.config.spec import MetricSpec
from ianvs.exam.data.options import Options, metric_options
from ianvs.exam.metrics.metric import EvaluationRecord, Metric
from ianvs.testenv.data_types.multilabel import average_precision as ranking

Counts = NDArray[np.int64]
Values = NDArray[np.float64]
Formula = Callable[..., Any]
"""A function of TP, answered labels, true labels and their maximum number: by class, by sample, or over all pairs."""


class RankingOptions(Options):
    """rule: how average precision is computed; see `average_precision.Rule`."""

    rule: ranking.Rule = "groups"


class SeenOptions(RankingOptions):
    """samples: of "all" test samples, or of those "containing" a class that was taught by then (as KRT does)."""

    samples: Literal["all", "containing"] = "all"


class FrequencyOptions(RankingOptions):
    """classes: names of those that are frequent, rare, or between, which the user decides."""

    classes: list[str] = Field(min_length=1)


class DecisionOptions(Options):
    """threshold: a score above it is an answer; "zero" for logits."""

    threshold: FiniteFloat | Literal["zero"] = 0.5


def _of_classes(record: EvaluationRecord, classes: tuple[int, ...] | None) -> tuple[NDArray[np.uint8], Values]:
    """Return labels and scores (N, K) of `classes`; None: of all classes."""
    truth, scores = record.y_true, record.y_pred
    if not (isinstance(truth, np.ndarray) and isinstance(scores, np.ndarray)) or (
        truth.dtype != np.uint8 or truth.ndim != 2 or truth.shape != scores.shape
    ):
        raise InvalidValue(
            "this metric is for samples with several labels; it reads truths and scores (N, C)", "unfit-metric"
        )
    chosen = slice(None) if classes is None else list(classes)
    return truth[:, chosen], scores[:, chosen]


def _ranked(record: EvaluationRecord, *, score: Callable[..., Any], rule: ranking.Rule = "groups") -> float:
    return float(score(*_of_classes(record, record.labels), rule))


def _by_class(record: EvaluationRecord, *, rule: ranking.Rule = "groups") -> Mapping[str, float]:
    values = ranking.average_precisions(*_of_classes(record, record.labels), rule)
    classes = range(len(values)) if record.labels is None else record.labels
    return {record.classes[c]: float(v) for c, v in zip(classes, values, strict=True) if not np.isnan(v)}


def _of_seen(record: EvaluationRecord, *, rule: ranking.Rule = "groups", samples: str = "all") -> float:
    truth, scores = _of_classes(record, record.labels if record.seen is None else record.seen)
    rows = truth.any(axis=1) | (samples == "all")
    return ranking.mean_average_precision(truth[rows], scores[rows], rule)


def _of_named(record: EvaluationRecord, *, rule: ranking.Rule = "groups", classes: Sequence[str] = ()) -> float:
    for name in classes:
        if name not in record.classes:
            raise InvalidValue(f"there is no class '{name}'.{closest(name, record.classes)}", "unfit-metric")
    taught = range(len(record.classes)) if record.seen is None else record.seen
    named = tuple(c for c in taught if record.classes[c] in classes)
    return ranking.mean_average_precision(*_of_classes(record, named), rule)


def _decided(
    record: EvaluationRecord, *, formula: Formula, axis: int | None, limited: bool = False, threshold: Any = 0.5
) -> float:
    """Return a score of decisions.

    axis: 0: by class, 1: by sample, None: over all pairs. limited: whether labels are limited to the classes taught by
    then.
    """
    truth, scores = _of_classes(record, record.labels)
    if limited and record.seen is not None:
        classes = np.arange(len(record.classes)) if record.labels is None else record.labels
        truth = truth * np.isin(classes, record.seen)
    if not truth.size:
        return float("nan")
    answered = scores > (0.0 if threshold == "zero" else threshold)
    counts = [np.asarray(np.count_nonzero(each, axis)) for each in (truth.astype(bool) & answered, answered, truth)]
    return float(np.mean(formula(*counts, truth.size // counts[0].size)))


def _ratio(part: Counts, whole: Counts, empty: float = 0.0) -> Values:
    shares = np.full(part.shape, empty)
    np.divide(part, whole, out=shares, where=whole > 0)
    return shares


def _f1_of_means(right: Counts, pred: Counts, true: Counts, _: int) -> float:
    precision, recall = _ratio(right, pred).mean(), _ratio(right, true).mean()
    return float(2 * precision * recall / (precision + recall)) if precision + recall else 0.0


_Read = Callable[..., float | Mapping[str, float]]


def _metric(
    name: str, summary: str, formula: str, source: str, read: _Read, options: type[Options], **more: Any
) -> Metric:
    def function(**given: Any) -> _Read:
        reader = partial(read, **given)
        reader.__doc__ = summary
        return reader

    plain = Metric(name, "score", summary, source=source, formula=formula, function=function(), **more)

    def configured(spec: MetricSpec) -> Metric:
        given = metric_options(options, name, spec)
        return replace(plain, function=function(**given.model_dump()))

    return replace(plain, configure=configured)


def _decision(
    name: str, summary: str, written: str, source: str, axis: int | None, formula: Formula, **more: Any
) -> Metric:
    limited = more.pop("limited", False)
    read = partial(_decided, formula=formula, axis=axis, limited=limited)
    return _metric(name, summary, written, source, read, DecisionOptions, **more)


_WU = "Wu & Zhou 2017 (ICML, arXiv 1609.00288)"
_ZHANG = "Zhang & Zhou 2014 (TKDE 26)"
_AP = "AP_c = sum_g (R_g - R_(g-1)) P_g over groups g of equal scores, best first; or by the option rule"
_EVERINGHAM = "Everingham et al. 2010 (IJCV 88), section 4.2; groups as in scikit-learn"
_KRT = "Dong et al. 2023 (KRT, ICCV)"
_IIRC = "Abdelsalam et al. 2021 (IIRC, CVPR, arXiv 2012.12477), section 4"
_KIM = "Kim et al. 2020 (PRS, ECCV, arXiv 2009.03632)"
_MAP = partial(_ranked, score=ranking.mean_average_precision)
_MICRO = partial(_ranked, score=ranking.micro_average_precision)
_SEEN = "mean of AP_c over classes c taught by then"

MULTILABEL = (
    _metric("mAP", "Mean AP over classes with positives.", f"mean_c AP_c, {_AP}", _EVERINGHAM, _MAP, RankingOptions),
    _metric("mAP_micro", "AP of all pairs of sample and class.", "AP of all (n, c)", "scikit-learn", _MICRO,
            RankingOptions),
    _metric("AP_by_class", "AP of each class with positives.", _AP, _EVERINGHAM, _by_class, RankingOptions,
            mapping=True),
    _metric("mAP_seen", "mAP over all classes taught, after the last round.", _SEEN, _KRT, _of_seen, SeenOptions,
            aliases=("last_mAP",), pooled=True),
    _metric("average_mAP", "Mean over rounds of mAP over all classes taught by then.", f"mean_k of: {_SEEN}", _KRT,
            _of_seen, SeenOptions, pooled=True, over_rounds="mean"),
    *(
        _metric(f"mAP_{often}", f"mAP over the {often} classes taught, after the last round; `classes` names them.",
                f"mean of AP_c over {often} classes c taught by then", _KIM, _of_named, FrequencyOptions, pooled=True)
        for often in ("majority", "moderate", "minority")
    ),
    _decision("CP", "Class precision: mean of the precision of classes.", "mean_c TP_c / (TP_c + FP_c)", _WU, 0,
              lambda right, pred, true, total: _ratio(right, pred)),
    _decision("CR", "Class recall: mean of the recall of classes.", "mean_c TP_c / (TP_c + FN_c)", _WU, 0,
              lambda right, pred, true, total: _ratio(right, true)),
    _decision("CF1", "Class F1 of most papers: harmonic mean of CP and CR.", "2 CP CR / (CP + CR)",
              "Chen et al. 2019 (ML-GCN, CVPR, arXiv 1904.03582)", 0, _f1_of_means),
    _decision("CF1_macro", "Class F1 of KRT's code and of scikit-learn: mean of the F1 of classes.",
              "mean_c 2 TP_c / (2 TP_c + FP_c + FN_c)", f"{_WU}; KRT's code", 0,
              lambda right, pred, true, total: _ratio(2 * right, pred + true)),
    _decision("OP", "Overall precision, of all pairs of sample and class.", "sum_c TP_c / sum_c (TP_c + FP_c)", _WU,
              None, lambda right, pred, true, total: _ratio(right, pred)),
    _decision("OR", "Overall recall, of all pairs of sample and class.", "sum_c TP_c / sum_c (TP_c + FN_c)", _WU,
              None, lambda right, pred, true, total: _ratio(right, true)),
    _decision("OF1", "Overall F1, of all pairs of sample and class.", "2 OP OR / (OP + OR)", _WU,
              None, lambda right, pred, true, total: _ratio(2 * right, pred + true)),
    _decision("example_f1", "Mean F1 of the sets of labels, 1 where both are empty.",
              "mean_n 2 |Y & P| / (|Y| + |P|)", _ZHANG, 1,
              lambda right, pred, true, total: _ratio(2 * right, pred + true, 1.0)),
    _decision("example_jaccard", "Mean intersection over union of the sets of labels, 1 where both are empty.",
              "mean_n |Y & P| / |Y u P|", _ZHANG, 1,
              lambda right, pred, true, total: _ratio(right, pred + true - right, 1.0)),
    _decision("subset_accuracy", "Share of samples with exactly the right labels.", "mean_n [Y = P]", _ZHANG, 1,
              lambda right, pred, true, total: (right == pred) & (right == true)),
    _decision("hamming_loss", "Share of pairs of sample and class that are answered wrong.",
              "mean_n |Y xor P| / C", _ZHANG, None,
              lambda right, pred, true, total: (pred + true - 2 * right) / total, higher_is_better=False),
    _decision("pw_jaccard", "Precision-weighted Jaccard of sets of labels, truths limited to those taught by then.",
              "mean_n |Y & P| / |Y u P| * |Y & P| / |P|, 0 if P is empty", _IIRC, 1,
              lambda right, pred, true, total: _ratio(right, pred + true - right) * _ratio(right, pred), limited=True),
)  # fmt: skip
