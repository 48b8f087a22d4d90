"""Answers that are the same, whatever they are made of."""

import numpy as np
import pytest

from ianvs.base.types import Predictions
from ianvs.exam.data.parts import Column
from ianvs.exam.data_types import data_type
from ianvs.running.session.validate_predictions import is_equal, select_rows, validated_predictions
from tests.errors import errors_of

BOXES = [{"boxes": np.array([[0, 0, 4, 4], [1, 1, 2, 2]]), "labels": np.array([1, 0])}]


@pytest.mark.parametrize("answers", [np.array([1, 2]), ["a", "b"], [["a", None], ["b"]], BOXES, np.zeros((2, 3, 3))])
def test_equal_answers_are_alike_and_others_are_not(answers):
    again = answers.copy() if isinstance(answers, np.ndarray) else [*answers]
    assert is_equal(answers, again)
    assert not is_equal(answers, again[:-1])


def test_boxes_differ_by_one_of_their_arrays():
    other = [{**BOXES[0], "labels": np.array([1, 1])}]
    assert not is_equal(BOXES, other)
    assert not is_equal(BOXES[0], {"boxes": BOXES[0]["boxes"]})


def test_some_of_numbers_and_of_objects_are_picked():
    assert select_rows(np.array([5, 6, 7]), [2, 0]).tolist() == [7, 5]
    assert select_rows(["a", "b", "c"], np.array([2, 0])) == ["c", "a"]


def answers(extra: list[float]) -> Predictions:
    said = Predictions(np.zeros(3, np.int64), {"surprise": np.array(extra)})
    kind, x = data_type("classification", None), Column(np.zeros((3, 2)))
    return validated_predictions(
        kind, 2, x, "test set 1", (), lambda data: said, lambda: "Mine.predict()", "predict()", unseen=False
    )


def test_numbers_beside_answers_are_kept() -> None:
    assert answers([0.5, -np.inf, np.inf]).extras["surprise"].tolist() == [0.5, -np.inf, np.inf]


def test_an_extra_with_nan_is_refused_since_a_rate_at_a_threshold_would_be_0() -> None:
    assert errors_of(answers, [0.5, np.nan, 1.0]) == [("invalid-result", "")]


@pytest.mark.parametrize("extra", [[0.5], [0.5, 1.0]])
def test_an_extra_is_of_each_sample(extra: list[float]) -> None:
    assert errors_of(answers, extra) == [("invalid-result", "")]
