"""Answers that are the same, whatever they are made of."""

import numpy as np
import pytest

from ianvs.running.session.checked_answers import alike, picked

BOXES = [{"boxes": np.array([[0, 0, 4, 4], [1, 1, 2, 2]]), "labels": np.array([1, 0])}]


@pytest.mark.parametrize("answers", [np.array([1, 2]), ["a", "b"], [["a", None], ["b"]], BOXES, np.zeros((2, 3, 3))])
def test_equal_answers_are_alike_and_others_are_not(answers):
    again = answers.copy() if isinstance(answers, np.ndarray) else [*answers]
    assert alike(answers, again)
    assert not alike(answers, again[:-1])


def test_boxes_differ_by_one_of_their_arrays():
    other = [{**BOXES[0], "labels": np.array([1, 1])}]
    assert not alike(BOXES, other)
    assert not alike(BOXES[0], {"boxes": BOXES[0]["boxes"]})


def test_some_of_numbers_and_of_objects_are_picked():
    assert picked(np.array([5, 6, 7]), [2, 0]).tolist() == [7, 5]
    assert picked(["a", "b", "c"], np.array([2, 0])) == ["c", "a"]
