"""Labels and answers are checked with sample and remedy; rounds bring the samples that their protocols say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from ianvs.base.errors import DataError, PluginError
from ianvs.testenv.data_types.multilabel import label_rounds as rounds
from ianvs.testenv.data_types.multilabel import label_sets as told

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "multilabel.json").read_text())["class_incremental"]
NAMES = ("cat", "dog", "car")
MULTI_HOT = [[1, 0, 1], [0, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    "given_labels",
    [
        np.array(MULTI_HOT),
        np.array(MULTI_HOT, dtype=bool),
        np.array(MULTI_HOT, dtype=np.float32),
        [["cat", "car"], [], ["dog"]],
        [("car", "cat"), (), {"dog"}],
        [[0, 2], [], [1]],
        [np.array([2, 0]), np.array([], dtype=int), np.array([1])],
    ],
)
def test_each_form_of_labels_becomes_the_same_array(given_labels: Any) -> None:
    found = told.multi_hot(given_labels, NAMES)
    assert found.dtype == np.uint8
    assert found.tolist() == MULTI_HOT


def test_as_many_names_for_each_sample_may_be_an_array() -> None:
    assert told.multi_hot(np.array([["cat", "car"], ["dog", "cat"]]), NAMES).tolist() == [[1, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((2, 4), dtype=int), r"y has 4 columns for 3 classes \(cat, dog, car\); expected a column for each"),
        (
            np.array([[0, 1, 0], [0, 2, 0]]),
            r"y\[1\] has 2 for 'dog'; expected 1 where the sample has the label, else 0",
        ),
        (np.array([[0, 1, np.nan]]), r"y\[0\] has nan for 'car'"),
        (
            np.zeros((2, 3, 1)),
            r"y has the shape \(2, 3, 1\); expected an array \(N, C\) of 0 and 1, or for each sample",
        ),
        ([["cat"], ["dgo"]], r"y\[1\] has 'dgo', which is no class. Did you mean 'dog'\? There are: cat, dog, car"),
        ([["cat"], "dog"], r"y\[1\] is 'dog'; expected a list: \['dog'\], or \[\] for no label"),
        (np.array([0, 2]), r"y\[0\] is 0; expected a list: \[0\]"),
        ([[0], [3]], r"y\[1\] has 3; expected names, or class indices from 0 to 2: cat, dog, car"),
        ([[-1]], r"y\[0\] has -1"),
        ([[0.5]], r"y\[0\] has 0.5"),
        ([[0, 1, 0], [1, 0, 0]], r"3 numbers 0 or 1, which could be rows for 3 classes or class indices.*np.array"),
        ("cat", r"y is 'cat'; expected an array"),
        (None, r"y is None; expected an array"),
    ],
)
def test_wrong_labels_are_refused_with_sample_and_remedy(wrong: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        told.multi_hot(wrong, NAMES)


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
    found = told.checked_scores(answers, 1, 3)
    assert found.dtype == kept
    assert found.tolist() == [[0, 1, 1]]


def test_minus_infinity_is_an_answer() -> None:
    assert told.checked_scores([[0.5, -np.inf]], 1, 2).tolist() == [[0.5, -np.inf]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([0, 1], r"int64 of shape \(2,\); expected \(2, 3\) scores, higher being likelier"),
        (np.zeros((3, 2)), r"shape \(3, 2\); expected \(2, 3\)"),
        ([["cat"], ["dog", "car"]], r"what is no array .*expected \(2, 3\)"),
        ([["a"] * 3] * 2, r"<U1 of shape \(2, 3\)"),
        ([[0, 0, 0], [0, np.nan, 0]], r"nan for class 1 of sample 1; scores are finite, or -inf"),
        ([[0, 0, np.inf], [0, 0, 0]], r"inf for class 2 of sample 0"),
    ],
)
def test_wrong_answers_are_refused(wrong: Any, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        told.checked_scores(wrong, 2, 3)


@given(arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=20), elements=st.integers(0, 1)))
def test_what_is_packed_comes_back(labels: NDArray[np.uint8]) -> None:
    packed = told.pack(labels)
    assert packed.shape == (len(labels), -(-labels.shape[1] // 8))
    np.testing.assert_array_equal(told.unpack(packed, labels.shape[1]), labels)


def test_labels_that_are_not_taught_are_removed_from_a_copy() -> None:
    labels = np.array([[1, 1, 0], [0, 1, 1]], dtype=np.uint8)
    found = told.limited(labels, [0, 2])
    assert (found.dtype, found.tolist()) == (np.uint8, [[1, 0, 0], [0, 0, 1]])
    assert labels.tolist() == [[1, 1, 0], [0, 1, 1]]


def test_worked_rounds() -> None:
    truth = np.array(GOLDEN["truth"], dtype=np.uint8)
    found = rounds.mlcil_rounds(truth, GOLDEN["groups"])
    assert [positions.tolist() for positions in found] == GOLDEN["training_pictures_of_round_KRT"]
    found = rounds.exclusive_rounds(truth, GOLDEN["groups"])
    assert [positions.tolist() for positions in found] == GOLDEN["exclusive_rule"]


@pytest.mark.parametrize(
    ("classes", "base", "step", "sizes"),
    [(80, 0, 10, [10] * 8), (80, 40, 10, [40, 10, 10, 10, 10]), (20, 0, 4, [4] * 5), (20, 10, 2, [10, *[2] * 5])],
)
def test_rounds_of_the_protocols_are_in_alphabetical_order(
    classes: int, base: int, step: int, sizes: list[int]
) -> None:
    names = [f"{(7 * c) % classes:02}" for c in range(classes)]
    found = rounds.mlcil_classes(names, base, step)
    assert [len(each) for each in found] == sizes
    assert [names[c] for each in found for c in each] == sorted(names)


def test_classes_that_do_not_fill_their_rounds_are_refused() -> None:
    with pytest.raises(DataError, match=r"20 classes can't be split into 10 and then 3 a round"):
        rounds.mlcil_classes([str(c) for c in range(20)], 10, 3)


def test_exclusive_rounds_share_no_sample_and_leave_out_those_without_a_label() -> None:
    labels = np.array([[1, 0], [1, 1], [0, 1], [0, 0]], dtype=np.uint8)
    assert [found.tolist() for found in rounds.exclusive_rounds(labels, [[0], [1]])] == [[0], [1, 2]]
    assert [found.tolist() for found in rounds.mlcil_rounds(labels, [[0], [1]])] == [[0, 1], [1, 2]]


def test_classes_are_grouped_by_how_often_they_are_taught() -> None:
    found = rounds.frequency_groups(np.array([901, 900, 200, 199]))
    assert found == {"majority": (0,), "moderate": (1, 2), "minority": (3,)}
