"""Scores of answers in a tree over the classes: the worked values, and a walk up the tree for each sample."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.config.models.class_tree import ClassTree
from ianvs.exam.metrics import EvaluationRecord, find
from ianvs.running.scoring import pool_records, without_groups
from tests.errors import errors_of

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "hierarchy.json").read_text())
NAMES = (
    *(f"accuracy_at_depth_{depth}" for depth in range(1, 7)),
    *("lca_height", "mistake_severity", "tree_distance", "hP", "hR", "hF1"),
)
GOLDEN_NAMES = {"mean_lca_height": "lca_height", "mean_path_length": "tree_distance"}


def tree_of(parents: Mapping[str, str]) -> ClassTree:
    return tuple(sorted(parents.items()))


def score(name: str, record: EvaluationRecord) -> float:
    metric = find(name)
    assert metric is not None
    assert metric.function is not None
    value = metric.function(record)
    assert isinstance(value, float)
    return value


def record_of(parents: Mapping[str, str], truth: Sequence[str], answers: Sequence[str]) -> EvaluationRecord:
    classes = tuple(sorted({*truth, *answers}))
    rows = (np.array([classes.index(name) for name in names]) for names in (truth, answers))
    return EvaluationRecord(classes, *rows, columns={"hierarchy": tree_of(parents)})


def test_worked_values_of_a_tree_whose_inner_nodes_may_be_answered() -> None:
    case = GOLDEN["tree"]
    record = record_of(case["parent"], case["truth"], case["answers"])
    expected = {GOLDEN_NAMES.get(name, name): value for name, value in case["expected"].items()}
    del expected["wu_palmer"]  # which is no metric here
    assert {name: score(name, record) for name in expected} == pytest.approx(expected, rel=0, abs=1e-9)


def test_worked_values_of_cifar_100_with_its_superclasses() -> None:
    case = GOLDEN["cifar100"]
    parents = {f"fine {fine}": f"coarse {coarse}" for fine, coarse in enumerate(case["fine_to_coarse"])}
    parents |= {f"coarse {coarse}": "root" for coarse in range(20)}
    classes = tuple(f"fine {fine}" for fine in range(100))
    record = EvaluationRecord(
        classes, np.array(case["truth"]), np.array(case["answers"]), columns={"hierarchy": tree_of(parents)}
    )
    expected = {GOLDEN_NAMES.get(name, name): value for name, value in case["expected"].items()}
    assert {name: score(name, record) for name in expected} == pytest.approx(expected, rel=0, abs=1e-9)


def walked(parents: Mapping[str, str], node: str) -> list[str]:
    """From the node up to the root."""
    return [node, *walked(parents, parents[node])] if node in parents else [node]


def height(parents: Mapping[str, str], node: str) -> int:
    below = [child for child, parent in parents.items() if parent == node]
    return 1 + max(height(parents, child) for child in below) if below else 0


def naive(parents: Mapping[str, str], truth: Sequence[str], answers: Sequence[str]) -> dict[str, float]:
    """Sample by sample, from the definitions."""
    sums: dict[str, list[float]] = {name: [] for name in NAMES}
    common, answered, true = 0, 0, 0
    for y, a in zip(truth, answers, strict=True):
        up, other = walked(parents, y), walked(parents, a)
        lowest = next(node for node in up if node in other)
        for depth in range(1, 7):
            branch, its = up[::-1][: depth + 1][-1], other[::-1][: depth + 1][-1]
            sums[f"accuracy_at_depth_{depth}"].append(branch == its)
        sums["lca_height"].append(height(parents, lowest))
        sums["mistake_severity"] += [height(parents, lowest)] if y != a else []
        sums["tree_distance"].append(up.index(lowest) + other.index(lowest))
        common += len({*up[:-1]} & {*other[:-1]})
        true, answered = true + len(up) - 1, answered + len(other) - 1
    found = {name: sum(values) / len(values) if values else math.nan for name, values in sums.items()}
    precision, recall = (common / size if size else math.nan for size in (answered, true))
    both = 2 * common / (answered + true) if answered + true else math.nan
    return {**found, "hP": precision, "hR": recall, "hF1": both}


@st.composite
def answered_trees(draw: st.DrawFn) -> tuple[dict[str, str], tuple[str, ...], list[str], list[str]]:
    """Parents, classes (any of the nodes), truth and answers; "root" among the answers may be no class."""
    size = draw(st.integers(1, 12))
    parents = {f"n{i}": f"n{draw(st.integers(0, i - 1))}" if i else "root" for i in range(size)}
    classes = tuple(draw(st.lists(st.sampled_from(sorted(parents)), min_size=1, unique=True)))
    truth = draw(st.lists(st.sampled_from(classes), min_size=1, max_size=20))
    answers = draw(st.lists(st.sampled_from((*classes, "root")), min_size=len(truth), max_size=len(truth)))
    return parents, classes, truth, answers


@given(answered_trees())
def test_any_tree_gives_what_a_walk_up_from_each_sample_gives(case: tuple[dict[str, str], ...]) -> None:
    """The answer "root" stands for one that is no class."""
    parents, classes, truth, answers = case
    y_true = np.array([classes.index(name) for name in truth])
    y_pred = np.array([-1 if name == "root" else classes.index(name) for name in answers])
    record = EvaluationRecord(
        classes, y_true, y_pred, columns={"hierarchy": tree_of(parents)}, unseen=np.zeros(len(truth), dtype=bool)
    )
    expected = naive(parents, truth, answers)
    assert {name: score(name, record) for name in NAMES} == pytest.approx(expected, rel=0, abs=1e-9, nan_ok=True)


def test_pixels_are_scored_from_their_counts_and_ignored_ones_as_the_root() -> None:
    counts = np.array([[3, 1, 0], [0, 4, 2]])
    parents = {"road": "flat", "flat": "all", "sky": "all"}
    record = EvaluationRecord(("road", "sky"), counts=counts, columns={"hierarchy": tree_of(parents)})
    truth = [*["road"] * 4, *["sky"] * 6]
    answers = [*["road"] * 3, "sky", *["sky"] * 4, *["all"] * 2]
    assert {name: score(name, record) for name in NAMES} == pytest.approx(naive(parents, truth, answers))


def test_severity_is_undefined_without_mistakes_and_everything_without_samples() -> None:
    parents = {"a": "root", "b": "root"}
    right = record_of(parents, ["a", "b"], ["a", "b"])
    assert math.isnan(score("mistake_severity", right))
    assert score("lca_height", right) == score("tree_distance", right) == 0
    assert all(math.isnan(score(name, replace(right, y_true=np.array([]), y_pred=np.array([])))) for name in NAMES)


def test_parts_and_test_sets_put_together_keep_the_tree() -> None:
    parents = {"a": "x", "b": "x", "x": "root", "c": "root"}
    record = record_of(parents, ["a", "b", "c", "c"], ["b", "b", "a", "c"])
    whole = pool_records([record, record])
    assert whole is not None
    assert score("lca_height", whole) == score("lca_height", record) == pytest.approx(3 / 4)
    assert {score("lca_height", part) for [part] in without_groups([record], 4) if part} == {2 / 3, 1.0, 1 / 3}


def test_without_a_tree_the_error_says_how_to_give_one() -> None:
    assert errors_of(score, "hF1", EvaluationRecord(("a", "b"), np.array([0]), np.array([1]))) == [("unfit-metric", "")]


def test_superclass_accuracy_is_accuracy_right_below_the_root() -> None:
    assert find("superclass_accuracy") is find("accuracy_at_depth_1")
