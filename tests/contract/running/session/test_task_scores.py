"""A class-incremental learner, scored under the mask of each test set's task as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ianvs
from ianvs.testenv.questions.task_scores import TaskScores, labels_within
from tests.edits import edited
from tests.errors import errors_of, printed
from tests.jobs import MAJORITY, write_job
from tests.marks import slow

CLASSES = "class-incremental"
NEAREST = '''
import numpy as np


class Nearest:
    """The class with the nearest mean of all samples so far."""

    def __init__(self):
        self.sums = self.counts = None

    def train(self, train_data, num_classes, valid_data=None):
        x = train_data.x.reshape(len(train_data), -1).astype(float)
        if self.sums is None:
            self.sums, self.counts = np.zeros((num_classes, x.shape[1])), np.zeros(num_classes)
        for row, label in zip(x, train_data.y):
            self.sums[label] += row
            self.counts[label] += 1

    def scores(self, data, num_classes, task_classes=None):
        if self.sums is None:
            return np.zeros((len(data), num_classes))
        means = self.sums / np.maximum(self.counts, 1)[:, None]
        x = data.x.reshape(len(data), 1, -1).astype(float)
        return -1000 * ((x - means) ** 2).sum(axis=2)

    def predict(self, data, num_classes, classes_seen=(), task_classes=None):
        scores = self.scores(data, num_classes)
        allowed = list(task_classes or classes_seen or range(num_classes))
        return np.array(allowed)[scores[:, allowed].argmax(axis=1)]

    def save(self, path):
        np.savez(path, sums=self.sums, counts=self.counts)
        return f"{path}.npz"

    def load(self, path):
        with np.load(path) as saved:
            self.sums, self.counts = saved["sums"], saved["counts"]
'''
TORCH = '''
from ianvs.authoring import TorchLearner


class Unmasked(TorchLearner):
    """Trains over all outputs, whatever the exam tells of classes."""

    def __init__(self):
        super().__init__(hidden=16, epochs=2, learning_rate=0.1)

    def train(self, train_data, valid_data=None, *, task_classes=None, classes_seen=(), **context):
        super().train(train_data, valid_data, classes_seen=(), **context)
'''


def yaml(scenario: str = CLASSES, metrics: str = "accuracy, task_incremental_accuracy", more: str = "") -> str:
    asked = "task_scores: true" if "task" in metrics else ""
    return (
        f"dataset: {{name: digits}}\nscenario: {{name: {scenario}, rounds: 5}}\nmetrics: [{metrics}]\n{asked}\n{more}"
    )


def taken(
    folder: Path, testenv: str, plugin: str = NEAREST, name: str = "Nearest", engine: str = "inline", **more: Any
):
    path = write_job(
        folder, testenv=testenv, plugin=plugin, name=name, hyperparameters="", job=f"engine: {engine}", **more
    )
    results = ianvs.run(path)
    assert results.exit_code == 0, [result.failure for result in results]
    return results


@pytest.mark.parametrize("engine", ["inline", slow("local")])
def test_it_is_the_accuracy_among_the_classes_of_the_task(tmp_path: Path, engine: str) -> None:
    [found] = taken(tmp_path, yaml(), engine=engine)
    exam = ianvs.api.exams(tmp_path / "benchmarkingjob.yaml")[CLASSES]
    train, test = exam.dataset.train, exam.dataset.test
    xs, ys = train.x.reshape(len(train), -1).astype(float), train.y
    asked = test.x.reshape(len(test), -1).astype(float)
    expected = np.zeros((6, 5))
    for k in range(6):
        seen = [c for round_ in exam.rounds[:k] for c in round_.classes]
        means = np.array([xs[ys == c].mean(axis=0) if c in seen else np.zeros(xs.shape[1]) for c in range(10)])
        for j, part in enumerate(exam.tests):
            right = 0
            for i in part.test:
                distances = {c: ((asked[i] - means[c]) ** 2).sum() if k else 0.0 for c in part.classes}
                right += min(distances, key=distances.__getitem__) == test.y[i]
            expected[k, j] = right / len(part.test)
    assert found.matrices["task_incremental_accuracy"].values == pytest.approx(expected)
    assert found.metrics["task_incremental_accuracy"] == pytest.approx(expected[5].mean())
    assert found.metrics["task_incremental_accuracy"] > found.metrics["accuracy"]


@pytest.mark.parametrize(("plugin", "name"), [(NEAREST, "Nearest"), (TORCH, "Unmasked")])
def test_it_is_the_score_of_task_incremental_learning_for_who_trains_without_a_mask(
    tmp_path: Path, plugin: str, name: str
) -> None:
    [without] = taken(tmp_path / "class", yaml(), plugin, name)
    [told] = taken(tmp_path / "task", yaml("task-incremental", "accuracy"), plugin, name)
    masked = without.matrices["task_incremental_accuracy"].values
    assert masked == pytest.approx(told.matrices["accuracy"].values)
    assert not np.allclose(masked, without.matrices["accuracy"].values)


def test_where_the_task_is_told_both_scores_are_one(tmp_path: Path) -> None:
    [found] = taken(tmp_path, yaml("task-incremental"))
    assert np.array_equal(found.matrices["accuracy"].values, found.matrices["task_incremental_accuracy"].values)


def test_the_other_scores_are_what_they_are_without_it(tmp_path: Path) -> None:
    [asked] = taken(tmp_path / "asked", yaml())
    [bare] = taken(tmp_path / "bare", yaml(metrics="accuracy"))
    assert np.array_equal(asked.matrices["accuracy"].values, bare.matrices["accuracy"].values)
    assert asked.case.id != bare.case.id


def test_the_learner_is_told_nothing_of_the_task(tmp_path: Path) -> None:
    """All test sets are asked in one call, in the order of the question for labels, which no class explains."""
    log = tmp_path / "log.jsonl"
    spy = (
        edited(NEAREST, "class Nearest:", "class Base:")
        + f"""

