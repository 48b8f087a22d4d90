"""Reference runs: ordinary cases that others are compared with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import core
from core.errors import ConfigError
from tests.jobs import MAJORITY, write_job

SOLO = MAJORITY.replace("        for label in", "        self.counts = {}\n        for label in")
TESTENV = """
dataset: {name: digits}
scenario: {name: class-incremental, rounds: 5}
metrics: [accuracy, IM, FWT_survey, delta_m]
"""


def job(folder: Path, references: str, metrics: str = TESTENV) -> Path:
    """`mine` and, as references, `alone` (trained on one round) and `all` (which is Majority as well)."""
    extra = f"seeds: [0, 1]\nengine: inline\n{references}"
    path = write_job(folder, testenv=metrics, hyperparameters="", algorithms=("mine", "alone", "all"), job=extra)
    (folder / "alone.py").write_text(SOLO)
    text = (folder / "algorithm.yaml").read_text()
    (folder / "alone.yaml").write_text(text.replace("./plugin.py", "./alone.py"))
    path.write_text(path.read_text().replace("name: alone, url: ./algorithm.yaml", "name: alone, url: ./alone.yaml"))
    return path


def test_metrics_that_need_a_reference_are_null_without_it(tmp_path: Path) -> None:
    for found in core.run(job(tmp_path, "")):
        assert (found.metrics["IM"], found.metrics["FWT_survey"], found.metrics["delta_m"]) == (None, None, None)


def test_they_are_computed_from_the_references_of_the_same_seed(tmp_path: Path) -> None:
    results = {
        (found.case.algorithm, found.case.seed): found
        for found in core.run(job(tmp_path, "references: {solo: alone, joint: all}"))
    }
    for seed in (0, 1):
        R = results["mine", seed].matrices["accuracy"].values[1:]
        solo = np.diagonal(results["alone", seed].matrices["accuracy"].values[1:])
        joint = np.diagonal(results["all", seed].matrices["accuracy"].values[1:])
        found = results["mine", seed].metrics
        assert found["IM"] == pytest.approx(joint[4] - R[4, 4])
        assert found["FWT_survey"] == pytest.approx(np.mean(np.diagonal(R)[1:] - solo[1:]))
        assert found["delta_m"] == pytest.approx(np.mean(100 * (R[4] - solo) / solo))


def test_naming_references_in_a_finished_job_trains_nothing(tmp_path: Path) -> None:
    core.run(job(tmp_path, ""))
    again = core.run(job(tmp_path, "references: {solo: alone}"))
    assert again.ran == 0
    assert all(found.metrics["delta_m"] is not None for found in again)
    assert all(found.metrics["delta_m"] is not None for found in core.load_results(tmp_path / "ws"))


def test_a_reference_that_is_no_algorithm_of_the_job_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'alnoe' is not an algorithm of this job\. Did you mean 'alone'\?"):
        core.run(job(tmp_path, "references: {solo: alnoe}"))
