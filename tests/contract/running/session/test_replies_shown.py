"""Jobs that ask what a learner makes of the true replies, from the testenv to scores."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ianvs
from ianvs.testenv.questions.forced_replies import TeacherForced
from tests.edits import edited
from tests.errors import errors_of, printed
from tests.jobs import MAJORITY, write_job

ROOT = Path(__file__).parents[4]
PARROT = '''
import math


class Parrot:
    """Knows replies by heart: a token is a letter, those of what it was taught last are right."""

    def __init__(self):
        self.known = {}

    def train(self, train_data, valid_data=None):
        self.known = {}
        for asked, replies in zip(train_data.x, train_data.y):
            self.known.update(zip(asked["user"], replies))

    def predict(self, data):
        return [[self.known.get(text, "?") for text in asked["user"]] for asked in data.x]

    def teacher_forced(self, data):
        found = []
        for asked, replies in zip(data.x, data.y):
            letters = sum(map(len, replies))
            right = sum(len(r) for q, r in zip(asked["user"], replies) if self.known.get(q) == r)
            found.append((right, letters, (letters - right) * math.log(0.5)))
        for asked, replies in zip(data.x, data.y):  # a cheat: now it knows the test
            self.known.update(zip(asked["user"], replies))
        return found

    def save(self, path):
        path.write_text(repr(self.known))

    def load(self, path):
        self.known = eval(path.read_text())
'''

TESTENV = """
dataset:
  train_data: {"2022": ./2022.json, "2023": ./2023.json}
  test_data: {"2022": ./2022.json, "2023": ./2023.json}
