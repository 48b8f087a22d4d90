"""What counts as an answer where each sample has one class."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ianvs.exam.data_types import data_type
from tests.errors import errors_of


def checked(answers: object, classes: int) -> Any:
    asked: Any = SimpleNamespace(positions=np.arange(4))
    return data_type("classification").checker(asked, classes)(answers, "X.predict()")


def test_booleans_are_answers_between_two_classes_alone() -> None:
    answers = np.array([True, False, True, True])
    assert checked(answers, 2).tolist() == [1, 0, 1, 1]
    assert errors_of(checked, answers, 3) == [("invalid-result", "")]


@pytest.mark.parametrize("answers", [[1, 0, 2, 2], [1.0, 0.0, 2.0, 2.0], np.array([[1], [0], [2], [2]])])
def test_whole_numbers_are_class_indices(answers: object) -> None:
    assert checked(answers, 3).tolist() == [1, 0, 2, 2]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([0, 0, 0, 3], [("invalid-result", "")]),
        ([0, 0, 0, -1], [("invalid-result", "")]),
        ([0.5, 0, 0, 0], [("invalid-result", "")]),
        (np.zeros((4, 3)), [("invalid-result", "")]),
    ],
)
def test_other_answers_are_refused(answers: object, message: str) -> None:
    assert errors_of(checked, answers, 3) == message
