"""How often samples of old classes are answered as classes that came later."""

import numpy as np

from ianvs.base.types import Asked, CaseResult, ScoreMatrix
from ianvs.store import CaseStore, ExamStore


def newer_answers(result: CaseResult) -> dict[str, ScoreMatrix]:
    """Of each earlier round's test set the share that is answered as a class that a later round taught first.

    Only where each round teaches new classes and has a test set of them, and the task is not told.
    """
    workspace = result.directory.parents[1]
    cases, exams = CaseStore(workspace), ExamStore(workspace)
    exam_id = cases.exam_id(result.case.id)
    record = exams.record(exam_id)
    if record is None or record.kind != "classification" or record.rules.get("task_in_testing"):
        return {}
    since = np.zeros(len(record.classes) + 1, np.int64)  # the round that taught each first; the last is of none, -1
    for k, classes in reversed([*enumerate(record.round_classes, 1)]):
        since[list(classes)] = k
    truths, count = exams.truth(exam_id), len(record.rounds)
    if not 1 < len({*since[:-1].tolist()} - {0}) == count == len(record.tests) == len(truths):
        return {}
    values = np.full((count + 1, count), np.nan)
    for k in range(2, count + 1):
        for asked, said in cases.predictions(result.case.id, k).items():
            if asked == Asked(asked.test) and asked.test < k - 1:
                values[k, asked.test] = np.mean(since[said.labels] > since[truths[asked.test]])
    name = "answered as newer"
    return {name: ScoreMatrix(values, name, record.rounds, record.tests, higher_is_better=False)}
