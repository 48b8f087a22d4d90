"""Scores of boxes as metrics, over the classes of a record, without those that have no true box."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ianvs.base.errors import InvalidValue
from ianvs.config.spec import MetricSpec
from ianvs.exam.data.options import Options, metric_options
from ianvs.exam.metrics.definition import matrix_metric, mean
from ianvs.exam.metrics.metric import EvaluationRecord, Metric
from ianvs.exam.metrics.ragged import Ragged
from ianvs.testenv.data_types.detection import coco_evaluation as coco
from ianvs.testenv.data_types.detection import voc_evaluation as voc
from ianvs.testenv.data_types.detection.box_matches import BoxMatches
from ianvs.testenv.data_types.detection.box_overlaps import ANSWER, TRUTH, boxes_of

ByClass = Callable[..., NDArray[np.float64]]
_LIU = "Liu et al. 2023 (CL-DETR, CVPR, arXiv 2304.03110)"


class VocOptions(Options):
    """iou, points, pixels: as in `voc_matches` and `voc_precision`."""

    iou: float = Field(0.5, gt=0, le=1)
    points: voc.Points = "all_points"
    pixels: voc.Pixels = "real"


class F1Options(Options):
    """iou, score, pixels: as in `f1_matches`."""

    iou: float = Field(0.5, gt=0, le=1)
    score: float = Field(0.5, allow_inf_nan=False)
    pixels: voc.Pixels = "real"


class ArrivalOptions(Options):
    """iou: 50 or 75, the percent of IoU that an answer needs; None: COCO's mean over thresholds."""

    iou: Literal[50, 75] | None = None


def _tested(record: EvaluationRecord) -> list[int]:
    return list(range(len(record.classes)) if record.labels is None else record.labels)


def _matches(record: EvaluationRecord, compute: Callable[..., BoxMatches], **options: Any) -> BoxMatches:
    """Return the matches of a record, computed once for all metrics with the same matching, also when images are
    left out.
    """

    def matched(whole: EvaluationRecord) -> Any:
        truth, answers = whole.y_true, whole.y_pred
        if not (isinstance(truth, Ragged) and isinstance(answers, Ragged)):
            raise InvalidValue("this metric is for images with boxes (data type detection)", "unfit-metric")
        return compute(boxes_of(truth, TRUTH), boxes_of(answers, ANSWER), _tested(whole), len(truth), **options)

    return cast("BoxMatches", record.by_sample(f"{compute.__name__} {options}", matched))


def coco_by_class(record: EvaluationRecord, score: ByClass = coco.coco_precision) -> NDArray[np.float64]:
    return score(_matches(record, coco.coco_matches))


def voc_by_class(
    record: EvaluationRecord, iou: float = 0.5, points: voc.Points = "all_points", pixels: voc.Pixels = "real"
) -> NDArray[np.float64]:
    return voc.voc_precision(_matches(record, voc.voc_matches, iou=iou, pixels=pixels), points)


def f1_by_class(record: EvaluationRecord, **options: Any) -> NDArray[np.float64]:
    return voc.f1_scores(_matches(record, voc.f1_matches, **options))


def pcb_by_class(record: EvaluationRecord) -> NDArray[np.float64]:
    return voc.f1_scores(_matches(record, voc.pcb_matches))


def arrived_by_class(record: EvaluationRecord, which: str, iou: int | None = None) -> NDArray[np.float64]:
    """Return the score of each class in a group of classes.

    which: "seen": the classes taught by then (all if no classes arrive), "old": those before the last round, "new": the
    others.
    """
    classes, old = _tested(record), set(record.seen_before or ())
    seen = set(classes if which == "seen" and record.seen is None else record.seen or ())
    wanted = {"seen": seen, "old": old, "new": seen - old}[which]
    values = coco_by_class(record, partial(coco.coco_precision, thresholds=_AT.get(iou or 0, slice(None))))
    return values[np.isin(classes, list(wanted))]


def _mean(record: EvaluationRecord, by_class: ByClass, **options: Any) -> float:
    values = by_class(record, **options)
    return mean(values[~np.isnan(values)])


def _parts(record: EvaluationRecord, by_class: ByClass) -> Mapping[str, float]:
    return {record.classes[c]: float(v) for c, v in zip(_tested(record), by_class(record), strict=True)}


