"""docs/extending.md: its examples run as they stand."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.base.types import PredictionKey
from ianvs.exam.metrics import EvaluationRecord, find
from ianvs.store import CaseStore, ExamStore
from tests.documents import blocks
from tests.edits import edited
from tests.packages import install

TESTENV = "testenv:\n  dataset: {name: digits}\n  scenario: {name: CIL, rounds: 2}\n"
ALGORITHM = "algorithm:\n  paradigm_type: incrementallearning\n  modules: [{type: basemodel, name: Finetune}]\n"


def run(folder: Path, section: str, file: str, example: int = 0) -> ianvs.Results:
    """A job in which the python of the section's example is `file` and its yaml takes the place of ours."""
    code = blocks("extending.md", section, "python")[example]
    yaml = blocks("extending.md", section, "yaml")[example]
    (folder / file).write_text(code)
    own_metrics = yaml.startswith("testenv:")
    metrics = f"{yaml.partition(chr(10))[2]}    - accuracy\n" if own_metrics else "  metrics: [accuracy]\n"
    (folder / "testenv.yaml").write_text(TESTENV + metrics)
    (folder / "algorithm.yaml").write_text(ALGORITHM if own_metrics else yaml)
    path = folder / "benchmarkingjob.yaml"
    path.write_text(
        "benchmarkingjob:\n  name: page\n  workspace: ./ws\n  testenv: ./testenv.yaml\n  engine: inline\n"
        "  test_object: {type: algorithms, algorithms: [{name: mine, url: ./algorithm.yaml}]}\n"
        "  rank: {sort_by: [{accuracy: descend}]}\n"
    )
    results = ianvs.run(path, workspace=folder / "ws")
    assert results.exit_code == 0
    return results


def test_a_method(tmp_path: Path) -> None:
    first, second = run(tmp_path, "A method", "nearest_mean.py")
    assert [found.case.hyperparameters["shrinkage"] for found in (first, second)] == [0.0, 1.0]
    assert (first.metrics["accuracy"] or 0) > 0.8


@pytest.mark.slow
def test_a_method_on_the_base_class(tmp_path: Path) -> None:
    _, found = run(tmp_path, "A method in PyTorch", "my_er_ace.py")
    algorithm = tmp_path / "algorithm.yaml"
    text = edited(algorithm.read_text(), "[200]}", "[200]}\n        - fill: {values: [after_round]}")
    assert text != algorithm.read_text()
    algorithm.write_text(text)
    _, without = ianvs.run(tmp_path / "benchmarkingjob.yaml", workspace=tmp_path / "ws")
    assert (found.metrics["accuracy"] or 0) > (without.metrics["accuracy"] or 0) + 0.02  # new against old is learned


def test_a_metric(tmp_path: Path) -> None:
    [found] = run(tmp_path, "A metric", "worst_class.py")
    assert 0 <= (found.metrics["worst_class"] or 0) < (found.metrics["accuracy"] or 0)
    assert (found.metrics["BWT"] or 0) < 0


def test_a_metric_over_rounds(tmp_path: Path) -> None:
    [found] = run(tmp_path, "A metric", "forgetting_events.py", 1)
    cases, exams = CaseStore(tmp_path / "ws"), ExamStore(tmp_path / "ws")
    expected = np.zeros((3, 2))
    for j, truth in enumerate(exams.truth(cases.exam_id(found.case.id))):
        right = [cases.predictions(found.case.id, k)[PredictionKey(j)].labels == truth for k in range(3)]
        lost = [0.0, *(np.mean(before & ~now) for before, now in itertools.pairwise(right))]
        expected[:, j] = np.cumsum(lost)
    np.testing.assert_allclose(found.matrices["ForgettingEvents"].values, expected)
    assert found.metrics["ForgettingEvents"] == pytest.approx(expected[-1].mean())
    assert expected[-1, 0] > 0.5


@pytest.mark.slow
def test_a_metric_over_a_score_matrix(tmp_path: Path) -> None:
    results = run(tmp_path, "A metric", "largest_drop.py", 2)
    [found] = results
    R = found.matrices["accuracy"].R
    assert found.metrics["largest_drop"] == pytest.approx(R[0, 0] - R[1, 0])
    assert (found.metrics["largest_drop"] or 0) > 0.5
    [row] = results.leaderboard.rows
    assert row.metrics["largest_drop"].mean == found.metrics["largest_drop"]
    (tmp_path / "largest_drop.py").unlink()  # its numbers are stored
    [loaded] = ianvs.load_results(tmp_path / "ws")
    assert loaded.metrics == found.metrics


def test_metrics_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (_, code), [points] = (blocks("extending.md", "A metric", language) for language in ("py", "toml"))
    group, line = edited(points, "project.entry-points.", "", '"', "").splitlines()
    install(tmp_path, monkeypatch, "my_metrics", code, f"{group}\n{edited(line, 'my_package.metrics', 'my_metrics')}\n")
    record = EvaluationRecord(("a", "b"), np.array([0, 1]), np.array([0, 0]))
    scores = [find(name) for name in ("error_rate", "final_mean")]
    assert all(found is not None and found.summary in code for found in scores)
    assert scores[0] is not None and scores[0].function is not None and scores[0].function(record) == 0.5


@pytest.mark.slow
def test_a_paradigm(tmp_path: Path) -> None:
    [found] = run(tmp_path, "A paradigm", "restart.py")
    assert found.case.paradigm == "RestartEachRound"
    assert [round_.measures for round_ in found.rounds] == [{}, {"restarts": 2.0}, {"restarts": 2.0}]
    assert "Restarts" in (tmp_path / "ws" / "page" / "rank" / "leaderboard.md").read_text()


NEAREST = """
import numpy as np


def nearest(x, y, asked, neighbours=1):
    x, asked = x.reshape(len(x), -1), asked.reshape(len(asked), -1)
    near = ((asked[:, None] - x[None]) ** 2).sum(2).argsort(1)[:, :neighbours]
    return np.array([np.bincount(y[row]).argmax() for row in near])
"""


def test_a_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [code], [points] = (blocks("extending.md", "A contract", language) for language in ("python", "toml"))
    group, line = edited(points, "project.entry-points.", "", '"', "").splitlines()
    install(tmp_path / "site", monkeypatch, "lookup", code, f"{group}\n{edited(line, 'my_package.lookup', 'lookup')}\n")
    (tmp_path / "nearest.py").write_text(NEAREST)
    one, three = run(tmp_path, "A contract", "a_copy.py")
    assert 0.4 < (one.metrics["accuracy"] or 0) < 0.6  # the second round's half of the classes is all that it knows
    assert three.matrices["accuracy"].R.shape == (2, 2)
