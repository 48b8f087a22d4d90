"""A class-incremental learner scored as if it were told the task, beside how it is scored in truth."""

import numpy as np

from ianvs.exam.metrics.definition import score_metric
from ianvs.exam.metrics.metric import EvaluationRecord


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
