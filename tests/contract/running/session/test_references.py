"""Reference runs: ordinary cases that others are compared with."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs import api
from tests.edits import edited
from tests.errors import errors_of, printed
from tests.jobs import MAJORITY, write_job

SOLO = edited(MAJORITY, "        for label in", "        self.counts = {}\n        for label in")
TESTENV = """
dataset: {name: digits}
scenario: {name: class-incremental, rounds: 5}
metrics: [accuracy, IM, FWT_survey]
"""


def job(folder: Path, references: str, metrics: str = TESTENV) -> Path:
    """`mine` and, as references, `alone` (trained on one round) and `all` (which is Majority as well)."""
    extra = f"seeds: [0, 1]\nengine: inline\n{references}"
    path = write_job(folder, testenv=metrics, hyperparameters="", algorithms=("mine", "alone", "all"), job=extra)
    (folder / "alone.py").write_text(SOLO)
    text = (folder / "algorithm.yaml").read_text()
    (folder / "alone.yaml").write_text(edited(text, "./plugin.py", "./alone.py"))
    path.write_text(edited(path.read_text(), "name: alone, url: ./algorithm.yaml", "name: alone, url: ./alone.yaml"))
    return path


def test_metrics_that_need_a_reference_are_null_without_it(tmp_path: Path) -> None:
    for found in ianvs.run(job(tmp_path, "references: none")):
        assert (found.metrics["IM"], found.metrics["FWT_survey"]) == (None, None)


def test_they_are_computed_from_the_references_of_the_same_seed(tmp_path: Path) -> None:
    results = {
        (found.case.algorithm, found.case.seed): found
        for found in ianvs.run(job(tmp_path, "references: {single_task: alone, joint: all}"))
    }
    for seed in (0, 1):
        R = results["mine", seed].matrices["accuracy"].values[1:]
        single_task = np.diagonal(results["alone", seed].matrices["accuracy"].values[1:])
        joint = np.diagonal(results["all", seed].matrices["accuracy"].values[1:])
        found = results["mine", seed].metrics
        assert found["IM"] == pytest.approx(joint[4] - R[4, 4])
        assert found["FWT_survey"] == pytest.approx(np.mean(np.diagonal(R)[1:] - single_task[1:]))


@pytest.mark.parametrize("rounds", [5, 10])
def test_delta_m_is_blank_where_it_would_divide_by_what_is_hardly_known(tmp_path: Path, rounds: int) -> None:
    """Of two classes in a round Majority knows one: .5 of 71 samples has an error of .06. Of one it knows all."""
    testenv = edited(edited(TESTENV, "IM, FWT_survey", "delta_m"), "rounds: 5", f"rounds: {rounds}")
    results = list(ianvs.run(job(tmp_path, "references: {single_task: alone}", testenv)))
    single_task = next(found for found in results if found.case.algorithm == "alone").matrices["accuracy"]
    score, error = (np.diagonal(values[1:]) for values in (single_task.values, single_task.errors))
    assert error == pytest.approx(np.sqrt(score * (1 - score) / 71), rel=0.5)
    for found in (one for one in results if one.case.algorithm == "mine"):
        last = found.matrices["accuracy"].values[-1]
        wanted = None if rounds == 5 else pytest.approx(np.mean(100 * (last - score) / score))
        assert found.metrics["delta_m"] == wanted
        assert any("delta_m" in warning for warning in found.warnings) is (rounds == 5)


@pytest.mark.slow
def test_a_row_whose_reference_is_gone_or_damaged_says_so(tmp_path: Path) -> None:
    path = job(tmp_path, "references: {single_task: alone, joint: all}")
    results = ianvs.run(path)
    references = {tmp_path / "ws" / "cases" / roles["single_task"] for roles in results.references.values()}
    (min(references) / "scores.json").write_text("{}")
    rows = {row.algorithm: row for row in api.report(path).leaderboard.rows}
    printed(rows["mine"].status)
    for folder in references:
        shutil.rmtree(folder)
    rows = {row.algorithm: row for row in api.report(path).leaderboard.rows}
    printed(rows["mine"].status)
    ianvs.run(path)
    assert {row.status for row in api.report(path).leaderboard.rows} == {"finished"}


def test_naming_references_in_a_finished_job_trains_nothing(tmp_path: Path) -> None:
    ianvs.run(job(tmp_path, "references: none"))
    again = ianvs.run(job(tmp_path, "references: {single_task: alone, joint: all}"))
    assert again.ran == 0
    assert all(found.metrics["FWT_survey"] is not None for found in again)
    assert all(found.metrics["FWT_survey"] is not None for found in ianvs.load_results(tmp_path / "ws"))


def test_a_reference_that_is_no_algorithm_of_the_job_is_refused(tmp_path: Path) -> None:
    assert errors_of(ianvs.run, job(tmp_path, "references: {single_task: alnoe}")) == [
        ("invalid-reference-run", f"{tmp_path}/benchmarkingjob.yaml:7:29")
    ]


PLAIN = (
    MAJORITY
    + """

class Other(Majority):
    reference = "ianvs.testalgorithms.finetune.basemodel:Finetune"

    def __init__(self, strength=1, epochs=1, batch_size=32):
        super().__init__()
