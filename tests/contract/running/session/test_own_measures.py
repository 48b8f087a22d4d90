"""What a plugin measures of itself becomes a column."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import ianvs
from tests.errors import printed
from tests.jobs import MAJORITY, write_job
from tests.marks import slow

MEASURING = (
    "from ianvs.base.types import Measure\n"
    + MAJORITY
    + """
    measures = {"looked": Measure("Times it was looked at.", "last", True), "steps": Measure("Steps.")}

    def measured(self, round):
        return %s
"""
)

BURN = """import time


def burnt():
    start = time.process_time()
    while time.process_time() < start + 0.3:
        pass
    return {"steps": time.process_time() - start}


"""


def job(folder: Path, said: str) -> Path:
    return write_job(folder, plugin=MEASURING % said, hyperparameters="", job="seeds: [0]")


@pytest.mark.parametrize("engine", ["inline", slow("local")])
def test_it_is_a_column_and_has_a_value_before_training_and_after_each_round(tmp_path: Path, engine: str) -> None:
    results = ianvs.run(job(tmp_path, '{"looked": 10 * round, "steps": 2}'), engine=engine)
    [case] = results
    assert [one.measures["looked"] for one in case.rounds] == [10 * k for k in range(len(case.rounds))]
    with (tmp_path / "ws" / results.name / "rank" / "all_rank.csv").open() as file:
        [row] = csv.DictReader(file)
    last = len(case.rounds) - 1
    assert (float(row["Looked"]), float(row["Steps"])) == (10 * last, 2 * last + 2)


def test_a_name_may_be_left_out(tmp_path: Path) -> None:
    [case] = ianvs.run(job(tmp_path, '{} if round == 0 else {"looked": 1}'), engine="inline")
    assert case.rounds[0].measures == {}
    assert case.rounds[1].measures == {"looked": 1}


@pytest.mark.parametrize(
    "said",
    [
        ('{"lookd": 1}',),
        ('{"looked": float("nan")}'),
        ('{"looked": "much"}'),
        ("3"),
    ],
)
def test_what_is_no_measure_is_told(tmp_path: Path, said: str) -> None:
    [case] = ianvs.run(job(tmp_path, said), engine="inline")
    assert case.failure is not None
    assert case.failure.error == "PluginError"
    printed(case.failure.message)


@pytest.mark.slow
def test_it_is_no_part_of_the_time_of_training(tmp_path: Path) -> None:
    code = BURN + MEASURING % "burnt()"
    [case] = ianvs.run(write_job(tmp_path, plugin=code, hyperparameters="", job="seeds: [0]"), engine="local")
    assert sum(one.measures["steps"] for one in case.rounds) > 0.3 * len(case.rounds)
    assert max(one.train_cpu_seconds for one in case.rounds[1:]) < 0.3
