"""What is refused of truths and answers, in which words, and how the rest is packed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ianvs.exam.data.dataset import Samples
from ianvs.exam.data.listing import column
from ianvs.exam.metrics.ragged import Ragged
from ianvs.testenv.data_types.detection.box_checks import checked_answers, checked_labels
from ianvs.testenv.data_types.detection.detection_type import Detection
from tests.errors import errors_of
from tests.unit.testenv.data_types.boxes import scenes, targets

EMPTY = {"boxes": np.empty((0, 4)), "labels": []}
ONE = {"boxes": [[1.0, 2, 3, 4]], "labels": [1]}
SURE = ONE | {"scores": [0.5]}

SLIPS = {
    "a box that is nan": {"boxes": [[1, 2, np.nan, 4]]},
    "a box that is infinite": {"boxes": [[-np.inf, 2, 3, 4]]},
    "x2 below x1": {"boxes": [[10, 2, 3, 4]]},
    "y2 below y1": {"boxes": [[1, 20, 3, 4]]},
    "a label too high": {"labels": [3]},
    "a label below 0": {"labels": [-1]},
    "a label that is no whole number": {"labels": [0.5]},
    "labels of another length": {"labels": [1, 1]},
    "boxes of three numbers": {"boxes": [[1, 2, 3]]},
    "ragged boxes": {"boxes": [[1, 2, 3, 4], [1]]},
    "words": {"labels": ["cat"]},
    "an unknown key": {"iscrowds": [1]},
}


def lists(found: list[dict[str, np.ndarray]]) -> list[dict[str, Any]]:
    return [{key: values.tolist() for key, values in one.items()} for one in found]


@pytest.mark.parametrize("slip", SLIPS)
def test_a_truth_is_refused_with_its_number(slip: str) -> None:
    assert errors_of(lambda: Detection().read([EMPTY, ONE, ONE | SLIPS[slip]], ("a", "b", "c"))) == [
        ("invalid-record", "")
    ]


@pytest.mark.parametrize("slip", SLIPS)
def test_an_answer_is_refused_with_its_number(slip: str) -> None:
    assert errors_of(checked_answers, [SURE, SURE | SLIPS[slip]], 2, 3, "predict") == [("invalid-result", "")]


@pytest.mark.parametrize(
    "wrong",
    [
        {"iscrowd": [2]},
        {"difficult": [-1]},
        {"area": [-5]},
        {"area": [np.nan]},
        {"is_crowd": [0]},
    ],
)
def test_flags_and_areas_of_truths_are_checked(wrong: dict[str, Any]) -> None:
    assert errors_of(checked_labels, [ONE | wrong], 3) == [("invalid-record", "")]


@pytest.mark.parametrize(
    "answers",
    [
        [SURE],
        [SURE, ONE],
        [SURE, SURE | {"scores": [np.nan]}],
        [SURE, np.zeros((3, 5))],
        SURE,
        None,
    ],
)
def test_answers_of_another_form_are_refused(answers: Any) -> None:
    assert errors_of(checked_answers, answers, 2, 3, "predict") == [("invalid-result", "")]


def test_a_truth_that_is_no_mapping_is_refused() -> None:
    assert errors_of(lambda: Detection().read([ONE, [[1, 2, 3, 4, 0]]], None)) == [("invalid-record", "")]


def test_classes_without_names_are_counted() -> None:
    labels, classes = Detection().read([EMPTY, ONE], None)
    assert classes == ("0", "1")
    assert labels[1] == {"boxes": [[1, 2, 3, 4]], "labels": [1]}
    assert errors_of(lambda: Detection().read([EMPTY], None)) == [("invalid-record", "")]
    assert errors_of(lambda: Detection().read(3, None)) == [("invalid-record", "")]


def test_tensors_and_rows_of_six_numbers_are_answers() -> None:
    tensors = {key: torch.tensor(values) for key, values in SURE.items()}
    tensors["scores"] = tensors["scores"].bfloat16().requires_grad_()
    rows = np.array([[1, 2, 3, 4, 0.5, 1]])
    found = checked_answers([tensors, rows, torch.tensor(rows), SURE, np.empty((0, 6)), []], 6, 3, "predict")
    assert lists(found[:4]) == [SURE] * 4
    assert lists(found[4:]) == [{"boxes": [], "labels": [], "scores": []}] * 2
    assert lists(checked_answers(found, 6, 3, "predict")) == lists(found)  # where it arrives


@given(scene=scenes(), data=st.data())
def test_what_is_stored_keeps_every_box(scene: Any, data: st.DataObject) -> None:
    truths, _ = scene
    kind = Detection()
    labels, _ = kind.read(truths, ("a", "b", "c"))
    assert json.loads(json.dumps(labels.tolist())) == labels.tolist()
    samples = Samples(np.zeros(len(truths)), labels, np.array(["n"] * len(truths)))
    positions = np.array(data.draw(st.lists(st.integers(0, len(truths) - 1), max_size=5)), dtype=np.int64)
    for position, seen in zip(positions, Ragged(kind.truth(samples, positions)), strict=True):
        for key, values in truths[position].items():
            assert seen[key].tolist() == values, key
    for truth, told, left, held in zip(
        truths,
        kind.training_labels(labels),
        kind.limited(kind.training_labels(labels), (0, 2)),
        kind.membership(labels, 3),
        strict=True,
    ):
        assert told["boxes"].dtype == np.float64
        assert told["boxes"].shape == (len(truth["labels"]), 4)
        assert left["labels"].tolist() == [label for label in truth["labels"] if label in (0, 2)]
        assert left["boxes"].tolist() == [
            b for b, label in zip(truth["boxes"], truth["labels"], strict=True) if label in (0, 2)
        ]
        assert np.flatnonzero(held).tolist() == sorted(set(truth["labels"]))


def test_the_area_of_a_truth_is_that_of_its_box_where_none_is_given() -> None:
    labels = column(checked_labels([EMPTY, ONE, ONE | {"area": [7]}], 3))
    samples = Samples(np.zeros(3), labels, np.array(list("abc")))
    stored = Ragged(Detection().truth(samples, np.arange(3)))
    assert [truth["area"].tolist() for truth in stored] == [[], [4.0], [7.0]]
    assert stored[0]["boxes"].shape == (0, 4)


def test_boxes_move_where_pictures_are_resized() -> None:
    labels = column(checked_labels([EMPTY, ONE, ONE | {"area": [7]}], 3))
    moved = Detection().resized(labels, np.array([[1, 1], [2, 3], [0.5, 1]]))
    assert [label["boxes"] for label in moved] == [[], [[3, 4, 9, 8]], [[1, 1, 3, 2]]]
    assert [label["area"] for label in moved] == [[], [24.0], [3.5]]


@given(answers=st.lists(targets(3, 8, answer=True), min_size=1, max_size=4), most=st.integers(1, 3))
def test_answers_are_cut_by_picture_and_class(answers: Any, most: int) -> None:
    cut = checked_answers(answers, len(answers), 3, "predict", most)
    for answer, rest in zip(answers, lists(cut), strict=True):
        kept = []
        for label in range(3):
            own = [i for i, other in enumerate(answer["labels"]) if other == label]
            kept += sorted(own, key=lambda i: -answer["scores"][i])[:most]
        assert rest["boxes"] == [answer["boxes"][i] for i in sorted(kept)]
        assert rest["scores"] == [answer["scores"][i] for i in sorted(kept)]
