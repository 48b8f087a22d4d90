"""An evaluation task (how many points does the model see in each image, of any class?) and a metric of its answers."""

from typing import ClassVar

import numpy as np

from ianvs.exam.metrics.definition import score_metric
from ianvs.exam.questions import EvaluationTask


class HowMany(EvaluationTask):
    name: ClassVar[str] = "HowMany"
    method: ClassVar[str] = "count"  # of the base model: count(data, **context)
    extras: ClassVar[tuple[str, ...]] = ("how_many",)
    wanted: ClassVar[str] = "(N,) numbers of points"


@score_metric(
    "count_error",
    asks=("HowMany",),
    higher_is_better=False,
    formula="mean |answered number of points - true number|, over pictures",
    source="this example",
)
def count_error(record):
    """How far the number of points is off, whatever their classes."""
    true = np.array([len(points["labels"]) for points in record.y_true])
    return float(np.abs(record.extras["how_many"] - true).mean())