class Nearest(Base):
    def note(self, what, data, **context):
        import json
        with open({str(log)!r}, "a") as file:
            file.write(json.dumps([what, data.x.reshape(len(data), -1).sum(1).tolist(), sorted(context)]) + "\\n")

    def scores(self, data, num_classes, **context):
        self.note("scores", data, **context)
        return super().scores(data, num_classes)

    def predict(self, data, num_classes, classes_seen=(), **context):
        self.note("predict", data, **context)
        return np.zeros(len(data), int)
"""
    )
    taken(tmp_path, yaml(), spy)
    *calls, tried = [json.loads(line) for line in log.read_text().splitlines()]
    while calls[-1][0] == calls[-2][0] == "predict":  # what it saved is tried in the end
        tried = calls.pop()
    calls.pop()
    assert tried[0] == "predict"
    assert [what for what, _, _ in calls] == ["predict", "scores"] * 6
    exam = ianvs.api.exams(tmp_path / "benchmarkingjob.yaml")[CLASSES]
    total = sum(len(test.test) for test in exam.tests)
    for (_, labelled, _), (_, scored, context) in zip(calls[::2], calls[1::2], strict=True):
        assert len(scored) == total
        assert scored == labelled
        assert not {"task", "task_classes"} & set(context)
    assert calls[1][1] != calls[3][1]


def test_a_learner_without_scores_has_none_and_the_row_says_why(tmp_path: Path) -> None:
    results = taken(tmp_path, yaml(), MAJORITY, "Majority")
    [found], [row] = list(results), results.leaderboard.rows
    assert found.metrics["task_incremental_accuracy"] is None
    assert found.metrics["accuracy"] is not None
    printed(row.status)


def test_scores_beside_a_predict_of_another_class_are_not_taken(tmp_path: Path) -> None:
    own = "\n\nclass Own(Nearest):\n    def predict(self, data, **context):\n        return [0] * len(data)\n"
    results = taken(tmp_path, yaml(), NEAREST + own, "Own")
    printed(results.leaderboard.rows[0].status)
    assert [result.metrics["task_incremental_accuracy"] for result in results] == [None]


@pytest.mark.parametrize("code", ["return np.zeros((len(data), 3))", "return np.full((len(data), 10), np.nan)"])
def test_scores_that_are_none_end_the_case(tmp_path: Path, code: str) -> None:
    plugin = edited(
        NEAREST, "        if self.sums is None:\n            return np", f"        {code}\n        return np"
    )
    plugin = edited(plugin, "scores = self.scores(data, num_classes)", "scores = np.zeros((len(data), num_classes))")
    results = ianvs.run(
        write_job(tmp_path, testenv=yaml(), plugin=plugin, name="Nearest", hyperparameters="", job="engine: inline")
    )
    [found] = results
    assert found.failure is not None
    assert found.failure.error == "PluginError"
    printed(found.failure.message)


def test_the_testenv_has_to_ask_for_scores(tmp_path: Path) -> None:
    testenv = edited(yaml(), "task_scores: true", "")
    path = write_job(tmp_path, testenv=testenv, plugin=NEAREST, name="Nearest", hyperparameters="")
    assert errors_of(ianvs.validate, path) == [("unrequested-scores", f"{tmp_path}/testenv.yaml:4:23")]


def test_the_likeliest_class_is_looked_for_among_those_of_the_task() -> None:
    scores = np.array([[9, 1, -5000, -5001], [0, 0, 7, 7], [3, 2, -np.inf, -np.inf]], dtype=np.float32)
    assert labels_within(scores, (3, 2)).tolist() == [2, 2, -1]
    assert labels_within(scores, (0, 1)).tolist() == [0, 0, 0]


def test_scores_keep_what_a_softmax_would_lose() -> None:
    logits = np.array([[0.0, -300.0, -200.0]], dtype=np.float32)
    assert np.exp(logits)[0, 1:].tolist() == [0, 0]
    assert labels_within(TaskScores().checked(logits, 1, 3, "x"), (1, 2)).tolist() == [2]


def test_minus_infinity_is_a_score_and_infinity_is_none() -> None:
    assert np.isneginf(TaskScores().checked([[0, -np.inf]], 1, 2, "x")[0, 1])
    assert errors_of(TaskScores().checked, [[0, np.inf]], 1, 2, "x") == [("invalid-result", "")]


def test_a_class_that_overrides_both_gives_its_scores() -> None:
    base = type("Base", (), {"predict": len, "scores": len})
    assert TaskScores().lacks(type("Same", (base,), {})()) == ""
    assert TaskScores().lacks(type("Both", (base,), {"predict": len, "scores": len})()) == ""
    printed(TaskScores().lacks(type("One", (base,), {"predict": len})()))
