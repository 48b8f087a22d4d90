"""A job of several exams: each means by a name what its own testenv says, whoever ran its cases first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ianvs
from tests.edits import edited
from tests.errors import errors_of
from tests.jobs import write_job

FIRST = "name: five\ndataset: {{name: digits}}\nscenario: {{name: CIL, rounds: 5}}\nmetrics: [{}]"
SECOND = "testenv:\n  name: two\n  dataset: {{name: digits}}\n  scenario: {{name: CIL, rounds: 2}}\n  metrics: [{}]\n"


def job(folder: Path, first: str, second: str, **settings: object) -> Path:
    """The exams `five` and `two`, with these metrics."""
    path = write_job(folder, testenv=FIRST.format(first), hyperparameters="", job="engine: inline", **settings)
    (folder / "other.yaml").write_text(SECOND.format(second))
    path.write_text(edited(path.read_text(), "testenv: ./testenv.yaml", "testenv: [./testenv.yaml, ./other.yaml]"))
    return path


def test_a_metric_over_the_matrix_is_of_the_first_score_of_its_own_exam(tmp_path):
    results = ianvs.run(job(tmp_path, "accuracy, f1, AA", "f1, accuracy, AA"))
    one, other = results
    for found, score in ((one, "accuracy"), (other, "f1")):
        assert found.metrics[f"AA of {score}"] == pytest.approx(np.mean(found.matrices[score].values[-1]))
    assert other.metrics["f1"] != other.metrics["accuracy"]
    assert [found.metrics for found in ianvs.load_results(tmp_path / "ws")] == [found.metrics for found in results]


def test_a_metric_may_be_of_another_score_in_another_exam(tmp_path):
    one, other = ianvs.run(job(tmp_path, "accuracy, {name: AA, of: f1}", "accuracy, AA"))
    assert one.metrics["AA of f1"] == pytest.approx(np.mean(one.matrices["f1"].values[-1]))
    assert other.metrics["AA"] == other.metrics["accuracy"]


def test_a_metric_of_one_exam_alone_is_blank_in_the_other(tmp_path):
    one, other = ianvs.run(job(tmp_path, "accuracy, BWT", "accuracy")).leaderboard.rows
    assert one.metrics["BWT"].mean is not None
    assert other.metrics["BWT"].mean is None


def test_an_exam_that_nothing_ranks_is_refused_at_its_metrics(tmp_path):
    assert errors_of(ianvs.run, job(tmp_path, "accuracy, BWT", "f1")) == [
        ("unknown-column", f"{tmp_path / 'other.yaml'}:5:12")
    ]


def test_loaded_results_call_cases_as_their_job_does(tmp_path):
    ianvs.run(write_job(tmp_path, testenv=FIRST.format("accuracy"), hyperparameters="", job="engine: inline"))
    results = ianvs.run(job(tmp_path, "accuracy", "accuracy", algorithms=("majority", "twin")))
    loaded = ianvs.load_results(tmp_path / "ws")
    assert [(found.case.testenv, found.case.algorithm) for found in loaded] == [
        ("five", "majority"),
        ("five", "twin"),
        ("two", "majority"),
        ("two", "twin"),
    ]
    assert loaded.leaderboard.rows == results.leaderboard.rows


def test_what_is_odd_about_a_row_names_its_exam(tmp_path):
    from ianvs.results.report.build_document import document_of
    from ianvs.results.report.markdown import markdown

    plugin = "class Majority:\n    def train(self, train_data, valid_data=None):\n        raise RuntimeError('no')\n"
    plugin += "    def predict(self, data):\n        return [0] * len(data)\n"
    plugin += "    def save(self, path): ...\n    def load(self, path): ...\n"
    page = markdown(document_of(ianvs.run(job(tmp_path, "accuracy", "accuracy", plugin=plugin)).leaderboard))
    assert "majority in five, majority in two: RuntimeError: plugin.py:3: no" in page
