"""Random boxes for tests, on a grid of quarters, so that no way of computing an overlap rounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ianvs.base.types import Predictions
from ianvs.exam.data.dataset import Samples
from ianvs.exam.data.listing import column
from ianvs.exam.data.parts import Part
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.testenv.data_types.detection.box_checks import checked_answers, checked_labels
from ianvs.testenv.data_types.detection.box_overlaps import ANSWER, TRUTH, Boxes, boxes_of
from ianvs.testenv.data_types.detection.detection_type import Detection

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "detection.json").read_text())
CASES = GOLDEN["cases"]

Target = dict[str, list[Any]]


@st.composite
def targets(draw: st.DrawFn, classes: int, most: int, answer: bool, flags: bool = True) -> Target:
    """Of one picture. Few corners and scores, so that overlaps, equal ones and ties are common."""
    count = draw(st.integers(0, most))
    step = draw(st.sampled_from([0.25, 16.0]))
    corner = st.integers(0, 6)
    rows = [draw(st.tuples(corner, corner, corner, corner)) for _ in range(count)]
    boxes = [[x * step, y * step, (x + w) * step, (y + h) * step] for x, y, w, h in rows]
    column = lambda values: draw(st.lists(values, min_size=count, max_size=count))  # noqa: E731
    target: Target = {"boxes": boxes, "labels": column(st.integers(0, classes - 1))}
    if answer:
        return target | {"scores": column(st.sampled_from([0.1, 0.5, 0.9, -1.0]))}
    if flags:
        target |= {"iscrowd": column(st.sampled_from([0, 0, 0, 1])), "difficult": column(st.sampled_from([0, 0, 1]))}
        target |= {"area": column(st.sampled_from([4.0, 1024.0, 2000.0, 9216.0, 20000.0]))}
    return target


@st.composite
def scenes(draw: st.DrawFn, classes: int = 3, most: int = 8) -> tuple[list[Target], list[Target]]:
    """(truths, answers) of a few pictures, any of which may be empty."""
    pictures = draw(st.integers(1, 4))
    truths = [draw(targets(classes, most, answer=False)) for _ in range(pictures)]
    return truths, [draw(targets(classes, most, answer=True)) for _ in range(pictures)]


def record(
    truths: list[Target], answers: list[Target], classes: int, most: int = 100, **about: Any
) -> EvaluationRecord:
    """What metrics see of truths and answers."""
    kind, count = Detection(), len(truths)
    samples = Samples(np.zeros(count), column(checked_labels(truths, classes)), np.arange(count).astype(str))
    part = Part(samples, np.arange(count))
    said: Predictions = kind.stored_predictions(
        [(part, kind.packed(checked_answers(answers, count, classes, "predict", most)))], classes
    )
    empty = EvaluationRecord(tuple(map(str, range(classes))), **about)
    return kind.record(empty, kind.truth(samples, part.positions), said)


def columns(truths: list[Target], answers: list[Target], classes: int) -> tuple[Boxes, Boxes, range, int]:
    """What evaluations take: all answers of a class, however many."""
    seen: Any = record(truths, answers, classes, most=10**9)
    return boxes_of(seen.y_true, TRUTH), boxes_of(seen.y_pred, ANSWER), range(classes), len(truths)
