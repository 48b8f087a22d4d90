"""A learner that gives the same answer to everything is told as such."""

from pathlib import Path

import pytest

import ianvs
from tests.edits import edited
from tests.errors import printed
from tests.jobs import MAJORITY, TESTENV, write_job

SAYS = "all answers after round 5 are '9': of a network this says that its training broke down"
ONE = edited(MAJORITY, "[max(counts, key=counts.get)] * len(data)", "[9] * len(data)")
TWO = edited(MAJORITY, "[max(counts, key=counts.get)] * len(data)", "([9] * len(data))[:-1] + [8]")
TOLD = edited(TESTENV, "class-incremental", "task-incremental")
FIRST_OF_TASK = edited(
    edited(MAJORITY, "def predict(self, data)", "def predict(self, data, task_classes=(0,))"),
    "[max(counts, key=counts.get)] * len(data)",
    "[task_classes[0]] * len(data)",
)
ONE_A_ROUND = edited(TESTENV, "rounds: 5", "rounds: 10")


@pytest.mark.parametrize(
    ("plugin", "testenv", "says"),
    [(ONE, TESTENV, True), (TWO, TESTENV, False), (ONE, ONE_A_ROUND, False)],
    ids=["one answer", "two answers", "the last round has one class"],
)
def test_one_answer_to_everything_is_said_beside_the_row(plugin: str, testenv: str, says: bool, tmp_path: Path) -> None:
    results = ianvs.run(write_job(tmp_path, plugin=plugin, testenv=testenv, hyperparameters="", job="seeds: [0]"))
    [remark] = [found.remark for found in results]
    assert bool(remark) is says
    printed(remark)
    assert remark in (tmp_path / "ws/test/rank/leaderboard.md").read_text()


def test_with_the_task_told_one_answer_in_each_task_is_said(tmp_path: Path) -> None:
    job = write_job(tmp_path, plugin=FIRST_OF_TASK, testenv=TOLD, hyperparameters="", job="seeds: [0]")
    [found] = ianvs.run(job)
    assert "'0', '2', '4', '6', '8'" in found.remark
