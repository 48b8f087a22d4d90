"""How often samples of old classes are answered as newer ones, in jobs that ran."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ianvs
from ianvs.base.types import Asked
from ianvs.results.report.newer_answers import newer_answers
from ianvs.store import CaseStore, ExamStore
from tests.edits import edited
from tests.jobs import TESTENV, write_job

PLUGIN = """
class Says:
    def __init__(self, newest=1):
        self.newest, self.answer = newest, 0

    def train(self, train_data, *, new_classes):
        self.answer = new_classes[0]

    def predict(self, data):
        return [self.answer if n % 4 < 4 * self.newest else 0 for n in range(len(data))]

    def save(self, path):
        path.write_text(str(self.answer))

    def load(self, path):
        self.answer = int(path.read_text())
"""
NAME = "answered as newer"


def ran(folder: Path, testenv: str = TESTENV, values: str = "[0, 1, 0.25]") -> dict[float, Any]:
    path = write_job(
        folder, plugin=PLUGIN, name="Says", hyperparameters=f"- newest: {{values: {values}}}", testenv=testenv,
        job="seeds: [0]\nengine: inline",
    )  # fmt: skip
    results = ianvs.run(path)
    assert results.exit_code == 0
    return {case.case.hyperparameters["newest"]: case for case in results}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[float, Any]:
    return ran(tmp_path_factory.mktemp("digits"))


def test_all_or_none_of_the_old_samples_are_answered_as_the_newest_class(found: dict[float, Any]) -> None:
    earlier = np.tri(6, 5, -2, dtype=bool)  # [k, j] test set j is of a round before k
    for newest in (0, 1):
        matrix = newer_answers(found[newest])[NAME]
        assert not matrix.higher_is_better
        np.testing.assert_array_equal(matrix.values, np.where(earlier, float(newest), np.nan))


def test_the_share_is_that_of_the_stored_answers(found: dict[float, Any]) -> None:
    case = found[0.25]
    cases, exams = (store(case.directory.parents[1]) for store in (CaseStore, ExamStore))
    truths = exams.truth(cases.exam_id(case.case.id))
    values = newer_answers(case)[NAME].values
    for k in range(2, 6):
        said = cases.predictions(case.case.id, k)
        for j in range(k - 1):
            pairs = zip(truths[j].tolist(), said[Asked(j)].labels.tolist(), strict=True)
            newer = [answer // 2 > label // 2 for label, answer in pairs]  # two digits a round, in their order
            assert values[k, j] == pytest.approx(sum(newer) / len(newer))
            assert 0 < values[k, j] < 1


def test_the_page_draws_it(found: dict[float, Any]) -> None:
    page = (found[0].directory.parents[1] / "test" / "rank" / "report.html").read_text()
    assert len(re.findall(r">[^<]*answered as newer[^<]*<", page)) >= 2


def test_it_says_nothing_where_the_task_is_told(tmp_path: Path) -> None:
    testenv = edited(TESTENV, "class-incremental", "task-incremental")
    [case] = ran(tmp_path, testenv, "[0]").values()
    assert newer_answers(case) == {}
