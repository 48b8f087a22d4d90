"""Scores of replies about pictures, by values worked by hand."""

import numpy as np
import pytest

from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.testenv.metrics.all_metrics import METRICS
from ianvs.testenv.metrics.picture_replies import box_iou, boxes_agree, form_of, vqa_accuracy_of

BY_NAME = {metric.name: metric for metric in METRICS}


def score(name, replies, references):
    """The metric of one reply to each question."""
    truth = [[one] for one in references]
    said = [[one] for one in replies]
    record = EvaluationRecord((), truth, said)
    return BY_NAME[name].function(record)[name]


def test_intersection_over_union_by_hand():
    assert box_iou([0, 0, 4, 4], [2, 2, 6, 6]) == pytest.approx(4 / 28, abs=1e-12)
    assert box_iou([0, 0, 4, 4], [0, 0, 4, 3]) == 0.75
    assert (
        box_iou([0, 0, 4, 4], [4, 0, 8, 4])
        == box_iou([0, 0, 0, 4], [0, 0, 4, 4])
        == box_iou([3, 3, 1, 1], [0] * 4)
        == 0
    )


def test_intersection_over_union_agrees_with_a_count_of_pixels():
    draw = np.random.default_rng(0)
    for _ in range(50):
        (a, b), (c, d) = np.sort(draw.integers(0, 12, (2, 2, 2)), axis=1).transpose(0, 2, 1)
        boxes = [[int(a[0]), int(b[0]), int(a[1]), int(b[1])], [int(c[0]), int(d[0]), int(c[1]), int(d[1])]]
        cells = np.zeros((2, 12, 12), bool)
        for cell, (x0, y0, x1, y1) in zip(cells, boxes, strict=True):
            cell[y0:y1, x0:x1] = True
        union = (cells[0] | cells[1]).sum()
        both = (cells[0] & cells[1]).sum()
        assert box_iou(*boxes) == pytest.approx(both / union if union else 0)


@pytest.mark.parametrize(
    ("said", "right"),
    [("[2, 2, 6, 6]", False), ("[0, 0, 4, 3]", True), ("It is at [0,0,4,3].", True), ("[.1, 0, 4, 4]", True),
     ("[0, 0, 4]", False), ("left", False), ("", False)],
)  # fmt: skip
def test_a_box_is_right_from_half_of_the_union_on(said, right):
    assert boxes_agree(said, "[0, 0, 4, 4]") is right
    assert score("grounding_accuracy", [said], ["[0, 0, 4, 4]"]) == float(right)


@pytest.mark.parametrize(("said", "right"), [("cat", 0.9), ("Dog ", 1.0), ("cow", 0.0)])
def test_of_ten_humans_each_is_left_out_once(said, right):
    humans = ["cat"] * 3 + ["dog"] * 7
    assert vqa_accuracy_of(said, humans) == pytest.approx(right, abs=1e-12)
    listed = '["cat", "cat", "cat", "dog", "dog", "dog", "dog", "dog", "dog", "dog"]'
    assert score("vqa_accuracy", [said], [listed]) == score("CoIN_ACC", [said], [listed]) == pytest.approx(right)


def test_a_single_reference_stands_for_ten_humans_who_agree():
    assert score("vqa_accuracy", ["Yes", "no"], ["yes", "yes"]) == 0.5


def test_the_form_is_a_single_letter_strictly():
    said = ["B", "b.", "yes", "[1, 2, 3, 4]"]
    assert score("format_follow", said, ["A"] * 4) == 0.25
    assert [form_of(one) for one in (*said, "red", "3", "two words")] == [
        "letter", "text", "yes or no", "box", "word", "number", "text",
    ]  # fmt: skip


def test_each_form_is_followed_by_itself_alone():
    forms = ["A", "[1, 2, 3, 4]", "no", "12", "disc"]
    for reference in forms:
        assert [score("format_follow", [said], [reference]) for said in forms] == [float(s == reference) for s in forms]
    assert score("format_follow", ["", None], ["disc", "disc"]) == 0


def test_perception_is_of_well_formed_replies_alone():
    said, right = ["B", "A", "yes", "[0, 0, 4, 3]", None], ["B", "B", "B", "[0, 0, 4, 4]", "B"]
    assert score("perception", said, right) == pytest.approx(2 / 3)
    assert score("CoIN_ACC", said, right) == pytest.approx(2 / 5)
    assert np.isnan(score("perception", ["yes"], ["B"]))


def test_equality_is_of_upper_cased_replies():
    assert score("CoIN_ACC", ["a Cat", "a cat."], ["A cat", "a cat"]) == 0.5
