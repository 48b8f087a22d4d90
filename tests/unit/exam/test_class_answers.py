"""What counts as an answer where each sample has one class."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ianvs.base.errors import PluginError
from ianvs.exam.data_types import data_type


def checked(answers: object, classes: int) -> Any:
    asked: Any = SimpleNamespace(positions=np.arange(4))
    return data_type("classification").checker(asked, classes)(answers, "X.predict()")


def test_booleans_are_answers_between_two_classes_alone() -> None:
    answers = np.array([True, False, True, True])
    assert checked(answers, 2).tolist() == [1, 0, 1, 1]
    with pytest.raises(PluginError, match=r"^X\.predict\(\) returned booleans, and the exam has 3 classes: return cl"):
        checked(answers, 3)


@pytest.mark.parametrize("answers", [[1, 0, 2, 2], [1.0, 0.0, 2.0, 2.0], np.array([[1], [0], [2], [2]])])
def test_whole_numbers_are_class_indices(answers: object) -> None:
    assert checked(answers, 3).tolist() == [1, 0, 2, 2]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([0, 0, 0, 3], r"returned class index 3; the exam has classes 0 to 2\."),
        ([0, 0, 0, -1], r"class index -1; .* -1 is an answer in open-world exams alone\."),
        ([0.5, 0, 0, 0], r"returned float64 values such as 0\.5: return class indices, 0 to 2\."),
        (np.zeros((4, 3)), r"returned scores \(4, 3\): return class indices, scores\.argmax\(axis=1\)\."),
    ],
)
def test_other_answers_are_refused(answers: object, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        checked(answers, 3)
