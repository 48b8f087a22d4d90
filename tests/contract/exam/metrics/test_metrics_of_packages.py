"""Metrics of other packages: entry points of the group `ianvs.metrics`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.base.errors import ConfigError, Location
from ianvs.base.types import ScoreMatrix
from ianvs.cli import main
from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics import EvaluationRecord, find, matrix_report
from ianvs.exam.metrics.registry import names, resolve
from ianvs.running.planning.identity import metric_key
from tests.edits import edited
from tests.errors import errors_of, recorded
from tests.jobs import write_job
from tests.packages import install

CODE = '''
from ianvs.exam.metrics import matrix_metric, mean, score_metric


@score_metric("error_rate", aliases=("errors",), formula="1 - sum_c TP_c / N", source="tests")
def error_rate(record):
    """Share of samples that are predicted wrong."""
    return 1 - record.confusion.trace() / record.confusion.sum()


@matrix_metric("last_row", formula="mean_j R[T][j]", source="tests")
def last_row(R):
    """Mean of the last row."""
    return mean(R[-1])


METRICS = (error_rate, last_row)
nothing = [1]
'''
SPEC = MetricSpec("error_rate", place=Location(Path("testenv.yaml"), 3, 4))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    points = "[ianvs.metrics]\nours = of_errors:METRICS\nnone = of_errors:nothing\nbroken = tomorrow:METRICS\n"
    install(tmp_path / "installed", monkeypatch, "of_errors", CODE, points)
    return tmp_path / "installed" / "of_errors.py"


@pytest.mark.usefixtures("package")
def test_another_package_brings_metrics() -> None:
    metric = resolve(SPEC)
    assert metric is find("errors")
    assert metric.function is not None
    assert metric.function(EvaluationRecord(("a", "b"), np.array([0, 1]), np.array([0, 0]))) == 0.5
    assert matrix_report(ScoreMatrix.from_rounds(np.eye(2)))["last_row"] == 0.5
    every = names()
    # Scores, then those over a score matrix, then what the runner measures; within each ianvs's own first.
    assert every.index("accuracy") < every.index("error_rate") < every.index("AA") < every.index("last_row")
    assert every.index("last_row") < every.index("train_seconds")


@pytest.mark.usefixtures("package")
def test_a_run_and_its_leaderboard_show_it(tmp_path: Path) -> None:
    exam = "dataset: {name: digits}\nscenario: {name: CIL, rounds: 2}\nmetrics: [error_rate, accuracy, last_row]"
    [found] = ianvs.run(
        write_job(tmp_path, testenv=exam, hyperparameters="", job="seeds: [0]", sort_by="[{error_rate: ascend}]")
    )
    assert found.metrics["error_rate"] == pytest.approx(1 - found.metrics["accuracy"])
    assert found.metrics["last_row"] == pytest.approx(found.matrices["error_rate"].values[-1].mean())


def test_what_is_installed_no_more_is_not_known() -> None:
    assert find("error_rate") is None


@pytest.mark.usefixtures("package")
def test_what_cannot_be_used_stops_nothing_else_and_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert find("accuracy") is not None
    with pytest.raises(ConfigError) as caught:
        resolve(MetricSpec("eror_rate"))
    assert recorded(caught.value.problems) == [("unknown-metric", "")]
    assert main(["metrics"]) == 0
    shown = capsys.readouterr()
    assert "(also errors)" in shown.out
    for entry in ("tomorrow:METRICS", "of_errors:nothing"):
        assert entry in str(caught.value)
        assert entry in shown.err


@pytest.mark.usefixtures("package")
def test_two_packages_of_one_metric_are_both_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rival = edited(CODE, 'aliases=("errors",)', 'aliases=("accuracy",)')
    install(tmp_path / "rival", monkeypatch, "rival", rival, "[ianvs.metrics]\nours = rival:METRICS\n")
    assert errors_of(resolve, SPEC) == [("unknown-metric", "testenv.yaml:3:4")]
    assert errors_of(resolve, MetricSpec("accuracy")) == [("unknown-metric", "")]
    assert resolve(MetricSpec("errors")).name == "error_rate", "this name is not in doubt"
    assert resolve(MetricSpec("BWT")).name == "BWT"


def test_scores_of_another_definition_are_other_scores(package: Path) -> None:
    before = metric_key(SPEC)
    package.write_text(package.read_text() + "\nassert True\n")
    assert metric_key(SPEC) != before


@pytest.mark.usefixtures("package")
def test_an_option_that_it_lacks_is_refused() -> None:
    assert errors_of(resolve, MetricSpec("error_rate", options={"topk": 5})) == [("unknown-option", "")]
