"""What compare.py takes for a difference, and where it says that it is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.golden.compare import main
from tests.golden.differences import CannotCompareError, compare_answers, load_answers


def case(algorithm: str = "ewc", **hyperparameters: float) -> str:
    return json.dumps({"exam": "", "role": "", "algorithm": algorithm, "hyperparameters": hyperparameters, "seed": 0})


def results(algorithm: str = "ewc") -> dict:
    name = case(algorithm)
    return {
        (name, -1, -1, -1, "status"): np.array(["finished"]),
        (name, -1, -1, -1, "score accuracy"): np.array([[np.nan, np.nan], [0.5, 0.25]]),
        (name, 1, 0, -1, "labels"): np.array([1, 2, 3, 4], dtype=np.uint8),
        (name, 1, 1, -1, "labels"): np.array([0, 0, 0, 0], dtype=np.uint8),
        (name, 1, 0, -1, "extra score"): np.array([[0.1, np.nan], [0.2, 0.8]]),
    }


def test_equal_values_are_equal_whatever_their_type():
    wider = {key: array.astype(np.int64) if array.dtype == np.uint8 else array for key, array in results().items()}
    assert [method.describe() for method in compare_answers(results(), wider).values()] == ["equal"]


def test_a_changed_answer_is_counted_with_its_method_round_and_test_set():
    old, new = results() | results("lwf"), results() | results("lwf")
    new[case(), 1, 0, -1, "labels"] = np.array([1, 2, 3, 9])
    new[case(), -1, -1, -1, "score accuracy"] = np.array([[np.nan, np.nan], [0.375, 0.25]])
    found = compare_answers(old, new)
    ewc = found["", "ewc"]
    assert (ewc.changed, ewc.answers, ewc.rounds, ewc.tests) == (1, 8, {1}, {0})
    assert ewc.scores == {"accuracy": 0.125}
    assert not found["", "lwf"].different


def test_what_is_beside_the_labels_counts_too():
    new = results()
    new[case(), 1, 0, -1, "extra score"] = np.array([[0.1, 0.9], [0.2, 0.8]])
    assert compare_answers(results(), new)["", "ewc"].parts == {"extra score": 1}


def test_a_case_that_only_one_tree_has_differs():
    found = compare_answers(results(), results() | results("lwf"))
    assert found["", "lwf"].missing == {"NEW": 5}
    assert not found["", "ewc"].different


def test_a_case_that_failed_in_one_tree_differs():
    new = results() | {(case(), -1, -1, -1, "status"): np.array(["failed"])}
    assert compare_answers(results(), new)["", "ewc"].status == [("finished", "failed")]


def test_another_number_of_answers_differs():
    new = results() | {(case(), 1, 1, -1, "labels"): np.zeros(3)}
    assert compare_answers(results(), new)["", "ewc"].changed == 4


def test_cases_that_cannot_be_told_apart_are_refused(tmp_path: Path):
    record = {"case": {"algorithm": "a"}, "round": 0, "test": 0, "samples": None, "part": "labels"}
    arrays = {"0": np.zeros(1), "1": np.zeros(1), "index": np.array(json.dumps([record, record]))}
    np.savez(tmp_path / "answers.npz", **arrays)
    with pytest.raises(CannotCompareError):
        load_answers(tmp_path / "answers.npz")


def test_a_folder_that_is_no_checkout_is_wrong_usage(tmp_path: Path):
    assert main([str(tmp_path), str(tmp_path)]) == 2
