"""Several labels and the answers to them are checked with sample and remedy, and nothing of them is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from ianvs.base.errors import PluginError
from ianvs.base.types import Predictions
from ianvs.exam.data.dataset import Samples
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.testenv.data_types.multilabel.multilabel_type import Multilabel, checked_scores

NAMES = ("cat", "dog", "car")
MULTI_HOT = [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
TYPE = Multilabel()


@pytest.mark.parametrize(
    "given_labels",
    [
        np.array(MULTI_HOT),
        np.array(MULTI_HOT, dtype=bool),
        np.array(MULTI_HOT, dtype=np.float32),
        MULTI_HOT,
        [["cat", "car"], [], ["dog"]],
        [("car", "cat"), (), {"dog"}],
        ["cat; car", "", "dog"],
        np.array(["cat;car", "", "dog"]),
        [[0, 2], [], [1]],
        ["0;2", "", "1"],
        [np.array([2, 0]), np.array([], dtype=int), np.array([1])],
    ],
)
def test_each_form_of_labels_becomes_the_same_array(given_labels: Any) -> None:
    found, names = TYPE.read(given_labels, NAMES)
    assert (found.dtype, found.tolist(), names) == (np.uint8, MULTI_HOT, NAMES)


@pytest.mark.parametrize(
    ("given_labels", "names"),
    [
        (np.zeros((2, 3)), ("0", "1", "2")),
        (["dog;cat", "", "ant"], ("ant", "cat", "dog")),
        (["10;2", "1"], ("1", "2", "10")),
        ([[0, 3], [1]], ("0", "1", "2", "3")),
    ],
)
def test_names_that_are_not_given_are_found(given_labels: Any, names: tuple[str, ...]) -> None:
    assert TYPE.read(given_labels, None)[1] == names


def test_as_many_names_for_each_sample_may_be_an_array() -> None:
    found, _ = TYPE.read(np.array([["cat", "car"], ["dog", "cat"]]), NAMES)
    assert found.tolist() == [[1, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((2, 4), dtype=int), r"have 4 columns for 3 classes \(cat, dog, car\); expected a column for each"),
        (np.array([[0, 1, 0], [0, 2, 0]]), r"sample 1 has 2 for 'dog'; expected 1 where the sample has the label"),
        (np.array([[0, 1, np.nan]]), r"sample 0 has nan for 'car'"),
        (np.zeros((2, 3, 1)), r"have the shape \(2, 3, 1\); expected an array \(N, C\) of 0 and 1, or for each sample"),
        ([["cat"], ["dgo"]], r"sample 1 has 'dgo', which is no class. Did you mean 'dog'\? There are: cat, dog, car"),
        (["cat", "cat;dgo"], r"sample 1 has 'dgo', which is no class"),
        (np.array([0, 2]), r"sample 0 has 0; expected a list: \[0\], or \[\] for no label"),
        ([["cat"], None], r"sample 1 has None; expected a list"),
        ([[0], [3]], r"sample 1 has 3; expected names, or class indices from 0 to 2: cat, dog, car"),
        ([[-1]], r"sample 0 has -1"),
        ([[0.5]], r"sample 0 has 0.5"),
        ("cat", r"the labels are 'cat'; expected an array"),
        (None, r"the labels are None; expected an array"),
    ],
)
def test_wrong_labels_are_refused_with_sample_and_remedy(wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TYPE.read(wrong, NAMES)


def test_rows_for_two_classes_could_be_indices() -> None:
    with pytest.raises(
        ValueError, match=r"2 numbers 0 or 1, which could be rows for 2 classes or class indices.*array"
    ):
        TYPE.read([[0, 1], [1, 0]], ("cat", "dog"))


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        (bool, np.float32),
        (np.uint8, np.float32),
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.int64, np.float64),
        (np.float64, np.float64),
    ],
)
def test_answers_keep_their_precision(dtype: Any, kept: Any) -> None:
    answers = np.array([[0, 1, 1]]).astype(dtype)
    found = checked_scores(answers, 1, 3, "P.predict()")
    assert (found.dtype, found.tolist()) == (kept, [[0, 1, 1]])


def test_minus_infinity_is_an_answer() -> None:
    assert checked_scores([[0.5, -np.inf]], 1, 2, "P.predict()").tolist() == [[0.5, -np.inf]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([0, 1], r"P.predict\(\) returned int64 of shape \(2,\); expected \(2, 3\) scores, higher being likelier"),
        (np.zeros((3, 3)), r"returned shape \(3, 3\) for 2 samples"),
        (np.zeros((2, 4)), r"float64 of shape \(2, 4\); expected \(2, 3\)"),
        ([["cat"], ["dog", "car"]], r"no array .*expected \(2, 3\)"),
        ([["a"] * 3] * 2, r"<U1 of shape \(2, 3\)"),
        ([[0, 0, 0], [0, np.nan, 0]], r"nan for class 1 of sample 1; scores are finite, or -inf"),
        ([[0, 0, np.inf], [0, 0, 0]], r"inf for class 2 of sample 0"),
        (None, r"returned nothing"),
    ],
)
def test_wrong_answers_are_refused(wrong: Any, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        checked_scores(wrong, 2, 3, "P.predict()")


@given(arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=20), elements=st.integers(0, 1)))
def test_true_labels_that_are_stored_come_back(labels: NDArray[np.uint8]) -> None:
    count, names = len(labels), tuple(map(str, range(labels.shape[1])))
    stored = TYPE.truth(Samples(labels, labels, np.empty(0, str)), np.arange(count))
    assert stored.shape == (count, -(-labels.shape[1] // 8))
    seen = TYPE.record(EvaluationRecord(names), stored, Predictions(TYPE.perfect(labels)))
    np.testing.assert_array_equal(np.asarray(seen.y_true), labels)
    np.testing.assert_array_equal(np.asarray(seen.y_pred) > 0.5, labels)


def test_classes_that_were_not_taught_by_then_count_as_never_answered() -> None:
    stored, said = np.packbits([[1, 1, 0]], axis=1), Predictions(np.array([[0.1, 0.9, 0.5]]))
    seen = TYPE.record(EvaluationRecord(NAMES, seen=(0, 2)), stored, said)
    assert np.asarray(seen.y_pred).tolist() == [[0.1, -np.inf, 0.5]]
    assert said.labels.tolist() == [[0.1, 0.9, 0.5]]


def test_labels_that_are_not_taught_are_removed_from_a_copy() -> None:
    labels = np.array([[1, 1, 0], [0, 1, 1]], dtype=np.uint8)
    found = TYPE.limited(labels, (0, 2))
    assert (found.dtype, found.tolist()) == (np.uint8, [[1, 0, 0], [0, 0, 1]])
    assert labels.tolist() == [[1, 1, 0], [0, 1, 1]]
