"""A job with a search, from its file to its reports: what is trained, who wins, what is said of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ianvs
from ianvs.base.types import PredictionKey
from ianvs.store import CaseStore, ExamStore, Study
from tests.contract.running.search.searched_job import searched_job, taught
from tests.edits import edited
from tests.errors import printed

ASHA = "{name: asha, trials: 12, batch: 4, reduction: 2, select: {by: first_rounds, rounds: 4}}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search")
    ianvs.run(searched_job(folder, ASHA))
    return folder


def study_of(folder: Path) -> Study:
    (study,) = ianvs.load_results(folder / "ws").studies
    return study


@pytest.mark.slow
def test_trials_see_no_round_after_those_that_they_may_and_train_none_twice(folder: Path) -> None:
    study, rounds = study_of(folder), taught(folder)
    assert study.ended and study.rungs == (2, 4) and len(study.trials) == 12
    assert set(rounds.values()) == {1}
    assert study.winner is not None
    for trial in study.trials:
        (furthest,) = {
            max(round_ for what, seed, round_ in rounds if what == f"{trial.drawn['noise']!r},1" and seed == 0)
        }
        assert furthest == (5 if trial.number == study.winner else trial.reached)
    assert sum(trial.reached == 4 for trial in study.trials) in range(6, 10)
    won = study.trials[study.winner - 1]
    assert {(seed, round_) for what, seed, round_ in rounds if what == f"{won.drawn['noise']!r},1"} == {
        (seed, round_) for seed in (0, 1) for round_ in range(1, 6)
    }
    assert won.drawn["noise"] == min(trial.drawn["noise"] for trial in study.trials if trial.reached == 4)


def test_a_trial_is_worth_what_it_answered_on_the_first_rounds(folder: Path) -> None:
    study = study_of(folder)
    cases = CaseStore(folder / "ws")
    ids = {
        case.hyperparameters["noise"]: case.id for case in ianvs.load_results(folder / "ws").case_list if case.seed == 0
    }
    truth = ExamStore(folder / "ws").truth((cases.identity(ids[study.trials[0].drawn["noise"]]) or {})["exam_id"])
    for trial in study.trials:
        for rung, value in trial.values.items():
            answers = cases.predictions(ids[trial.drawn["noise"]], rung)
            right = [np.mean(answers[PredictionKey(j)].labels == truth[j]) for j in range(rung)]
            assert value == pytest.approx(np.mean(right))


def test_the_winner_went_in_stages_and_is_what_an_undisturbed_run_gives(folder: Path, tmp_path: Path) -> None:
    study = study_of(folder)
    assert study.winner is not None
    noise = study.trials[study.winner - 1].drawn["noise"]
    plain = ianvs.run(searched_job(tmp_path, "", f"- noise: {{values: [{noise!r}]}}"))
    undisturbed = {result.case.seed: result.matrices["accuracy"].values for result in plain}
    for result in ianvs.load_results(folder / "ws").reported:
        values = undisturbed[result.case.seed]
        np.testing.assert_array_equal(result.matrices["accuracy"].R, values[5:, 4:])  # what is reported: round 5


def test_the_winner_is_ranked_on_what_the_search_did_not_see_and_the_reports_show_it(folder: Path) -> None:
    results = ianvs.load_results(folder / "ws")
    (row,) = results.leaderboard.rows
    assert (row.tried, row.seeds, row.rank, row.rounds) == (12, (1,), 1, 1)
    assert row.status == "finished"  # not that the search saw all that is reported
    rank = folder / "ws" / "test" / "rank"
    trials = pd.read_csv(rank / "trials.csv")
    assert len(trials) == 12 and (trials.Became == "winner").sum() == 1
    stopped = trials[trials.Became == "stopped after round 2"]
    assert len(stopped) == 12 - trials["after_round_4"].notna().sum() > 0
    page = (rank / "leaderboard.md").read_text()
    search = page.partition("## Search")[2]
    assert "Importance" in search and re.search(r"\b4 rounds\b.*\bseed 0\b", search)
    html = (rank / "report.html").read_text()
    assert html.count('class="trial ') == 12 and html.count('class="trial won"') == 1


def test_nothing_is_left_to_do_and_a_plan_says_so(folder: Path) -> None:
    job = folder / "benchmarkingjob.yaml"
    before = taught(folder)
    assert ianvs.run(job).ran == 0 and taught(folder) == before
    plan = ianvs.plan(job)
    states = [planned.state for planned in plan]
    assert states.count("finished") == 2 and states.count("stopped") == 11
    assert not any(planned.runs for planned in plan)


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_a_study_that_is_lost_is_made_again_from_its_cases(folder: Path, damage: str) -> None:
    (file,) = (folder / "ws" / "test" / "search").glob("*.json")
    before, text, rounds = study_of(folder), file.read_text(), taught(folder)
    if damage == "gone":
        file.unlink()
    else:
        file.write_text(edited(text, '"number":1,', '"number":2,', count=1))
    ianvs.run(folder / "benchmarkingjob.yaml")
    assert study_of(folder) == before and file.read_text() == text and taught(folder) == rounds


def test_a_search_over_everything_is_marked(tmp_path: Path) -> None:
    results = ianvs.run(searched_job(tmp_path, "{name: random, trials: 3}", job="seeds: [0]\nengine: inline"))
    (row,) = results.leaderboard.rows
    printed("\n".join([row.status, *results.leaderboard.statements]))
    (study,) = results.studies
    assert study.rungs == (5,) and study.rounds_trained == 15
    for trial in study.trials:
        result = next(
            r for r in results if r.case.hyperparameters["noise"] == trial.drawn["noise"] and r.case.seed == 0
        )
        assert trial.value == pytest.approx(result.metrics["accuracy"])


def test_a_search_sees_no_run_that_is_reported_where_there_are_several_seeds(tmp_path: Path) -> None:
    results = ianvs.run(searched_job(tmp_path, "{name: random, trials: 3}"))
    (row,), (study,) = results.leaderboard.rows, results.studies
    assert study.seeds == (0,) and row.seeds == (1,)
    printed("\n".join(results.leaderboard.statements))


def test_by_validation_trials_are_chosen_on_other_samples_than_are_reported(tmp_path: Path) -> None:
    search = "{name: asha, trials: 6, batch: 3, reduction: 2, select: {by: validation, share: 0.5}}"
    results = ianvs.run(searched_job(tmp_path, search))
    (study,) = results.studies
    (row,) = results.leaderboard.rows
    assert study.rungs == (2, 4, 5)
    printed(row.status)
    won = study.trials[(study.winner or 0) - 1]
    first = next(r for r in results if r.case.hyperparameters["noise"] == won.drawn["noise"] and r.case.seed == 0)
    [reported] = results.reported
    assert reported.case.seed == 1, "of another run than was chosen on"
    groups = first.samples["accuracy"]
    assert won.value == pytest.approx(np.mean(groups[: round(len(groups) / 2)]))
    other = next(r for r in results if r.case.id == reported.case.id).samples["accuracy"]
    assert reported.metrics["accuracy"] == pytest.approx(np.mean(other[round(len(other) / 2) :]))


def test_by_seeds_trials_are_run_with_the_first_half_of_them(tmp_path: Path) -> None:
    search = "{name: tpe, trials: 3, select: {by: seeds}}"
    results = ianvs.run(searched_job(tmp_path, search, job="seeds: [3, 1, 2, 0]\nengine: inline"))
    (study,) = results.studies
    (row,) = results.leaderboard.rows
    assert study.seeds == (0, 1) and row.seeds == (2, 3)
    trial = study.trials[0]
    own = [r.metrics["accuracy"] for r in results if r.case.hyperparameters["noise"] == trial.drawn["noise"]]
    worth = [v for v in own if v is not None][:2]
    if trial.number != study.winner:
        assert trial.value == pytest.approx(np.mean(worth))


@pytest.mark.slow
def test_trials_that_fail_are_trials_and_no_failure_of_the_job(tmp_path: Path) -> None:
    hyperparameters = "- noise: {choice: [0.97, 0.5, 0.99, 0.2]}\n- scale: {int: [1, 3]}"
    job = searched_job(tmp_path, "{name: asha, trials: 12, reduction: 2}", hyperparameters)
    results = ianvs.run(job)
    (study,) = results.studies
    assert results.exit_code == 0 and len(study.trials) == 12
    assert {trial.drawn["noise"] for trial in study.trials if trial.failed} == {0.97, 0.99}
    assert study.winner is not None and study.trials[study.winner - 1].drawn["noise"] == 0.2
    before = taught(tmp_path)
    assert ianvs.run(job).ran == 0 and taught(tmp_path) == before
    # Who failed starts over when it is asked for, and nobody else does.
    again = ianvs.run(job, rerun="failed")
    assert again.ran == 6 and again.studies[0].winner == study.winner and taught(tmp_path) == before
    none = searched_job(tmp_path / "none", "{name: random, trials: 2}", "- noise: {uniform: [0.96, 0.99]}")
    assert ianvs.run(none).exit_code == 1


def test_more_trials_go_on_and_algorithms_without_a_range_are_run_as_ever(tmp_path: Path) -> None:
    job = searched_job(tmp_path, "{name: random, trials: 2}")
    other = edited((tmp_path / "algorithm.yaml").read_text(), "{uniform: [0.0, 0.9]}", "{values: [0.4, 0.45]}")
    (tmp_path / "other.yaml").write_text(other)
    listed = "      - {name: majority, url: ./algorithm.yaml}\n"
    job.write_text(edited(job.read_text(), listed, f"{listed}      - {{name: plain, url: ./other.yaml}}\n"))
    first = ianvs.run(job)
    assert sorted(row.algorithm for row in first.leaderboard.rows) == ["majority", "plain"]
    job.write_text(edited(job.read_text(), "trials: 2", "trials: 5"))
    second = ianvs.run(job)
    assert [t.drawn for t in second.studies[0].trials[:2]] == [t.drawn for t in first.studies[0].trials]
    assert len(second.studies[0].trials) == 5 and set(taught(tmp_path).values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize("lines", [pytest.param(3, marks=pytest.mark.slow), 20])
def test_killed_and_resumed_two_at_a_time_it_finds_the_same_and_repeats_nothing(
    folder: Path, tmp_path: Path, lines: int
) -> None:
    """lines: rounds that have been taught when everything is killed at once."""
    job = searched_job(tmp_path, ASHA, job="seeds: [0, 1]\njobs: 2\nengine: local", pause=0.05)
    command = [sys.executable, "-m", "ianvs", "run", "-f", str(job)]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while sum(taught(tmp_path).values()) < lines:
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    ianvs.run(job)
    mine, theirs = study_of(tmp_path), study_of(folder)
    assert (mine.trials, mine.winner) == (theirs.trials, theirs.winner)
    # Of each case that was under way when it was killed, one round at most.
    twice = [which for which, count in taught(tmp_path).items() if count > 1]
    assert len(twice) <= 2 and all(taught(tmp_path)[which] == 2 for which in twice)
    assert set(taught(tmp_path)) == set(taught(folder))


def test_each_exam_has_a_search_of_its_own_and_the_winners_have_their_references(tmp_path: Path) -> None:
    """The second exam is drawn anew for each seed."""
    job = searched_job(tmp_path, "{name: random, trials: 3, metric: accuracy}")
    first = tmp_path / "testenv.yaml"
    text = edited(first.read_text(), "rounds: 5", "rounds: 2, order_seed: case")
    (tmp_path / "drawn.yaml").write_text(edited(text, "[{name: accuracy}]", "[{name: accuracy}, {name: IM}]"))
    job.write_text(edited(job.read_text(), "testenv: ./testenv.yaml", "testenv: [./testenv.yaml, ./drawn.yaml]"))
    results = ianvs.run(job)
    assert len(results.studies) == 2 and len({study.testenv for study in results.studies}) == 2
    rows = results.leaderboard.rows
    assert [row.tried for row in rows] == [3, 3] and all(row.complete and row.seeds == (1,) for row in rows)
    drawn = next(row for row in rows if row.rounds == 2)
    assert drawn.metrics["IM"].n == 1
    references = [result for result in results if result.case.role]
    study = next(study for study in results.studies if study.rounds == 2)
    assert study.winner is not None and len(references) == 2
    assert {r.case.hyperparameters["noise"] for r in references} == {study.trials[study.winner - 1].drawn["noise"]}
    assert ianvs.run(job).ran == 0