def _metric(
    name: str, summary: str, formula: str, source: str, by_class: ByClass, options: type[Options] | None = None,
    **more: Any,
) -> Metric:  # fmt: skip
    """Return a metric that is the mean over classes; for AP by class, that of each class."""
    parts = name == "per_class_AP"
    function = partial(_parts if parts else _mean, by_class=by_class)
    function.__doc__ = summary
    plain = Metric(name, "score", summary, source=source, formula=formula, function=function, mapping=parts, **more)
    if options is None:
        return plain
    model = options

    def configured(spec: MetricSpec) -> Metric:
        given = metric_options(model, name, spec)
        return replace(plain, function=partial(_mean, by_class=by_class, **given.model_dump()))

    return replace(plain, configure=configured)


def _coco(name: str, quantity: str, formula: str, score: ByClass, **more: Any) -> Metric:
    summary = f"COCO's average {quantity}, over the classes of the test set that have a truth."
    return _metric(name, summary, formula, _COCO, partial(coco_by_class, score=score), **more)


def _arrived(which: str, group: str) -> Metric:
    summary = f"COCO's AP over {group}, after the last round, on the images of all test sets; option iou."
    by_class = partial(arrived_by_class, which=which)
    return _metric(f"AP_{which}", summary, f"mean of AP_c over {group}", _LIU, by_class, ArrivalOptions, pooled=True)


@matrix_metric("FPP", formula="R_{1,1} - R_{T,1}", source=_LIU, higher_is_better=False)
def forgetting_percentage_points(R: NDArray[np.float64]) -> float:
    """Forgetting of the first classes, in the score's unit: after the first round minus after the last; nan for one."""
    return float(R[0, 0] - R[-1, 0]) if len(R) > 1 else float("nan")


_COCO = "Lin et al. 2014 (ECCV, arXiv 1405.0312); pycocotools 2.0.11"
_VOC = "Everingham et al. 2010 (IJCV 88, section 4.2)"
_AP = "AP_c,t = mean over recalls r = 0, .01, ..., 1 of max precision at recall >= r"
_AT = {50: slice(0, 1), 75: slice(5, 6)}
_LIMITS = (1, 10, coco.MOST)
_F1 = "mean_c 2 TP_c / (answers_c + truths_c)"

DETECTION = (
    _coco("AP", "precision, mean over IoU .5, .55, ..., .95", f"mean_c,t AP_c,t; {_AP}", coco.coco_precision),
    *(
        _coco(f"AP{t}", f"precision at IoU .{t}", f"mean_c AP_c,.{t}", partial(coco.coco_precision, thresholds=at))
        for t, at in _AT.items()
    ),
    *(
        _coco(f"AP_{size[0].upper()}", f"precision on {size} objects", "mean_c,t AP_c,t; small is an area up to 32^2, "
              "large one from 96^2 pixels", partial(coco.coco_precision, area=number), partial=True)
        for number, size in enumerate(coco.AREAS) if number
    ),
    *(
        _coco(f"AR_{most}", f"recall of {most} answer{'s' * (most > 1)} an image and class",
              "mean_c,t of the largest recall", partial(coco.coco_recall, limit=most)) for most in _LIMITS
    ),
    _coco("per_class_AP", "precision of each class", f"mean_t AP_c,t; {_AP}", coco.coco_precision),
    _arrived("seen", "classes c taught by then"),
    _arrived("old", "classes c taught before the last round"),
    _arrived("new", "classes c taught in the last round alone"),
    forgetting_percentage_points,
    _metric(
        "VOC_AP", "PASCAL VOC's mean average precision; options iou, points (11_points for VOC 2007) and pixels.",
        "mean_c of the area under the non-increasing precision", _VOC, voc_by_class, VocOptions,
    ),
    _metric(
        "f1_at_iou", "F1 of the answers with at least a score, at one IoU; options iou, score, pixels.",
        _F1, f"{_VOC}: matching", f1_by_class, F1Options,
    ),
    _metric(
        "ianvs_pcb_f1", "What KubeEdge Ianvs's pcb-aoi calls F1: truths of images without an answer don't count.",
        f"{_F1} at IoU > .3, with inclusive pixels", "KubeEdge Ianvs, examples/pcb-aoi, f1_score.py", pcb_by_class,
    ),
)  # fmt: skip
"""All metrics of detection, in the order of the listing."""
