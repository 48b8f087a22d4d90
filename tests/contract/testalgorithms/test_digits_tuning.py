"""The main job's hyperparameters: what the committed tuning report says, found on what the exams do not use."""

from __future__ import annotations

import runpy
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

from ianvs.api import exams as exams_of
from ianvs.config import load_job
from ianvs.config.spec import JobSpec

ROOT = Path(__file__).parents[3]
REPORT = ROOT / "reports" / "digits_tuning" / "all_rank.csv"
TUNING = runpy.run_path(str(ROOT / "configs" / "digits_tuning" / "winners.py"))


def job_of(name: str) -> JobSpec:
    return load_job(ROOT / "configs" / name / "benchmarkingjob.yaml")


@pytest.fixture(scope="module")
def main_job() -> JobSpec:
    return job_of("digits_class_incremental")


@pytest.fixture(scope="module")
def tuning_job() -> JobSpec:
    return job_of("digits_tuning")


def grids(job: JobSpec) -> dict[str, dict[str, list]]:
    return {a.name: {name: list(values) for name, values in a.modules[0].grid} for a in job.algorithms}


def test_every_method_had_the_same_number_of_trials(tuning_job: JobSpec) -> None:
    report = pd.read_csv(REPORT)
    trials = report.groupby(["Testenv", "Algorithm"]).size()
    assert len(trials) == len(tuning_job.testenvs) * len(tuning_job.algorithms)
    assert set(trials) == {20}


def test_the_main_job_uses_the_winners_of_the_committed_report(main_job: JobSpec) -> None:
    won = TUNING["winners"](REPORT)
    assert won.keys() == grids(main_job).keys()
    for name, grid in grids(main_job).items():
        assert {key: [value] for key, value in won[name].items()} == grid, name


def test_the_winner_has_the_highest_mean_over_both_exams_and_finished_both(tmp_path: Path) -> None:
    rows = [("a", 0.1, "one", 0.9), ("a", 0.1, "two", 0.1), ("a", 0.2, "one", 0.6), ("a", 0.2, "two", 0.6)]
    rows += [("a", 0.3, "one", 1.0), ("a", 0.3, "two", None)]
    table = pd.DataFrame(rows, columns=["Algorithm", "Learning_rate", "Testenv", "accuracy"])
    table.insert(1, "Basemodel", "A")
    table.insert(3, "Seeds", 2)
    table.to_csv(tmp_path / "rank.csv")
    assert TUNING["winners"](tmp_path / "rank.csv") == {"a": {"learning_rate": 0.2}}


def test_tuning_sees_no_seed_order_angle_or_picture_that_the_exams_use(
    main_job: JobSpec, tuning_job: JobSpec, tmp_path: Path
) -> None:
    assert not {*main_job.seeds} & {*tuning_job.seeds}
    exams, tuned = (exams_of(job.file, workspace=tmp_path) for job in (main_job, tuning_job))
    assert exams.keys() == tuned.keys()
    for name, exam in exams.items():
        rounds, others = ([round_.name for round_ in found.rounds] for found in (exam, tuned[name]))
        assert not {*rounds} & {*others}
        assert not {*pairwise(rounds)} & {*pairwise(others)}
        asked = {*exam.dataset.test.ids}
        assert not asked & {*tuned[name].dataset.train.ids, *tuned[name].dataset.test.ids}
