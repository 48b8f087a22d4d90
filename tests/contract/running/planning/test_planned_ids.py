"""Ids and rows of cases of every sort, as they are stored in workspaces that exist: they must not change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import ianvs
from ianvs.store import Axis, Study, StudyStore, Trial
from tests.contract.running.search.searched_job import searched_job
from tests.edits import edited
from tests.jobs import TESTENV, write_job

DRAWN = edited(TESTENV, "rounds: 5", "rounds: 5, order_seed: case")
COMPARED = edited(TESTENV, "{name: BWT}", "{name: IM}")

PLANS: dict[str, Mapping[str, str]] = {
    "ordinary": {},
    "of exams drawn for a seed": {"testenv": DRAWN, "hyperparameters": ""},
    "with references": {"testenv": COMPARED},
    "with references of drawn exams": {"testenv": edited(DRAWN, "{name: BWT}", "{name: IM}"), "hyperparameters": ""},
    "repeated": {"job": "seeds: [3, 1]\nrepeat: 2", "hyperparameters": ""},
    "repeated, of drawn exams": {"job": "seeds: [3, 1]\nrepeat: 2", "hyperparameters": "", "testenv": DRAWN},
}
PINNED = {
    "ordinary": [
        "f2373b228da63e45b6c3 b30b228ec17b72ab9787 0",
        "50ef9cab4cd269e49186 b30b228ec17b72ab9787 1",
        "1653f139046fce52bf30 6aa01aa96bd4556a484b 0",
        "38f7149a4fd160e29a86 6aa01aa96bd4556a484b 1",
    ],
    "of exams drawn for a seed": [
        "7817ba03210888b32b37 76e9e792d4714eb220d8 0",
        "ba8582a57f374bbfac29 76e9e792d4714eb220d8 1",
    ],
    "with references": [
        "f2373b228da63e45b6c3 b30b228ec17b72ab9787 0 2646d87b845970fa87cf",
        "50ef9cab4cd269e49186 b30b228ec17b72ab9787 1 22d8e74540de1cae197c",
        "1653f139046fce52bf30 6aa01aa96bd4556a484b 0 bc683a6b7b435d484649",
        "38f7149a4fd160e29a86 6aa01aa96bd4556a484b 1 9656fff76371c791f484",
        "2646d87b845970fa87cf fa41ebdcfd111fd61ed0 0 joint",
        "22d8e74540de1cae197c fa41ebdcfd111fd61ed0 1 joint",
        "bc683a6b7b435d484649 2463b98e02e133e4b0c2 0 joint",
        "9656fff76371c791f484 2463b98e02e133e4b0c2 1 joint",
    ],
    "with references of drawn exams": [
        "7817ba03210888b32b37 76e9e792d4714eb220d8 0 f2b677791670cdfb57cb",
        "ba8582a57f374bbfac29 76e9e792d4714eb220d8 1 3f1f296cd698b66f7f22",
        "f2b677791670cdfb57cb d7639f4d4f33c8e81d97 0 joint",
        "3f1f296cd698b66f7f22 d7639f4d4f33c8e81d97 1 joint",
    ],
    "repeated": [
        "e91638c80494ce98334d 5052d1adce268f33c321 3",
        "3ced704ebf7fb5206622 5052d1adce268f33c321 1",
        "bed4c2264332a60fee2e b8bcdd5c33d3966417b8 3 repeat",
    ],
    "repeated, of drawn exams": [
        "ced994a3ebdc0d631b42 76e9e792d4714eb220d8 3",
        "ba8582a57f374bbfac29 76e9e792d4714eb220d8 1",
        "30bca5c830acc2b33592 168f3f0abe1e8d72b97e 3 repeat",
    ],
    "a search that has ended": [
        "08554bb4de6d3a1b8382 f6172f2a3a815425744a 0 trial finished",
        "71c62e8f75a37fa7ca50 c539c6f77b0cb5ecd72a 0 trial stopped after round 2",
        "c8254ff64a1b3cb061fa 58765c22f180fa84b89a 0 trial failed",
        "ac4ec5baf5493a7fa038 a8b7a43a1f4079e88444 0 c057b30ed29f3ee3b98e",
        "03604ef943e776ab107b a8b7a43a1f4079e88444 1 f5b6e9574ae82081f20b",
        "e036e37673d09181e5d1 6aff68d66b3fa2cf5384 0 repeat",
        "c057b30ed29f3ee3b98e 3a5c611106b94b244a35 0 joint",
        "f5b6e9574ae82081f20b 3a5c611106b94b244a35 1 joint",
    ],
    "a search that goes on": [
        "08554bb4de6d3a1b8382 f6172f2a3a815425744a 0 trial finished",
        "71c62e8f75a37fa7ca50 c539c6f77b0cb5ecd72a 0 trial stopped after round 2",
        "c8254ff64a1b3cb061fa 58765c22f180fa84b89a 0",
        "ac4ec5baf5493a7fa038 a8b7a43a1f4079e88444 0 c057b30ed29f3ee3b98e",
        "e036e37673d09181e5d1 6aff68d66b3fa2cf5384 0 repeat",
        "c057b30ed29f3ee3b98e 3a5c611106b94b244a35 0 joint",
        "f5b6e9574ae82081f20b 3a5c611106b94b244a35 1 joint",
    ],
}


def shown(path: Path) -> list[str]:
    """A line for each case: id, row, seed, role; of a searched one what there is to do; and its references."""
    plan = ianvs.plan(path)
    lines = []
    for each in plan:
        case = each.case
        said = [case.id, case.row, str(case.seed), case.role, *plan.references.ids(case, each.algorithm).values()]
        lines.append(" ".join(filter(None, said)) + ("" if each.reason.endswith("never run") else f" {each.reason}"))
    return lines


@pytest.mark.parametrize("what", PLANS)
def test_ids_are_those_of_workspaces_that_exist(tmp_path: Path, what: str) -> None:
    assert shown(write_job(tmp_path, **PLANS[what])) == PINNED[what]  # type: ignore[arg-type]


def write_study(path: Path, ended: bool) -> None:
    """What a search of four trials has stored: one ended, two stopped, and the fourth is at its last stage, or won."""
    (planned,) = ianvs.plan(path).studies
    trials = (
        Trial(1, {"noise": 0.25}, 5, {2: 0.5, 5: 0.25}),
        Trial(2, {"noise": 0.5}, 2, {2: 0.25}),
        Trial(3, {"noise": 0.75}, 2, {2: None}),
        Trial(4, {"noise": 0.125}, 5, {2: 0.75, 5: 0.5} if ended else {2: 0.75}),
    )
    study = Study(
        key=planned.key,
        algorithm="majority",
        testenv="",
        search_settings={"name": "asha"},
        metric="accuracy",
        higher_is_better=True,
        values_description="",
        seeds=planned.seeds,
        rungs=(2, 5),
        rounds=5,
        axes=(Axis("noise", "uniform", 0.0, 0.9),),
        trials=trials if ended else (*trials[:2], Trial(3, {"noise": 0.75}, 2, {}), trials[3]),
        ended=ended,
        winner=4 if ended else None,
    )
    StudyStore(path.parent / "ws", "test").write(study)


@pytest.mark.parametrize("ended", [True, False])
def test_ids_of_trials_and_of_a_winner(tmp_path: Path, ended: bool) -> None:
    path = searched_job(
        tmp_path, "{name: asha, trials: 4}", job="seeds: [0, 1]\nrepeat: 2", testenv=edited(TESTENV, "BWT", "IM")
    )
    write_study(path, ended)
    assert shown(path) == PINNED["a search that has ended" if ended else "a search that goes on"]


def test_a_trial_at_its_last_stage_finds_the_reference_that_the_job_names(tmp_path: Path) -> None:
    """It has one of the seeds, and the reference all of them."""
    settings = "seeds: [0, 1]\nreferences: {joint: alone}"
    testenv = edited(TESTENV, "BWT", "IM")
    path = searched_job(tmp_path, "{name: asha, trials: 4}", job=settings, testenv=testenv)
    algorithm = (tmp_path / "algorithm.yaml").read_text()
    (tmp_path / "alone.yaml").write_text(edited(algorithm, "{uniform: [0.0, 0.9]}", "{values: [0.5]}"))
    listed = "      - {name: majority, url: ./algorithm.yaml}\n"
    path.write_text(edited(path.read_text(), listed, listed + "      - {name: alone, url: ./alone.yaml}\n"))
    write_study(path, ended=False)
    plan = ianvs.plan(path)
    alone = next(each.case.id for each in plan if (each.case.algorithm, each.case.seed) == ("alone", 0))
    last = [each for each in plan if each.algorithm.trial and each.algorithm.trial.number == 4]
    assert [plan.references.ids(each.case, each.algorithm) for each in last] == [{"joint": alone}]
