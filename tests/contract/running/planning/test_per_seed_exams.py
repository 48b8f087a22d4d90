"""Exams that each seed of a job has for itself."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ianvs
from ianvs.config.spec import ScenarioSpec
from ianvs.exam.data.parts import Part
from ianvs.exam.scenarios.per_seed_exam import drawn_by, seeds_of_case
from ianvs.store import CaseStore, ExamStore
from tests.edits import edited
from tests.errors import errors_of, printed
from tests.jobs import MAJORITY, write_job
from tests.marks import slow

OWN = """
dataset: {name: digits}
scenario: {name: class-incremental, rounds: 5, order_seed: case}
metrics: [accuracy, BWT]
"""
SHARED = edited(OWN, ", order_seed: case", "")


def job(folder: Path, testenv: str = OWN, seeds: str = "[0, 1, 2]", **options: Any) -> Path:
    settings = {"hyperparameters": "", "algorithms": ("one", "other"), **options}
    path = write_job(folder, testenv=testenv, job=f"seeds: {seeds}\nengine: inline", **settings)
    if "other" in settings["algorithms"]:
        (folder / "other.yaml").write_text(
            (folder / "algorithm.yaml").read_text() + "      hyperparameters: [bias: {values: [7]}]\n"
        )
        path.write_text(
            edited(path.read_text(), "name: other, url: ./algorithm.yaml", "name: other, url: ./other.yaml")
        )
    return path


def orders(results: ianvs.Results) -> dict[tuple[str, int], tuple[tuple[int, ...], ...]]:
    """The classes of each round, by algorithm and seed."""
    cases, exams = CaseStore(results.workspace), ExamStore(results.workspace)
    found = {}
    for case in results.case_list:
        record = exams.record((cases.identity(case.id) or {})["exam_id"])
        assert record is not None
        found[case.algorithm, case.seed] = record.round_classes
    return found


@pytest.mark.slow
def test_each_seed_has_an_order_of_its_own_and_all_algorithms_of_a_seed_the_same(tmp_path: Path) -> None:
    found = orders(ianvs.run(job(tmp_path)))
    assert len(found) == 6
    assert len({found["one", seed] for seed in range(3)}) == 3
    for seed in range(3):
        assert found["one", seed] == found["other", seed]
        drawn = np.random.default_rng(seed).permutation(10).reshape(5, 2)
        assert found["one", seed] == tuple(map(tuple, drawn.tolist()))


@pytest.mark.slow
def test_the_seeds_of_an_algorithm_are_one_row(tmp_path: Path) -> None:
    results = ianvs.run(job(tmp_path))
    rows = results.leaderboard.rows
    assert sorted(row.algorithm for row in rows) == ["one", "other"]
    assert [(row.seeds, row.expected, row.complete) for row in rows] == [((0, 1, 2), 3, True)] * 2
    assert rows[0].metrics["accuracy"].n == 3
    assert list(rows[0].tests) == [f"test set {k}" for k in range(1, 6)]
    assert [len(row.tests) for row in ianvs.load_results(tmp_path / "ws").leaderboard.rows] == [5, 5]
    assert "`order_seed: case`" in " ".join(map(str, results.leaderboard.notes))
    with (tmp_path / "ws" / "test" / "rank" / "all_rank.csv").open() as file:
        assert [row["Seeds"] for row in csv.DictReader(file)] == ["3", "3"]


@pytest.mark.slow
def test_a_mean_over_orders_is_that_of_the_jobs_that_name_them(tmp_path: Path) -> None:
    """`case` is no more than the number of the seed: the cases of both ways are the same ones."""
    drawn = ianvs.run(job(tmp_path / "a", seeds="[0, 1]", algorithms=("one",)))
    for seed in range(2):
        own = edited(OWN, "case", str(seed))
        named = ianvs.run(job(tmp_path / f"{seed}", own, seeds=f"[{seed}]", algorithms=("one",)))
        (case,), (same,) = list(named), [result for result in drawn if result.case.seed == seed]
        assert case.case.id == same.case.id
        assert case.metrics == same.metrics


def test_loaded_results_are_one_row_though_another_job_ran_a_case_first(tmp_path: Path) -> None:
    ianvs.run(job(tmp_path, edited(OWN, "case", "1"), seeds="[1]", algorithms=("one",)))
    again = ianvs.run(job(tmp_path, algorithms=("one",)))
    assert again.ran == 2
    assert [len(row.seeds) for row in ianvs.load_results(tmp_path / "ws").leaderboard.rows] == [3]


@pytest.mark.slow
def test_a_job_that_was_cut_off_goes_on_with_the_order_of_its_seed(tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    code = edited(
        MAJORITY, "if round == self.fail_in_round:", f"if (round, seed) == (4, 1) and Path({str(stop)!r}).exists():"
    )
    path = job(tmp_path, plugin=f"from pathlib import Path\n{code}", algorithms=("one",))
    stop.touch()
    assert ianvs.run(path).exit_code == 1
    stop.unlink()
    resumed = ianvs.run(path)
    assert (resumed.exit_code, resumed.ran) == (0, 1)
    whole = ianvs.run(path, workspace=tmp_path / "whole")
    assert orders(resumed) == orders(whole)
    matrices = [[result.matrices["accuracy"].values.tolist() for result in results] for results in (whole, resumed)]
    assert matrices[0] == matrices[1]
    assert ianvs.run(path).ran == 0


def test_nothing_changes_for_an_exam_that_all_seeds_share(tmp_path: Path) -> None:
    found = orders(ianvs.run(job(tmp_path, SHARED)))
    assert len(set(found.values())) == 1


@pytest.mark.parametrize(
    "scenario",
    [
        "{name: domain-incremental, permutation: true, rounds: 2, seed: case}",
        slow("{name: domain-incremental, rotation: {random: 2}, seed: case}"),
        slow("{name: domain-incremental, class_groups: 5, order_seed: case}"),
        slow("{name: task-incremental, rounds: 5, order_seed: case}"),
        slow("{name: blurred-boundary, rounds: 5, seed: case}"),
        "{name: class-incremental, rounds: 5, modifiers: {few_shot: 5, seed: case}}",
    ],
)
def test_whatever_a_scenario_draws_may_be_drawn_for_each_seed(tmp_path: Path, scenario: str) -> None:
    testenv = f"dataset: {{name: digits}}\nscenario: {scenario}\nmetrics: [accuracy]"
    results = ianvs.run(job(tmp_path, testenv, seeds="[0, 1]", algorithms=("one",)))
    assert len({CaseStore(tmp_path / "ws").exam_id(case.id) for case in results.case_list}) == 2
    drawn = []
    for seed in (0, 1):
        [exam] = ianvs.api.exams(job(tmp_path, testenv, seeds=f"[{seed}]", algorithms=("one",))).values()
        parts = [Part(exam.dataset.train, one.train, one.transform) for one in exam.rounds]
        drawn.append([column.gather().tolist() for part in parts for column in (part.column("x"), part.column("y"))])
    assert drawn[0] != drawn[1]
    assert len(results.leaderboard.rows) == 1


def test_the_exam_is_shown_for_the_first_seed(tmp_path: Path) -> None:
    ((name, exam),) = ianvs.api.exams(job(tmp_path, seeds="[4, 5]")).items()
    printed(name)
    assert exam.rounds[0].classes == tuple(np.random.default_rng(4).permutation(10)[:2].tolist())


def test_a_misspelt_case_is_refused(tmp_path: Path) -> None:
    assert errors_of(ianvs.validate, job(tmp_path, edited(OWN, "case", "cases"))) == [
        ("invalid-option", f"{tmp_path / 'testenv.yaml'}:3:50")
    ]


def test_only_seeds_are_drawn() -> None:
    spec = ScenarioSpec("mine", {"seed": "case", "name_of": "case", "parts": [{"order_seed": "case"}, "case"]})
    assert seeds_of_case(spec) == ["seed", "order_seed"]
    assert drawn_by(spec, 3).options == {"seed": 3, "name_of": "case", "parts": [{"order_seed": 3}, "case"]}
