"""The scores of several labels as metrics: from truths and scores (N, C), over the classes that a record is about."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat

from ianvs.base.errors import ConfigError
from ianvs.config.spec import MetricSpec
from ianvs.exam.data.options import Options, check_options
from ianvs.exam.metrics.metric import EvaluationRecord, Metric
from ianvs.testenv.data_types.multilabel import average_precision as ranking
from ianvs.testenv.data_types.multilabel import label_decisions as decisions

__all__ = ["MULTILABEL"]


Score = Callable[..., Any]


class RankingOptions(Options):
    """rule: how average precision is computed; see `average_precision.Rule`."""

    rule: ranking.Rule = "groups"


class DecisionOptions(Options):
    """threshold: a score above it is an answer; "zero" for logits."""

    threshold: FiniteFloat | Literal["zero"] = 0.5


def _of_its_classes(record: EvaluationRecord) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """(N, K) truths and scores of the class list."""
    truth, scores = record.y_true, record.y_pred
    if not (isinstance(truth, np.ndarray) and isinstance(scores, np.ndarray) and truth.ndim == scores.ndim == 2):
        raise ValueError("this metric is for samples with several labels; it reads truths and scores (N, C)")
    classes = slice(None) if record.labels is None else list(record.labels)
    return truth[:, classes], scores[:, classes]


def _of_scores(record: EvaluationRecord, *, score: Score, rule: ranking.Rule = "groups") -> float:
    return float(score(*_of_its_classes(record), rule))


def _by_class(record: EvaluationRecord, *, score: Score, rule: ranking.Rule = "groups") -> Mapping[str, float]:
    values = score(*_of_its_classes(record), rule)
    classes = range(len(values)) if record.labels is None else record.labels
    return {record.classes[c]: float(v) for c, v in zip(classes, values, strict=True) if not np.isnan(v)}


def _of_decisions(record: EvaluationRecord, *, score: Score, threshold: decisions.Threshold = 0.5) -> float:
    truth, scores = _of_its_classes(record)
    return float(score(truth, decisions.answered_labels(scores, threshold)))


def _metric(name: str, score: Score, formula: str, source: str, read: Score = _of_decisions, up: bool = True) -> Metric:
    """A metric with options, summed up by the docstring of its score. up: whether higher is better."""
    options = DecisionOptions if read is _of_decisions else RankingOptions
    summary = (inspect.getdoc(score) or "").partition("\n")[0]
    function, mapping = partial(read, score=score), read is _by_class
    plain = Metric(name, "score", summary, up, source, formula, function=function, mapping=mapping)

    def configured(spec: MetricSpec) -> Metric:
        given, problems = check_options(options, spec.options, f"metric '{name}'", spec.place, {})
        if given is None:
            raise ConfigError(problems)
        return replace(plain, function=partial(read, score=score, **given.model_dump()))

    return replace(plain, configure=configured)


_WU = "Wu & Zhou 2017 (ICML, arXiv 1609.00288)"
_ZHANG = "Zhang & Zhou 2014 (TKDE 26)"
_AP = "AP_c = sum_g (R_g - R_(g-1)) P_g over groups g of equal scores, best first; by `rule` voc07 or krt"
_EVERINGHAM = "Everingham et al. 2010 (IJCV 88), section 4.2; groups as in scikit-learn"

MULTILABEL = (
    _metric("mAP", ranking.mean_average_precision, f"mean_c AP_c, {_AP}", _EVERINGHAM, _of_scores),
    _metric("mAP_micro", ranking.micro_average_precision, "AP of all pairs (n, c)", "scikit-learn", _of_scores),
    _metric("AP_by_class", ranking.average_precisions, _AP, _EVERINGHAM, _by_class),
    _metric("CP", decisions.class_precision, "mean_c TP_c / (TP_c + FP_c)", _WU),
    _metric("CR", decisions.class_recall, "mean_c TP_c / (TP_c + FN_c)", _WU),
    _metric("CF1", decisions.class_f1, "2 CP CR / (CP + CR)", "Chen et al. 2019 (ML-GCN, CVPR, arXiv 1904.03582)"),
    _metric("CF1_macro", decisions.class_f1_macro, "mean_c 2 TP_c / (2 TP_c + FP_c + FN_c)", f"{_WU}; KRT's code"),
    _metric("OP", decisions.overall_precision, "sum_c TP_c / sum_c (TP_c + FP_c)", _WU),
    _metric("OR", decisions.overall_recall, "sum_c TP_c / sum_c (TP_c + FN_c)", _WU),
    _metric("OF1", decisions.overall_f1, "2 OP OR / (OP + OR)", _WU),
    _metric("example_f1", decisions.example_f1, "mean_n 2 |Y & P| / (|Y| + |P|)", _ZHANG),
    _metric("example_jaccard", decisions.example_jaccard, "mean_n |Y & P| / |Y u P|", _ZHANG),
    _metric("subset_accuracy", decisions.subset_accuracy, "mean_n [Y = P]", _ZHANG),
    _metric("hamming_loss", decisions.hamming_loss, "mean_n |Y xor P| / C", _ZHANG, up=False),
    _metric(
        "pw_jaccard", decisions.pw_jaccard, "mean_n |Y & P| / |Y u P| * |Y & P| / |P|, 0 if P is empty",
        "Abdelsalam et al. 2021 (IIRC, CVPR, arXiv 2012.12477)",
    ),
)  # fmt: skip