scenario: {name: domain-incremental}
teacher_forced: true
metrics: [reply_token_accuracy, perplexity, EM, CN_Avg_ACC, {name: CN_Forgetting, of: perplexity}]
"""


def said(*turns: str, topic: str) -> dict[str, Any]:
    roles = ("user", "assistant") * len(turns)
    messages = [{"role": role, "content": text} for role, text in zip(roles, turns, strict=False)]
    return {"messages": messages, "topic": topic}


def written(folder: Path, testenv: str = TESTENV, plugin: str = PARROT, engine: str = "inline", **more: Any) -> Path:
    for year, mayor in (("2022", "Ann"), ("2023", "Bo")):
        records = [
            said("Who is mayor?", mayor, "Since when?", year, topic="city"),
            said("What is 1 + 1?", "two", topic="sums"),
        ]
        (folder / f"{year}.json").write_text(json.dumps(records))
    return write_job(
        folder,
        plugin=plugin,
        name="Parrot",
        hyperparameters="",
        testenv=testenv,
        job=f"seeds: [0]\nengine: {engine}",
        sort_by="[{EM: descend}]",
        **more,
    )


def case_of(path: Path) -> Any:
    (case,) = ianvs.run(path)
    assert case.status == "finished", case.failure
    return case


def test_scores_are_sums_over_the_tokens_of_a_test_set_and_matrices_are_made_of_them(tmp_path: Path) -> None:
    case = case_of(written(tmp_path))
    # 2022 has 3 + 4 + 3 letters, 2023 has 2 + 4 + 3; of the other year only "two" is known.
    expected = np.array([[0, 0], [1, 3 / 9], [3 / 10, 1]])
    assert case.matrices["reply_token_accuracy"].values == pytest.approx(expected)
    assert case.matrices["perplexity"].values == pytest.approx(2 ** (1 - expected))
    assert case.metrics["CN_Avg_ACC"] == pytest.approx((0.3 + 1) / 2)
    assert case.metrics["CN_Forgetting of perplexity"] == pytest.approx(2**0.7 - 1)
    parts = case.details["reply_token_accuracy"][2][0]  # of 2022 after 2023
    assert parts == {"reply_token_accuracy": 0.3, "topic city": 0, "topic sums": 1}
    # Each test set has two conversations, so two groups: without the one it is the score of the other.
    without = {(round(float(a), 9)) for a in np.ravel(case.samples["reply_token_accuracy"])}
    assert len(without) == 2


def test_who_was_shown_the_replies_does_not_know_them_when_it_is_asked(tmp_path: Path) -> None:
    case = case_of(written(tmp_path))
    assert case.matrices["EM"].values == pytest.approx(np.array([[0, 0], [1, 1 / 3], [1 / 3, 1]]))


def test_a_plugin_without_the_method_is_told_before_anything_trains(tmp_path: Path) -> None:
    path = written(tmp_path, plugin=edited(PARROT, "def teacher_forced", "def other"))
    for call in (ianvs.validate, ianvs.run):
        assert errors_of(call, path) == [("broken-contract", f"{tmp_path}/algorithm.yaml:5:13")]
    assert not (tmp_path / "ws" / "cases").exists()


def test_who_learns_while_it_is_tested_is_not_shown_the_replies(tmp_path: Path) -> None:
    plugin = edited(PARROT, "    def __init__", "    adapts_in_testing = True\n\n    def __init__", count=1)
    assert errors_of(ianvs.validate, written(tmp_path, plugin=plugin)) == [
        ("broken-contract", f"{tmp_path}/algorithm.yaml:5:13")
    ]


def test_who_hides_that_it_learns_while_it_is_tested_fails(tmp_path: Path) -> None:
    plugin = edited(PARROT, "self.known = {}", "self.known, self.adapts_in_testing = {}, True", count=1)
    (case,) = ianvs.run(written(tmp_path, plugin=plugin))
    assert case.failure is not None and case.failure.error == "PluginError"
    printed(case.failure.message)


@pytest.mark.parametrize("metric", ["reply_token_accuracy", "perplexity"])
def test_the_testenv_has_to_ask_for_it(tmp_path: Path, metric: str) -> None:
    testenv = edited(TESTENV, "teacher_forced: true\n", "", "reply_token_accuracy, perplexity", metric)
    assert errors_of(ianvs.validate, written(tmp_path, edited(testenv, "of: perplexity", "of: EM"))) == [
        ("unrequested-scores", f"{tmp_path}/testenv.yaml:6:13")
    ]


def test_a_model_is_not_gated_by_it(tmp_path: Path) -> None:
    gate = "model_eval: {model_metric: {name: reply_token_accuracy, mode: no_metric}, threshold: 0, operator: '>='}\n"
    assert errors_of(ianvs.validate, written(tmp_path, TESTENV + gate)) == [
        ("unfit-metric", f"{tmp_path}/testenv.yaml:8:37")
    ]


def test_only_conversations_have_replies(tmp_path: Path) -> None:
    testenv = "dataset: {name: digits}\nscenario: {name: class-incremental, rounds: 5}\nmetrics: [accuracy]\n"
    testenv += "teacher_forced: true\n"
    plugin = MAJORITY + "\n    def teacher_forced(self, data):\n        return []\n"
    assert errors_of(ianvs.validate, write_job(tmp_path, testenv=testenv, plugin=plugin)) == [
        ("unfit-exam", f"{tmp_path}/testenv.yaml:5:19")
    ]


def test_a_paradigm_that_answers_by_more_than_its_base_model_is_refused(tmp_path: Path) -> None:
    folder = shutil.copytree(ROOT / "examples" / "edge_and_cloud", tmp_path / "job")
    with (folder / "testenv.yaml").open("a") as file:
        file.write("  teacher_forced: true\n")
    assert errors_of(ianvs.validate, folder / "benchmarkingjob.yaml", engine="inline") == [
        ("unfit-paradigm", f"{tmp_path}/job/algorithm.yaml:2:18"),
        ("unfit-paradigm", f"{tmp_path}/job/unsure.yaml:2:18"),
    ]


def test_the_other_score_of_the_same_answers_asks_nothing_anew(tmp_path: Path) -> None:
    path = written(tmp_path, edited(TESTENV, " perplexity,", "", "of: perplexity", "of: EM"))
    first = case_of(path)
    listed = edited(
        (tmp_path / "testenv.yaml").read_text(), "reply_token_accuracy,", "reply_token_accuracy, perplexity,"
    )
    (tmp_path / "testenv.yaml").write_text(listed)
    second = case_of(path)
    assert [one.eval_seconds for one in second.rounds] == [one.eval_seconds for one in first.rounds]
    assert second.matrices["perplexity"].values[1, 0] == 1


@pytest.mark.parametrize(
    "found",
    [
        (None),
        ([[1, 2, -1.0]]),
        ([[1, 2, -1.0], [3, 2, -1.0]]),
        ([[1, 2, -1.0], [1.5, 2, -1.0]]),
        ([[1, 2, 0.1], [1, 2, -1.0]]),
        ([[1, 2, float("nan")], [1, 2, -1.0]]),
        ([[-1, 2, -1.0], [1, 2, -1.0]]),
        ([["a", 2, -1.0], [1, 2, -1.0]]),
    ],
)
def test_what_a_learner_says_is_checked(found: object) -> None:
    assert errors_of(TeacherForced().checked, found, 2, 0, "P") == [("invalid-result", "")]


def test_a_token_may_be_impossible_to_a_model() -> None:
    assert TeacherForced().checked([[0, 1, -np.inf]], 1, 0, "P").tolist() == [[0, 1, -np.inf]]