"""
)


def planned_job(folder: Path, metrics: str, hyperparameters: str = "", name: str = "Majority") -> Path:
    exam = f"dataset: {{name: digits}}\nscenario: {{name: CIL, rounds: 5}}\nmetrics: [{metrics}]"
    return write_job(
        folder,
        plugin=PLAIN,
        name=name,
        testenv=exam,
        hyperparameters=hyperparameters,
        job="seeds: [0, 1]\nengine: inline",
    )


@pytest.mark.slow
def test_adding_a_metric_to_a_finished_job_runs_only_the_references_that_it_needs(tmp_path: Path) -> None:
    first = ianvs.run(planned_job(tmp_path, "accuracy"))
    assert first.ran == 2
    path = planned_job(tmp_path, "accuracy, IM, FWT_survey")
    plan = ianvs.plan(path)
    assert [(p.case.role, p.state) for p in plan] == [("", "finished")] * 2 + [("joint", "new")] * 2 + [
        ("single_task", "new")
    ] * 2
    results = ianvs.run(path)
    assert results.ran == 4
    assert [row.algorithm for row in results.leaderboard.rows] == ["majority"]  # references are no competitors
    mine = [found for found in results if not found.case.role]
    assert all(found.metrics["IM"] is not None and found.metrics["FWT_survey"] is not None for found in mine)
    assert ianvs.run(path).ran == 0
    assert [found.metrics for found in ianvs.load_results(tmp_path / "ws") if not found.case.role] == [
        found.metrics for found in mine
    ]


@pytest.mark.slow
def test_a_reference_is_a_fresh_model_of_the_same_class_trained_on_one_round_or_on_all_so_far(tmp_path: Path) -> None:
    results = ianvs.run(planned_job(tmp_path, "accuracy, IM, FWT_survey"))
    by_role = {found.case.role: found.matrices["accuracy"].values[1:] for found in results if found.case.seed == 0}
    # Majority's fresh model for round j alone answers one of its two classes; the joint one a class of some round.
    assert np.all(np.diagonal(by_role["single_task"]) > 0.4)
    assert np.all(by_role["single_task"][np.triu_indices(5, k=1)] == 0)
    mine = next(found for found in results if not found.case.role and found.case.seed == 0)
    assert mine.metrics["IM"] == pytest.approx(by_role["joint"][4, 4] - mine.matrices["accuracy"].values[5, 4])


def test_a_reference_that_fails_is_told_and_leaves_the_metric_empty(tmp_path: Path) -> None:
    path = planned_job(tmp_path, "accuracy, IM")
    broken = edited(PLAIN, "class Majority:", "class Majority:\n    reference = 'plugin_of_test:Broken'")
    (tmp_path / "plugin.py").write_text(edited(broken, "'plugin_of_test:Broken'", f"'{tmp_path / 'broken.py'}:Broken'"))
    (tmp_path / "broken.py").write_text(
        edited(
            MAJORITY,
            "Majority",
            "Broken",
            "for label in train_data",
            "raise OSError('no') or 0\n        for label in train_data",
        )
    )
    results = ianvs.run(path)
    assert results.exit_code == 1
    assert [found.metrics.get("IM") for found in results if not found.case.role] == [None, None]
    text = (tmp_path / "ws" / "test" / "rank" / "leaderboard.md").read_text()
    assert re.search(r"\bBroken\b.*\bjoint\b", text)


def test_rounds_that_are_learned_together_come_mixed(tmp_path: Path) -> None:
    note = "        (folder / str(len(train_data))).write_text(repr(train_data.y.tolist()))\n"
    plugin = edited(MAJORITY, "*, round, seed):", "*, round, seed, folder):")
    plugin = edited(plugin, "        for label in", f"{note}        for label in")
    testenv = edited(TESTENV, ", FWT_survey", "")
    results = ianvs.run(write_job(tmp_path, plugin=plugin, hyperparameters="", testenv=testenv, job="engine: inline"))
    [joint, *_] = [found for found in results if found.case.role]
    labels = {int(file.name): np.array(eval(file.read_text())) for file in (joint.directory / "files").iterdir()}
    together = labels[1438]
    train = ianvs.api.exams(tmp_path / "benchmarkingjob.yaml")["class-incremental"].dataset.train
    assert np.bincount(together).tolist() == np.bincount(train.y).tolist()
    first = np.bincount(together[:400], minlength=10)
    assert first.min() > 15  # of about 40; one round after the other would have none of the later digits


def test_a_single_task_is_no_reference_of_rounds(tmp_path: Path) -> None:
    path = job(tmp_path, "references: {joint: alone}")
    text = (tmp_path / "alone.yaml").read_text()
    (tmp_path / "alone.yaml").write_text(edited(text, "incrementallearning", "singletasklearning"))
    assert errors_of(ianvs.run, path) == [("invalid-reference-run", f"{tmp_path}/benchmarkingjob.yaml:7:23")]


def test_a_single_task_has_no_references(tmp_path: Path) -> None:
    path = job(tmp_path, "references: {joint: all, single_task: mine}")
    text = (tmp_path / "alone.yaml").read_text()
    (tmp_path / "alone.yaml").write_text(edited(text, "incrementallearning", "singletasklearning"))
    found = {result.case.algorithm: result.metrics["IM"] for result in ianvs.run(path)}
    assert found["alone"] is None
    assert found["mine"] is not None
